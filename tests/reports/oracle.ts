import type { HistoryRows } from './history.ts'

/** The days of a report as dates (`YYYY-MM-DD`); `on` tells whether a time (in ms) is on one of them. */
export type OracleDays = { from: string; to: string; days: number; on: (at: number | null) => boolean }

/** Returns the calendar date in the time zone, as `Intl` formats it. */
const toDate = (ms: number, timeZone: string): string => {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    calendar: 'gregory',
  }).formatToParts(new Date(ms))
  const part = (type: string) => parts.find((p) => p.type === type)!.value
  return `${part('year')}-${part('month')}-${part('day')}`
}

const DAY = 86_400_000
const addDays = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * DAY).toISOString().slice(0, 10)

/** Returns the latest date that satisfies the predicate, at this date or before. */
const findLatest = (date: string, predicate: (date: string) => boolean): string =>
  predicate(date) ? date : findLatest(addDays(date, -1), predicate)
const isMonday = (date: string): boolean => new Date(date).getUTCDay() === 1
const isFirstOfMonth = (date: string): boolean => date.endsWith('-01')

const resolvePreset = (preset: string, today: string): [from: string, to: string] => {
  const days = /^last_(\d+)_days$/.exec(preset)?.[1]
  if (days !== undefined) return [addDays(today, 1 - Number(days)), today]
  const [which, unit] = preset.split('_')
  if (unit === undefined)
    return preset === 'today' ? [today, today] : [addDays(today, -1), addDays(today, -1)]
  const startsPeriod = unit === 'week' ? isMonday : isFirstOfMonth
  const periodStart = findLatest(today, startsPeriod)
  return which === 'this'
    ? [periodStart, today]
    : [findLatest(addDays(periodStart, -1), startsPeriod), addDays(periodStart, -1)]
}

/** Returns the days of a preset, or those of an explicit range. */
export const resolveReportDays = (
  { preset, from, to }: { preset?: string; from?: string; to?: string },
  now: number,
  timeZone: string,
): OracleDays => {
  const [first, last] =
    from !== undefined && to !== undefined
      ? [from, to]
      : resolvePreset(preset ?? 'last_7_days', toDate(now, timeZone))
  const dates = new Set<string>()
  for (let date = first; date <= last; date = addDays(date, 1)) dates.add(date)
  return {
    from: first,
    to: last,
    days: dates.size,
    on: (at) => at !== null && dates.has(toDate(at, timeZone)),
  }
}

const count = <T>(rows: readonly T[], predicate: (row: T) => boolean): number => rows.filter(predicate).length

/** Returns the median in seconds; null without values. */
const toMedianSeconds = (milliseconds: readonly number[]): number | null => {
  const sorted = milliseconds.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  if (sorted.length === 0) return null
  return (Number.isInteger(half) ? (sorted[half - 1]! + sorted[half]!) / 2 : sorted[Math.floor(half)]!) / 1000
}

/** Tells whether a clock was stopped late, or is running and overdue. */
const isBreached = (dueAt: number | null, stoppedAt: number | null, now: number): boolean =>
  dueAt !== null && (stoppedAt ?? now) > dueAt

/** Counts every figure of the summary row by row. */
export const countSummary = (rows: HistoryRows, { on }: OracleDays) => {
  const { now } = rows
  const outbound = rows.messages.filter((m) => m.direction === 'outbound' && on(m.created_at))
  const [sent, delivered] = [
    count(outbound, (m) => ['sent', 'delivered', 'read'].includes(m.status)),
    count(outbound, (m) => ['delivered', 'read'].includes(m.status)),
  ]
  const closed = rows.episodes.filter((e) => on(e.closed_at))
  const waiting = rows.waits.filter((w) => w.ended_at === null).map((w) => (now - w.since) / 3_600_000)
  const started = rows.broadcasts.filter((b) => on(b.started_at))
  const recipients = started.flatMap((b) => b.recipients)
  const enabled = rows.policies.filter((p) => p.enabled)
  return {
    messages: {
      sent,
      delivered,
      read: count(outbound, (m) => m.status === 'read'),
      failed: count(outbound, (m) => m.status === 'failed'),
      delivery_rate: sent === 0 ? null : delivered / sent,
    },
    conversations: {
      closes: closed.length,
      distinct_conversations: new Set(closed.map((e) => e.conversation_id)).size,
      reopened: count(rows.episodes, (e) => e.n > 1 && on(e.opened_at)),
      median_close_seconds: toMedianSeconds(closed.map((e) => e.closed_at! - e.opened_at)),
      waiting_now: waiting.length,
      unassigned_now: count(
        rows.conversations,
        (v) => v.state === 'open' && v.assigned_staff_id === null && v.assigned_team_id === null,
      ),
      oldest_wait_buckets_now: {
        under_1h: count(waiting, (h) => h < 1),
        '1h_to_4h': count(waiting, (h) => h >= 1 && h < 4),
        '4h_to_24h': count(waiting, (h) => h >= 4 && h < 24),
        over_24h: count(waiting, (h) => h >= 24),
      },
    },
    contacts: { new: count(rows.contacts, (c) => on(c.created_at)), new_is_lower_bound: false },
    broadcasts: {
      started: started.length,
      sent: count(recipients, (r) => ['sent', 'delivered', 'read'].includes(r.status)),
      delivered: count(recipients, (r) => ['delivered', 'read'].includes(r.status)),
      read: count(recipients, (r) => r.status === 'read'),
      failed: count(recipients, (r) => r.status === 'failed'),
      opted_out: count(recipients, (r) => r.opted_out),
    },
    sla: {
      running: enabled.length > 0,
      config_problems: count(enabled, (p) => !p.effective),
      breaches:
        count(rows.waits, (w) => on(w.due_at) && isBreached(w.due_at, w.ended_at, now)) +
        count(
          rows.episodes,
          (e) => on(e.resolution_due_at) && isBreached(e.resolution_due_at, e.closed_at, now),
        ),
    },
  }
}
