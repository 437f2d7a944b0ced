import type { OracleDays } from './oracle.ts'
import type { HistoryRows } from './history.ts'

/** The rows of a history and what the staff report needs besides. Times are milliseconds since 1970. */
export type StaffHistory = HistoryRows & {
  names: ReadonlyMap<string, string>
  assignedAt: ReadonlyMap<string, number>
}

const round = (value: number, digits: number): number => Math.round(value * 10 ** digits) / 10 ** digits
const averageSeconds = (milliseconds: readonly number[]): number | null =>
  milliseconds.length === 0
    ? null
    : Math.round(milliseconds.reduce((sum, ms) => sum + ms, 0) / milliseconds.length) / 1000
const toConversationIds = (rows: readonly { conversation_id: string }[]): Set<string> =>
  new Set(rows.map((row) => row.conversation_id))

/** Stands for the id of who wrote in the phone app. */
const PHONE_APP = 'Phone app'

/** The system ends a wait only with its episode. */
const endedBy = ({ episodes }: StaffHistory, wait: HistoryRows['waits'][number]): string | null =>
  wait.ended_by ??
  (episodes.some(
    (e) =>
      e.conversation_id === wait.conversation_id &&
      e.n === wait.episode &&
      e.closed_by === null &&
      e.closed_at !== null &&
      e.closed_at <= wait.ended_at!,
  )
    ? null
    : PHONE_APP)

/** Lists the clocks of all waits and episodes that have a deadline. */
const listClocks = (history: StaffHistory) =>
  [
    ...history.waits.map((w) => ({
      ...w,
      metric: w.kind,
      due: w.due_at,
      at: w.ended_at,
      by: endedBy(history, w),
    })),
    ...history.episodes.map((e) => ({
      ...e,
      metric: 'resolution',
      due: e.resolution_due_at,
      at: e.closed_at,
      by: e.closed_by,
    })),
  ].flatMap(({ conversation_id, metric, due, at, by }) =>
    due === null ? [] : [{ conversation_id, metric, due, at, by }],
  )

/** Returns the clocks that a member met, and those that count as missed by them, in these days. */
const listMemberClocks = (history: StaffHistory, { on }: OracleDays, id: string | null) => {
  const assignees = new Map(history.conversations.map((v) => [v.id, v.assigned_staff_id]))
  const clocks = listClocks(history)
  return {
    met: clocks.filter((c) => c.at !== null && c.at <= c.due && c.by === id && on(c.at)),
    missed: clocks.filter(
      (c) =>
        on(c.due) &&
        (c.at ?? history.now) > c.due &&
        (c.at === null ? assignees.get(c.conversation_id) : c.by) === id,
    ),
  }
}

/** Returns what one staff member did in these days; `id` null: what nobody is assigned to or did. */
const listWork = (history: StaffHistory, { on }: OracleDays, id: string | null) => {
  const messages = history.messages.filter(
    (m) =>
      m.direction === 'outbound' &&
      ['sent', 'delivered', 'read'].includes(m.status) &&
      (m.staff_id ?? PHONE_APP) === id &&
      on(m.created_at),
  )
  const closes = history.episodes.filter((e) => e.closed_at !== null && e.closed_by === id && on(e.closed_at))
  const ended = history.waits.filter(
    (w) => w.ended_at !== null && endedBy(history, w) === id && on(w.ended_at),
  )
  const firsts = ended.filter(
    (w) =>
      w.kind === 'first_response' &&
      history.episodes.some(
        (e) => e.conversation_id === w.conversation_id && e.n === w.episode && e.first_response_at !== null,
      ),
  )
  const reopened = history.episodes.filter(
    (e) =>
      on(e.opened_at) &&
      history.episodes.some(
        (p) =>
          p.conversation_id === e.conversation_id &&
          p.n === e.n - 1 &&
          p.closed_at !== null &&
          p.closed_by === id,
      ),
  )
  const assigned = history.conversations
    .filter(
      (v) =>
        v.assigned_staff_id === id &&
        (id !== null
          ? on(history.assignedAt.get(v.id) ?? null)
          : history.episodes.some(
              (e) =>
                e.conversation_id === v.id &&
                e.closed_at === null &&
                e.first_response_at === null &&
                on(e.opened_at),
            )),
    )
    .map((v) => v.id)
  return { messages, closes, ended, firsts, reopened, assigned }
}

/** Counts the row of one staff member, and tells whether anything was counted. */
const countStaffRow = (history: StaffHistory, days: OracleDays, id: string | null) => {
  const { messages, closes, ended, firsts, reopened, assigned } = listWork(history, days, id)
  const [replied, closed] = [toConversationIds(messages), toConversationIds(closes)]
  const handled = new Set([...replied, ...closed])
  const all = new Set([...handled, ...assigned])
  const { met, missed } = listMemberClocks(history, days, id)
  const countMissed = (metric: string): number => missed.filter((c) => c.metric === metric).length
  return {
    hasActivity: all.size + ended.length + reopened.length + missed.length > 0,
    row: {
      staff_id: id === PHONE_APP ? null : id,
      name: id === null ? null : (history.names.get(id) ?? id),
      conversations: all.size,
      handled: handled.size,
      closed: closes.length,
      replied: replied.size,
      untouched: all.size - handled.size,
      messages_sent: messages.length,
      reopened: reopened.length,
      avg_first_response_seconds: averageSeconds(firsts.map((w) => w.ended_at! - w.since)),
      avg_time_to_close_seconds: averageSeconds(closes.map((e) => e.closed_at! - e.opened_at)),
      sla_breaches: {
        first_response: countMissed('first_response'),
        next_response: countMissed('next_response'),
        resolution: countMissed('resolution'),
        total: missed.length,
      },
      sla_compliance_rate:
        met.length + missed.length === 0 ? null : round(met.length / (met.length + missed.length), 4),
      reason_coverage:
        closes.length === 0
          ? null
          : round(closes.filter((e) => e.close_reason !== null).length / closes.length, 4),
    },
  }
}

const compareNames = (
  a: { name: string | null; staff_id: string | null },
  b: { name: string | null; staff_id: string | null },
): number =>
  (a.name ?? '\uffff').localeCompare(b.name ?? '\uffff', 'en') || Number(a.staff_id) - Number(b.staff_id)

/** Counts the rows of the report, one staff member after another. */
export const countStaffRows = (history: StaffHistory, days: OracleDays) =>
  [null, PHONE_APP, ...history.names.keys()]
    .map((id) => countStaffRow(history, days, id))
    .filter(({ hasActivity }) => hasActivity)
    .map(({ row }) => row)
    .toSorted((a, b) => b.conversations - a.conversations || compareNames(a, b))

/** Counts the current workload of each staff member, with reply windows of 24 hours. */
export const countWorkload = (history: StaffHistory) =>
  [null, ...history.names.keys()]
    .map((id) => {
      const open = history.conversations.filter((v) => v.state === 'open' && v.assigned_staff_id === id)
      const waits = history.waits.filter(
        (w) => w.ended_at === null && open.some((v) => v.id === w.conversation_id),
      )
      return {
        staff_id: id,
        name: id === null ? null : history.names.get(id)!,
        waiting: toConversationIds(waits).size,
        assigned_open: open.length,
        window_expired: open.filter(
          (v) => v.last_inbound_at !== null && v.last_inbound_at + 24 * 3_600_000 <= history.now,
        ).length,
        oldest_wait_seconds:
          waits.length === 0 ? null : (history.now - Math.min(...waits.map((w) => w.since))) / 1000,
      }
    })
    .filter((row) => row.assigned_open > 0)
    .toSorted((a, b) => b.assigned_open - a.assigned_open || compareNames(a, b))
