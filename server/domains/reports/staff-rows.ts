import type { OutputOf } from '../../handler.ts'
import type { Db } from '../../../storage/database.ts'
import {
  type BreachFigures,
  loadStaffNames,
  loadTimeFigures,
  loadWorkFigures,
  type ResponseFigures,
  type WorkFigures,
} from '../../../storage/reports/staff-figures.ts'
import type { StaffReport } from '../../../storage/reports/staff-reports.ts'
import { PHONE_APP_NAME } from '../../../catalog/message-content.ts'
import type { ReportRange } from './range.ts'

export type StaffReportRow = OutputOf<'reports_staff'>['data'][number]

/** Storage's id for work that no member did. */
export const NOBODY = '0'
/** Storage's id for what colleagues wrote in the phone app of a number, which does not say who. */
export const PHONE_APP = '-1'

/** Storage's id of a row's member. */
export const memberOf = ({ staff_id: id, name }: Pick<StaffReportRow, 'staff_id' | 'name'>): string =>
  id ?? (name === PHONE_APP_NAME ? PHONE_APP : NOBODY)

/** Null when the divisor is 0. */
const share = (dividend: number, divisor: number): number | null =>
  divisor === 0 ? null : Math.round((dividend / divisor) * 10_000) / 10_000

/** The mean of times, to the millisecond. Their sum is one of whole milliseconds, which a float only comes near. */
const averageSeconds = (seconds: number, count: number): number | null =>
  count === 0 ? null : Math.round(Math.round(seconds * 1000) / count) / 1000

/** The figures of one member, as storage reads them. */
type StaffFigures = {
  work: WorkFigures
  answering: ResponseFigures
  breaches: BreachFigures
  reopened: number
}

const NO_FIGURES: StaffFigures = {
  work: {
    conversations: 0,
    handled: 0,
    replied: 0,
    messages: 0,
    closes: 0,
    with_reason: 0,
    seconds: 0,
    met: 0,
  },
  answering: { firsts: 0, seconds: 0, met: 0 },
  breaches: { first_response: 0, next_response: 0, resolution: 0 },
  reopened: 0,
}

const toStaffRow = (
  staffId: string,
  name: string | null,
  { work, answering, breaches, reopened }: StaffFigures,
): StaffReportRow => {
  const late = breaches.first_response + breaches.next_response + breaches.resolution
  const met = answering.met + work.met
  return {
    staff_id: staffId === NOBODY || staffId === PHONE_APP ? null : staffId,
    name: staffId === PHONE_APP ? PHONE_APP_NAME : name,
    conversations: work.conversations,
    handled: work.handled,
    closed: work.closes,
    replied: work.replied,
    untouched: work.conversations - work.handled,
    messages_sent: work.messages,
    reopened,
    avg_first_response_seconds: averageSeconds(answering.seconds, answering.firsts),
    avg_time_to_close_seconds: averageSeconds(work.seconds, work.closes),
    sla_breaches: { ...breaches, total: late },
    sla_compliance_rate: share(met, met + late),
    reason_coverage: share(work.with_reason, work.closes),
  }
}

/** Sorts by descending count, then by name and id; the row without a member is last among equals. */
export const sortStaff = <T extends { staff_id: string | null; name: string | null }>(
  rows: readonly T[],
  count: (row: T) => number,
): T[] =>
  rows.toSorted(
    (a, b) =>
      count(b) - count(a) ||
      compareNullsLast(a.name, b.name) ||
      Number(a.staff_id ?? Infinity) - Number(b.staff_id ?? Infinity),
  )

const compareNullsLast = (a: string | null, b: string | null): number => {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * Computes the rows of all members who did something in the range, from the current data. `now`: ISO 8601 UTC.
 * `channels`: only on these channels; null: on all.
 */
export const computeStaffRows = async (
  tx: Db,
  workspaceId: string,
  { started_at: start, ended_at: end }: ReportRange,
  now: string,
  channels: readonly string[] | null = null,
): Promise<StaffReportRow[]> => {
  const between = { start, end }
  const [names, work, { reopened, responses, breaches }] = await Promise.all([
    loadStaffNames(tx, workspaceId),
    loadWorkFigures(tx, workspaceId, between, channels),
    loadTimeFigures(tx, workspaceId, between, now, channels),
  ])
  const ids = new Set([work, reopened, responses, breaches].flatMap((figures) => [...figures.keys()]))
  const rows = [...ids].map((id) =>
    toStaffRow(id, names.get(id) ?? null, {
      work: work.get(id) ?? NO_FIGURES.work,
      answering: responses.get(id) ?? NO_FIGURES.answering,
      breaches: breaches.get(id) ?? NO_FIGURES.breaches,
      reopened: reopened.get(id)?.reopened ?? NO_FIGURES.reopened,
    }),
  )
  return sortStaff(rows, (row) => row.conversations ?? 0)
}

/** Returns the rows of a stored report, with the present names of the members. */
export const parseStoredRows = (report: StaffReport, names: ReadonlyMap<string, string>): StaffReportRow[] =>
  sortStaff(
    (report.rows as StaffReportRow[]).map((row) => ({
      ...row,
      name: names.get(memberOf(row)) ?? row.name,
      reason_coverage: null,
    })),
    (row) => row.conversations ?? 0,
  )
