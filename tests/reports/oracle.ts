import type { HistoryRows } from './history.ts'

/** The days of a report as strings, found by writing dates, and whether a moment is on one of them. */
export type ReportDays = { from: string; to: string; days: number; on: (at: number | null) => boolean }

/** The date on the calendar there, as the platform writes it. */
const dateAt = (ms: number, timeZone: string): string => {
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
const plus = (date: string, days: number): string =>
  new Date(Date.parse(date) + days * DAY).toISOString().slice(0, 10)

/** From a date back to the first one of which this is true. */
const back = (date: string, is: (date: string) => boolean): string =>
  is(date) ? date : back(plus(date, -1), is)
const isMonday = (date: string): boolean => new Date(date).getUTCDay() === 1
const isFirst = (date: string): boolean => date.endsWith('-01')

const presetEnds = (preset: string, today: string): [from: string, to: string] => {
  const days = /^last_(\d+)_days$/.exec(preset)?.[1]
  if (days !== undefined) return [plus(today, 1 - Number(days)), today]
  const [which, unit] = preset.split('_')
  if (unit === undefined) return preset === 'today' ? [today, today] : [plus(today, -1), plus(today, -1)]
  const begins = unit === 'week' ? isMonday : isFirst
  const begun = back(today, begins)
  return which === 'this' ? [begun, today] : [back(plus(begun, -1), begins), plus(begun, -1)]
}

/** The days of a preset, or from a day to a day. */
export const resolveReportDays = (
  { preset, from, to }: { preset?: string; from?: string; to?: string },
  now: number,
  timeZone: string,
): ReportDays => {
  const [first, last] =
    from !== undefined && to !== undefined
      ? [from, to]
      : presetEnds(preset ?? 'last_7_days', dateAt(now, timeZone))
  const dates = new Set<string>()
  for (let date = first; date <= last; date = plus(date, 1)) dates.add(date)
  return {
    from: first,
    to: last,
    days: dates.size,
    on: (at) => at !== null && dates.has(dateAt(at, timeZone)),
  }
}

const count = <T>(rows: readonly T[], is: (row: T) => boolean): number => rows.filter(is).length

/** Seconds. */
const medianOf = (milliseconds: readonly number[]): number | null => {
  const sorted = milliseconds.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  if (sorted.length === 0) return null
  return (Number.isInteger(half) ? (sorted[half - 1]! + sorted[half]!) / 2 : sorted[Math.floor(half)]!) / 1000
}

/** Whether a clock ran out: at the latest by now, and not stopped by then. */
const ranOut = (due: number | null, stopped: number | null, now: number): boolean =>
  due !== null && (stopped === null ? now : stopped) > due

/** Every figure of the summary, counted row by row. */
export const countSummary = (raw: HistoryRows, { on }: ReportDays) => {
  const { now } = raw
  const written = raw.messages.filter((m) => m.direction === 'outbound' && on(m.created_at))
  const [sent, delivered] = [
    count(written, (m) => ['sent', 'delivered', 'read'].includes(m.status)),
    count(written, (m) => ['delivered', 'read'].includes(m.status)),
  ]
  const closed = raw.episodes.filter((e) => on(e.closed_at))
  const waiting = raw.waits.filter((w) => w.ended_at === null).map((w) => (now - w.since) / 3_600_000)
  const started = raw.broadcasts.filter((b) => on(b.started_at))
  const told = started.flatMap((b) => b.recipients)
  const enabled = raw.policies.filter((p) => p.enabled)
  return {
    messages: {
      sent,
      delivered,
      read: count(written, (m) => m.status === 'read'),
      failed: count(written, (m) => m.status === 'failed'),
      delivery_rate: sent === 0 ? null : delivered / sent,
    },
    conversations: {
      closes: closed.length,
      distinct_conversations: new Set(closed.map((e) => e.conversation_id)).size,
      reopened: count(raw.episodes, (e) => e.n > 1 && on(e.opened_at)),
      median_close_seconds: medianOf(closed.map((e) => e.closed_at! - e.opened_at)),
      waiting_now: waiting.length,
      unassigned_now: count(
        raw.conversations,
        (v) => v.state === 'open' && v.assigned_staff_id === null && v.assigned_team_id === null,
      ),
      oldest_wait_buckets_now: {
        under_1h: count(waiting, (h) => h < 1),
        '1h_to_4h': count(waiting, (h) => h >= 1 && h < 4),
        '4h_to_24h': count(waiting, (h) => h >= 4 && h < 24),
        over_24h: count(waiting, (h) => h >= 24),
      },
    },
    contacts: { new: count(raw.contacts, (c) => on(c.created_at)), new_is_lower_bound: false },
    broadcasts: {
      started: started.length,
      sent: count(told, (r) => ['sent', 'delivered', 'read'].includes(r.status)),
      delivered: count(told, (r) => ['delivered', 'read'].includes(r.status)),
      read: count(told, (r) => r.status === 'read'),
      failed: count(told, (r) => r.status === 'failed'),
      opted_out: count(told, (r) => r.opted_out),
    },
    sla: {
      running: enabled.length > 0,
      config_problems: count(enabled, (p) => !p.works),
      breaches:
        count(raw.waits, (w) => on(w.due_at) && ranOut(w.due_at, w.ended_at, now)) +
        count(raw.episodes, (e) => on(e.resolution_due_at) && ranOut(e.resolution_due_at, e.closed_at, now)),
    },
  }
}
