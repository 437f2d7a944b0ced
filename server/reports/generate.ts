import { listWorkspaces } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { insertReport, type ListedReport, lockReports, missingReports } from '../../storage/staff-reports.ts'
import type { App } from '../app.ts'
import { invalidField } from '../core/problem.ts'
import { type Range, rangeOf, type Span } from './range.ts'
import { liveRows } from './staff.ts'

/** After midnight what was under way comes in: late messages, lost answers. */
const SETTLE_MS = 60 * 60 * 1000

type Named = Range & { name: string | null }

const spanOf = (now: string, timezone: string, span: Span, name: string | null): Named => ({
  ...rangeOf({ now, actor: { workspace: { timezone } } }, span),
  name,
})

/** The days of which reports are made each night: yesterday, and the 7 and 30 days up to it. */
export const nightlySpans = (now: string, timezone: string): Named[] => {
  const yesterday = spanOf(now, timezone, { preset: 'yesterday' }, 'Yesterday')
  const back = (days: number): string =>
    Temporal.PlainDate.from(yesterday.to)
      .subtract({ days: days - 1 })
      .toString()
  return [
    yesterday,
    ...[7, 30].map((days) => spanOf(now, timezone, { from: back(days), to: yesterday.to }, `${days} days`)),
  ]
}

/** Days that were asked for by hand. Throws 400: a report is kept of days that are over. */
export const spanByHand = (now: string, workspaceZone: string, span: Span, name: string | null): Named => {
  const range = spanOf(now, workspaceZone, span, name)
  if (range.ended_at > now)
    throw invalidField(
      'to',
      'not_over',
      `must be a day that is over in ${range.timezone}; today's numbers are always live`,
      { fix: 'Send yesterday or earlier.' },
    )
  return range
}

/** Makes and keeps a report of these days as they are now. */
export const generateReport = async (
  tx: Db,
  workspaceId: string,
  range: Named,
  now: string,
): Promise<ListedReport> => {
  const { name, from, to, timezone } = range
  return await insertReport(tx, workspaceId, {
    name,
    from,
    to,
    timezone,
    generated_at: now,
    rows: await liveRows(tx, workspaceId, range),
  })
}

/**
 * Makes the reports of a night, where none of the same days are there; of several servers one makes them.
 * Each is a transaction of its own, so that the embedded database serves others in between.
 */
const generateMissing = async (
  db: Db,
  workspaceId: string,
  spans: readonly Named[],
  now: string,
): Promise<void> => {
  for (const span of await missingReports(db, workspaceId, spans)) {
    await db.transaction().execute(async (tx) => {
      if (
        !(await lockReports(tx, workspaceId)) ||
        (await missingReports(tx, workspaceId, [span])).length === 0
      )
        return
      await generateReport(tx, workspaceId, span, now)
    })
  }
}

/**
 * Work for a server to repeat: when a day is over in a workspace, its reports are made. What is known to be
 * there is not asked for again.
 */
export const nightlyReports = ({ db, now, log }: Pick<App, 'db' | 'now' | 'log'>): (() => Promise<void>) => {
  const done = new Map<string, string>()
  return async () => {
    const at = now()
    for (const { id, timezone } of await listWorkspaces(db)) {
      const spans = nightlySpans(new Date(Date.parse(at) - SETTLE_MS).toISOString(), timezone)
      const night = `${spans[0]!.to} ${timezone}`
      if (done.get(id) === night) continue
      try {
        await generateMissing(db, id, spans, at)
        if ((await missingReports(db, id, spans)).length === 0) done.set(id, night)
      } catch (error) {
        // One workspace must not keep the others waiting.
        log.warn(
          { work: 'staff reports', workspace: id, code: (error as { code?: string }).code },
          'reports were not made; it is tried again',
        )
      }
    }
  }
}
