import { listWorkspaces } from '../../../storage/workspace/admin.ts'
import type { Db } from '../../../storage/database.ts'
import {
  insertReport,
  lockReports,
  type StaffReportSummary,
  tryLockReports,
  filterMissingReports,
} from '../../../storage/reports/staff-reports.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { invalidField } from '../../kernel/problem.ts'
import { type ReportRange, resolveRange, type RangeInput } from './range.ts'
import { computeStaffRows } from './staff-rows.ts'

/** Reports of a day are made an hour after its end, when late messages and statuses have arrived. */
const GENERATION_DELAY_MS = 60 * 60 * 1000

type NamedRange = ReportRange & { name: string | null }

const resolveNamedRange = (
  now: string,
  timezone: string,
  input: RangeInput,
  name: string | null,
): NamedRange => ({
  ...resolveRange({ now, actor: { workspace: { timezone } } }, input),
  name,
})

/** Returns the ranges of the reports made each night: yesterday, and the 7 and 30 days up to it. */
export const nightlyRanges = (now: string, timezone: string): NamedRange[] => {
  const yesterday = resolveNamedRange(now, timezone, { preset: 'yesterday' }, 'Yesterday')
  const firstDayOf = (days: number): string =>
    Temporal.PlainDate.from(yesterday.to)
      .subtract({ days: days - 1 })
      .toString()
  return [
    yesterday,
    ...[7, 30].map((days) =>
      resolveNamedRange(now, timezone, { from: firstDayOf(days), to: yesterday.to }, `${days} days`),
    ),
  ]
}

/** Resolves a range for a stored report. Throws 400 `not_over` when it includes today. */
export const resolvePastRange = (
  now: string,
  workspaceTimezone: string,
  input: RangeInput,
  name: string | null,
): NamedRange => {
  const range = resolveNamedRange(now, workspaceTimezone, input, name)
  if (range.ended_at > now)
    throw invalidField(
      'to',
      'not_over',
      `must be a day that is over in ${range.timezone}; today's numbers are always live`,
      { fix: 'Send yesterday or earlier.' },
    )
  return range
}

/** Computes and stores a report of these days from the current data, in a transaction. */
export const generateReport = async (
  tx: Db,
  workspaceId: string,
  range: NamedRange,
  now: string,
): Promise<StaffReportSummary> => {
  if (!tx.isTransaction)
    return await tx.transaction().execute((own) => generateReport(own, workspaceId, range, now))
  await lockReports(tx, workspaceId)
  const { name, from, to, timezone } = range
  return await insertReport(tx, workspaceId, {
    name,
    from,
    to,
    timezone,
    generated_at: now,
    rows: await computeStaffRows(tx, workspaceId, range, now),
  })
}

/**
 * Generates the reports that do not exist yet; of several servers one generates them. Each report is a
 * transaction of its own, so that the embedded database serves others in between.
 */
const generateMissingReports = async (
  db: Db,
  workspaceId: string,
  ranges: readonly NamedRange[],
  now: string,
  signal: AbortSignal | undefined,
): Promise<void> => {
  for (const range of await filterMissingReports(db, workspaceId, ranges)) {
    if (signal?.aborted) return
    await db.transaction().execute(async (tx) => {
      if (
        !(await tryLockReports(tx, workspaceId)) ||
        (await filterMissingReports(tx, workspaceId, [range])).length === 0
      )
        return
      await generateReport(tx, workspaceId, range, now)
    })
  }
}

/**
 * Returns a job for a server to repeat: it generates the reports of each workspace whose day is over. A night
 * whose reports are known to exist is not looked up again.
 */
export const createNightlyReportJob = (
  app: Pick<App, 'db' | 'now' | 'clockOffsets' | 'log'>,
): ((signal?: AbortSignal) => Promise<void>) => {
  const { db, log } = app
  const generated = new Map<string, string>()
  return async (signal) => {
    for (const { id, timezone } of await listWorkspaces(db)) {
      if (signal?.aborted) return
      const at = businessTime(app, id)
      const ranges = nightlyRanges(new Date(Date.parse(at) - GENERATION_DELAY_MS).toISOString(), timezone)
      const night = `${ranges[0]!.to} ${timezone}`
      if (generated.get(id) === night) continue
      try {
        await generateMissingReports(db, id, ranges, at, signal)
        if ((await filterMissingReports(db, id, ranges)).length === 0) generated.set(id, night)
      } catch (error) {
        // A failure in one workspace must not stop the others.
        log.warn(
          { work: 'staff reports', workspace: id, code: (error as { code?: string }).code },
          'Cannot generate staff reports; retrying',
        )
      }
    }
  }
}
