import { sql } from 'kysely'
import type { Db } from './database.ts'
import { CUSTOM_PLAN } from './driver.ts'
import type { Between } from './reports.ts'
import { storableTime } from './times.ts'

// What staff members did in some days, from what was written, answered and closed then. Member 0 is nobody:
// the system, or a conversation without a member.

// Spans of a day and of half a year want different plans.
const planned = sql.raw(CUSTOM_PLAN)
const within = (column: string, { start, end }: Between) =>
  sql`${sql.ref(column)} >= ${storableTime(start)}::timestamptz and ${sql.ref(column)} < ${storableTime(end)}::timestamptz`

type Numbers<K extends string> = { [N in K]: number }
/** Counts come as text; those that are measured as numbers or null. */
const numbered = <K extends string>(
  rows: readonly (Record<K, string | number> & { member: string })[],
  names: readonly K[],
): Map<string, Numbers<K>> =>
  new Map(
    rows.map((row) => [
      row.member,
      Object.fromEntries(names.map((name) => [name, Number(row[name])])) as Numbers<K>,
    ]),
  )

const handling = ['conversations', 'handled', 'closed', 'replied', 'messages'] as const
export type Handling = Numbers<(typeof handling)[number]>

/**
 * Memory for a hash of hundreds of thousands of conversations, which with PostgreSQL's own 4 MB goes to
 * disk in parts (measured: 2.5 times as long). No parallel workers: they hash the same conversations each
 * (measured: 1.5 times as long on two cores, which the other statements of the report want too).
 */
const roomy = async <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> => {
  if (!db.isTransaction) return await db.transaction().execute((tx) => roomy(tx, work))
  await sql`select set_config('work_mem', '64MB', true), set_config('max_parallel_workers_per_gather', '0', true)`.execute(
    db,
  )
  return await work(db)
}

/**
 * Conversations by member, each once: answered or closed then, or given to the member then and the member's
 * still. Nobody's are also those that were opened then, wait for their first answer, and are no member's.
 * `messages`: those that were sent and did not fail.
 */
export const readHandling = (db: Db, workspaceId: string, between: Between): Promise<Map<string, Handling>> =>
  roomy(db, async (tx) => {
    const { rows } = await sql<Record<keyof Handling, string> & { member: string }>`${planned}
    with pairs as (
      select member, id, sum(sent) as sent, max(closed) as closed from (
        select coalesce(staff_id, 0) as member, conversation_id as id, 1 as sent, 0 as closed from messages
        where workspace_id = ${workspaceId} and direction = 'outbound' and status in ('sent', 'delivered', 'read') and ${within('created_at', between)}
        union all
        select coalesce(closed_by, 0), conversation_id, 0, 1 from conversation_episodes where workspace_id = ${workspaceId} and ${within('closed_at', between)}
        union all
        select assigned_staff_id, id, 0, 0 from conversations where workspace_id = ${workspaceId} and assigned_staff_id is not null and ${within('assigned_at', between)}
        union all
        select 0::bigint, e.conversation_id, 0, 0 from conversation_episodes e join conversations v on v.workspace_id = e.workspace_id and v.id = e.conversation_id
        where e.workspace_id = ${workspaceId} and e.closed_at is null and e.first_response_at is null and ${within('e.opened_at', between)} and v.assigned_staff_id is null
      ) as u group by member, id
    )
    select member, count(*) as conversations, count(*) filter (where sent + closed > 0) as handled, sum(closed) as closed, count(*) filter (where sent > 0) as replied, sum(sent) as messages
    from pairs group by member`.execute(tx)
    return numbered(rows, handling)
  })

const closing = ['closes', 'with_reason', 'seconds', 'clocks', 'late'] as const
/** `seconds`: from opening to closing, in all. `clocks`: resolutions that had to be in time. */
export type Closing = Numbers<(typeof closing)[number]>

/** Closes by member, each time. */
export const readClosing = async (
  tx: Db,
  workspaceId: string,
  between: Between,
): Promise<Map<string, Closing>> => {
  const { rows } = await sql<Record<keyof Closing, string> & { member: string }>`${planned}
    select coalesce(closed_by, 0) as member, count(*) as closes, count(*) filter (where close_reason <> '') as with_reason, extract(epoch from sum(closed_at - opened_at)) as seconds,
      count(resolution_due_at) as clocks, count(*) filter (where resolution_due_at < closed_at) as late
    from conversation_episodes where workspace_id = ${workspaceId} and ${within('closed_at', between)} group by 1`.execute(
    tx,
  )
  return numbered(rows, closing)
}

/** Conversations by the member who had closed them, that were opened again then. */
export const readReopened = async (
  tx: Db,
  workspaceId: string,
  between: Between,
): Promise<Map<string, { reopened: number }>> => {
  const { rows } = await sql<{ member: string; reopened: string }>`${planned}
    select coalesce(p.closed_by, 0) as member, count(distinct e.conversation_id) as reopened from conversation_episodes e
    join conversation_episodes p on p.workspace_id = e.workspace_id and p.conversation_id = e.conversation_id and p.n = e.n - 1
    where e.workspace_id = ${workspaceId} and e.n > 1 and ${within('e.opened_at', between)} and p.closed_at is not null group by 1`.execute(
    tx,
  )
  return numbered(rows, ['reopened'])
}

const answering = ['firsts', 'seconds', 'first_clocks', 'first_late', 'next_clocks', 'next_late'] as const
/** `firsts`: first responses, in `seconds` in all; a wait that a close ended had none. */
export type Answering = Numbers<(typeof answering)[number]>

/**
 * Waits that ended then by the member who ended them. Joined are the episodes without a response, which are
 * few.
 */
export const readAnswering = async (
  tx: Db,
  workspaceId: string,
  between: Between,
): Promise<Map<string, Answering>> => {
  const { rows } = await sql<Record<keyof Answering, string> & { member: string }>`${planned}
    select coalesce(r.ended_by, 0) as member, count(*) filter (where r.kind = 'first_response' and e.n is null) as firsts,
      coalesce(extract(epoch from sum(r.ended_at - r.since) filter (where r.kind = 'first_response' and e.n is null)), 0) as seconds,
      count(r.due_at) filter (where r.kind = 'first_response') as first_clocks, count(*) filter (where r.kind = 'first_response' and r.due_at < r.ended_at) as first_late,
      count(r.due_at) filter (where r.kind = 'next_response') as next_clocks, count(*) filter (where r.kind = 'next_response' and r.due_at < r.ended_at) as next_late
    from reply_waits r left join conversation_episodes e on e.workspace_id = r.workspace_id and e.conversation_id = r.conversation_id and e.n = r.episode
      and r.kind = 'first_response' and e.first_response_at is null
    where r.workspace_id = ${workspaceId} and ${within('r.ended_at', between)} group by 1`.execute(tx)
  return numbered(rows, answering)
}

const working = ['waiting', 'assigned_open', 'window_expired'] as const
/** `oldest`: since when the customer waits who waits longest. */
export type Workload = Numbers<(typeof working)[number]> & { oldest: string | null }

/**
 * How long a customer's message, and one that came from an ad, keep the window of a channel's type open, in
 * milliseconds; null: it does nothing.
 */
export type WindowRule = { type: string; ms: number; adMs: number | null }

/**
 * Open conversations by the member who has them, at this time. The windows are those of
 * `server/inbox/window.ts`, said in SQL: there may be many.
 */
export const readWorkload = async (
  tx: Db,
  workspaceId: string,
  rules: readonly WindowRule[],
  now: string,
): Promise<Map<string, Workload>> => {
  const { rows } = await sql<
    Record<(typeof working)[number], string> & { member: string; oldest: string | null }
  >`
    with waits as materialized (select conversation_id as id, min(since) as since from reply_waits where workspace_id = ${workspaceId} and ended_at is null group by 1)
    select coalesce(v.assigned_staff_id, 0) as member, count(*) as assigned_open, count(w.id) as waiting, min(w.since) as oldest,
      count(*) filter (where least(
        greatest(v.last_inbound_at + r.ms * interval '1 millisecond', v.free_entry_at + r.ad_ms * interval '1 millisecond'),
        case when v.window_corrected_at >= v.last_inbound_at then v.window_corrected_at end) <= ${now}::timestamptz and r.type is not null and v.last_inbound_at is not null) as window_expired
    from conversations v left join waits w on w.id = v.id left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
    left join unnest(${rules.map((r) => r.type)}::text[], ${rules.map((r) => r.ms)}::float8[], ${rules.map((r) => r.adMs)}::float8[]) as r (type, ms, ad_ms) on r.type = h.type
    where v.workspace_id = ${workspaceId} and v.facet = any('{0,2,4,6,8,10}'::smallint[]) group by 1`.execute(
    tx,
  )
  const counts = numbered(rows, working)
  return new Map(rows.map(({ member, oldest }) => [member, { ...counts.get(member)!, oldest }]))
}

/** Names of all staff, those who may do nothing any more among them, in the order of their ids. */
export const readStaffNames = async (tx: Db, workspaceId: string): Promise<Map<string, string>> =>
  new Map(
    (
      await sql<{
        id: string
        name: string
      }>`select id, name from staff where workspace_id = ${workspaceId} order by id`.execute(tx)
    ).rows.map(({ id, name }) => [id, name]),
  )
