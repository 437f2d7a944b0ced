import type { Db } from '../../../storage/database.ts'
import { invalidateReportsFrom } from '../../../storage/reports/staff-reports.ts'

/** Days begin at whole quarters of an hour in UTC, in every time zone of today. */
const QUARTER_MS = 15 * 60 * 1000
const quarterOf = (time: string): number => Math.floor(Date.parse(time) / QUARTER_MS)

/**
 * Withdraws the stored reports of days from `earliest` on, at which something is counted differently from now
 * on. Reports are of days that are over, so there is none yet when no day can have ended since.
 */
export const invalidateReports = async (
  tx: Db,
  workspaceId: string,
  earliest: string,
  now: string,
): Promise<void> => {
  if (quarterOf(earliest) < quarterOf(now)) await invalidateReportsFrom(tx, workspaceId, earliest)
}
