import type { ReportDays } from './oracle.ts'
import type { HistoryRows } from './history.ts'

/** Rows of the history with what the staff report needs besides. Times are milliseconds since 1970. */
export type StaffHistory = HistoryRows & { names: ReadonlyMap<string, string>; assignedAt: ReadonlyMap<string, number> }

const round = (value: number, digits: number): number => Math.round(value * 10 ** digits) / 10 ** digits
const averageSeconds = (milliseconds: readonly number[]): number | null =>
  milliseconds.length === 0
    ? null
    : round(milliseconds.reduce((sum, ms) => sum + ms, 0) / milliseconds.length / 1000, 3)
const idsOf = (rows: readonly { conversation_id: string }[]): Set<string> =>
  new Set(rows.map((row) => row.conversation_id))

const rowOf = (raw: StaffHistory, { on }: ReportDays, id: string | null) => {
  const messages = raw.messages.filter(
    (m) =>
      m.direction === 'outbound' &&
      ['sent', 'delivered', 'read'].includes(m.status) &&
      m.staff_id === id &&
      on(m.created_at),
  )
  const closes = raw.episodes.filter((e) => e.closed_at !== null && e.closed_by === id && on(e.closed_at))
  const ended = raw.waits.filter((w) => w.ended_at !== null && w.ended_by === id && on(w.ended_at))
  const firsts = ended.filter(
    (w) =>
      w.kind === 'first_response' &&
      raw.episodes.some(
        (e) => e.conversation_id === w.conversation_id && e.n === w.episode && e.first_response_at !== null,
      ),
  )
  const reopened = raw.episodes.filter(
    (e) =>
      on(e.opened_at) &&
      raw.episodes.some(
        (p) =>
          p.conversation_id === e.conversation_id &&
          p.n === e.n - 1 &&
          p.closed_at !== null &&
          p.closed_by === id,
      ),
  )
  const held = raw.conversations
    .filter(
      (v) =>
        v.assigned_staff_id === id &&
        (id !== null
          ? on(raw.assignedAt.get(v.id) ?? null)
          : raw.episodes.some(
              (e) =>
                e.conversation_id === v.id &&
                e.closed_at === null &&
                e.first_response_at === null &&
                on(e.opened_at),
            )),
    )
    .map((v) => v.id)
  const [replied, closed] = [idsOf(messages), idsOf(closes)]
  const handled = new Set([...replied, ...closed])
  const all = new Set([...handled, ...held])
  const clocks = [
    ...ended.map((w) => ({ metric: w.kind, due: w.due_at, at: w.ended_at! })),
    ...closes.map((e) => ({ metric: 'resolution', due: e.resolution_due_at, at: e.closed_at! })),
  ].filter((c) => c.due !== null)
  const late = clocks.filter((c) => c.at > c.due!)
  const lateOf = (metric: string): number => late.filter((c) => c.metric === metric).length
  return {
    there: all.size + ended.length + reopened.length > 0,
    row: {
      staff_id: id,
      name: id === null ? null : raw.names.get(id)!,
      conversations: all.size,
      handled: handled.size,
      closed: closed.size,
      replied: replied.size,
      untouched: all.size - handled.size,
      messages_sent: messages.length,
      reopened: idsOf(reopened).size,
      avg_first_response_seconds: averageSeconds(firsts.map((w) => w.ended_at! - w.since)),
      avg_time_to_close_seconds: averageSeconds(closes.map((e) => e.closed_at! - e.opened_at)),
      sla_breaches: {
        first_response: lateOf('first_response'),
        next_response: lateOf('next_response'),
        resolution: lateOf('resolution'),
        total: late.length,
      },
      sla_compliance_rate:
        clocks.length === 0 ? null : round((clocks.length - late.length) / clocks.length, 4),
      reason_coverage:
        closes.length === 0
          ? null
          : round(closes.filter((e) => e.close_reason !== null).length / closes.length, 4),
    },
  }
}

const byName = (
  a: { name: string | null; staff_id: string | null },
  b: { name: string | null; staff_id: string | null },
): number =>
  (a.name ?? '\uffff').localeCompare(b.name ?? '\uffff', 'en') || Number(a.staff_id) - Number(b.staff_id)

/** The rows of the report, member by member. */
export const countStaffRows = (raw: StaffHistory, days: ReportDays) =>
  [null, ...raw.names.keys()]
    .map((id) => rowOf(raw, days, id))
    .filter(({ there }) => there)
    .map(({ row }) => row)
    .toSorted((a, b) => b.conversations - a.conversations || byName(a, b))

/** What everybody has now; windows of 24 hours. */
export const countWorkload = (raw: StaffHistory) =>
  [null, ...raw.names.keys()]
    .map((id) => {
      const open = raw.conversations.filter((v) => v.state === 'open' && v.assigned_staff_id === id)
      const waits = raw.waits.filter(
        (w) => w.ended_at === null && open.some((v) => v.id === w.conversation_id),
      )
      return {
        staff_id: id,
        name: id === null ? null : raw.names.get(id)!,
        waiting: idsOf(waits).size,
        assigned_open: open.length,
        window_expired: open.filter(
          (v) => v.last_inbound_at !== null && v.last_inbound_at + 24 * 3_600_000 <= raw.now,
        ).length,
        oldest_wait_seconds:
          waits.length === 0 ? null : (raw.now - Math.min(...waits.map((w) => w.since))) / 1000,
      }
    })
    .filter((row) => row.assigned_open > 0)
    .toSorted((a, b) => b.assigned_open - a.assigned_open || byName(a, b))
