import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { isOnChannels, isWithin, type TimeRange, type VisibleChannels } from './reports.ts'

// The work of staff members in a time range: messages, replies and closes. Member 0 is the system, or a
// conversation without an assigned member; member -1 the phone app, whose messages are the only ones to customers
// without a staff member.

/** Who ended a wait. The system ends one only with its episode. `table`: name of `reply_waits` in the statement. */
export const endedBy = (table: string): string => `coalesce(${table}.ended_by, case when exists (
      select from conversation_episodes x where x.workspace_id = ${table}.workspace_id
        and x.conversation_id = ${table}.conversation_id and x.n = ${table}.episode
        and x.closed_by is null and x.closed_at <= ${table}.ended_at) then 0 else -1 end)`

type Numbers<K extends string> = { [N in K]: number }
/** Converts rows of counts, which the driver returns as text, to numbers by member. */
const toFigures = <K extends string>(
  rows: readonly (Record<K, string | number> & { member: string })[],
  names: readonly K[],
): Map<string, Numbers<K>> =>
  new Map(
    rows.map((row) => [
      row.member,
      Object.fromEntries(names.map((name) => [name, Number(row[name])])) as Numbers<K>,
    ]),
  )

/**
 * Runs `work` in a transaction that plans each statement for its range, with memory for hundreds of thousands
 * of conversations, which spill to disk with PostgreSQL's default of 4 MB. Without parallel workers: the parts
 * of a report run side by side, and workers of one take the processor from the other.
 */
const withSettings = async <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> => {
  if (!db.isTransaction) return await db.transaction().execute((tx) => withSettings(tx, work))
  await sql`
    select set_config('work_mem', '64MB', true), set_config('plan_cache_mode', 'force_custom_plan', true),
      set_config('max_parallel_workers_per_gather', '0', true)`.execute(db)
  return await work(db)
}

const workNames = [
  'conversations',
  'handled',
  'replied',
  'messages',
  'closes',
  'with_reason',
  'seconds',
  'met',
] as const
/** `seconds`: total from opening to closing. `met`: closes before their resolution was due. */
export type WorkFigures = Numbers<(typeof workNames)[number]>

/**
 * Counts conversations by member, each once: replied to or closed in the range, or assigned in the range and
 * still assigned. Member 0 also has those that were opened in the range, wait for a first response and are
 * unassigned. `messages`: those that were sent and did not fail. `closes`: each close.
 *
 * Each member's ids are collected into an array and made distinct there, which was measured a quarter cheaper
 * than one hash of all members' conversations.
 */
export const loadWorkFigures = (
  db: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<Map<string, WorkFigures>> =>
  withSettings(db, async (tx) => {
    const onChannels = (column: string) => isOnChannels(column, workspaceId, channels)
    const distinct = (first: string, second: string) => sql`
      select array_agg(distinct id) as ids from (
        select unnest(${sql.ref(first)}) as id union all select unnest(${sql.ref(second)})) as u`
    const { rows } = await sql<Record<keyof WorkFigures, string> & { member: string }>`
    with sent as (
      select coalesce(staff_id, -1) as member, count(*) as messages, array_agg(conversation_id) as ids
      from messages
      where workspace_id = ${workspaceId} and direction = 'outbound'
        and status in ('read', 'delivered', 'sent') and ${isWithin('created_at', range)}
        ${onChannels('conversation_id')} group by 1
    ), closed as (
      select coalesce(closed_by, 0) as member, count(*) as closes,
        count(*) filter (where close_reason <> '') as with_reason,
        extract(epoch from sum(closed_at - opened_at)) as seconds,
        count(*) filter (where resolution_due_at >= closed_at) as met, array_agg(conversation_id) as ids
      from conversation_episodes
      where workspace_id = ${workspaceId} and ${isWithin('closed_at', range)}
        ${onChannels('conversation_id')} group by 1
    ), others as (
      select member, array_agg(id) as ids from (
        select assigned_staff_id as member, id from conversations
        where workspace_id = ${workspaceId} and assigned_staff_id is not null
          and ${isWithin('assigned_at', range)} ${onChannels('id')}
        union all
        select 0::bigint, e.conversation_id from conversation_episodes e
        join conversations v on v.workspace_id = e.workspace_id and v.id = e.conversation_id
        where e.workspace_id = ${workspaceId} and e.closed_at is null and e.first_response_at is null
          and ${isWithin('e.opened_at', range)} and v.assigned_staff_id is null
          ${onChannels('e.conversation_id')}
      ) as u group by 1
    )
    select member, coalesce(cardinality(every.ids), 0) as conversations,
      coalesce(cardinality(handled.ids), 0) as handled, coalesce(cardinality(replied.ids), 0) as replied,
      coalesce(messages, 0) as messages, coalesce(closes, 0) as closes,
      coalesce(with_reason, 0) as with_reason, coalesce(seconds, 0) as seconds, coalesce(met, 0) as met
    from sent full join closed using (member) full join others using (member)
    cross join lateral (
      select array_agg(distinct id) as ids from (select unnest(sent.ids) as id) as u) as replied
    cross join lateral (${distinct('replied.ids', 'closed.ids')}) as handled
    cross join lateral (${distinct('handled.ids', 'others.ids')}) as every`.execute(tx)
    return toFigures(rows, workNames)
  })

/** Counts each reopening in the range, by the member who had closed the conversation. */
const loadReopenedFigures = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<Map<string, { reopened: number }>> => {
  const { rows } = await sql<{ member: string; reopened: string }>`
    select coalesce(p.closed_by, 0) as member, count(*) as reopened
    from conversation_episodes e
    join conversation_episodes p
      on p.workspace_id = e.workspace_id and p.conversation_id = e.conversation_id and p.n = e.n - 1
    where e.workspace_id = ${workspaceId} and e.n > 1 and ${isWithin('e.opened_at', range)}
      and p.closed_at is not null ${isOnChannels('e.conversation_id', workspaceId, channels)}
    group by 1`.execute(tx)
  return toFigures(rows, ['reopened'])
}

const responseNames = ['firsts', 'seconds', 'met'] as const
/**
 * `firsts`: first responses, after `seconds` in total; a wait that ended with a close had none. `met`: waits
 * that ended before they were due.
 */
export type ResponseFigures = Numbers<(typeof responseNames)[number]>

/** Counts waits that ended in the range by the member who ended them. Joins episodes without a response. */
const loadResponseFigures = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<Map<string, ResponseFigures>> => {
  const { rows } = await sql<Record<keyof ResponseFigures, string> & { member: string }>`
    select ${sql.raw(endedBy('r'))} as member,
      count(*) filter (where r.kind = 'first_response' and e.n is null) as firsts,
      coalesce(extract(epoch from sum(r.ended_at - r.since)
        filter (where r.kind = 'first_response' and e.n is null)), 0) as seconds,
      count(*) filter (where r.due_at >= r.ended_at) as met
    from reply_waits r
    left join conversation_episodes e
      on e.workspace_id = r.workspace_id and e.conversation_id = r.conversation_id and e.n = r.episode
        and r.kind = 'first_response' and e.first_response_at is null
    where r.workspace_id = ${workspaceId} and ${isWithin('r.ended_at', range)}
      ${isOnChannels('r.conversation_id', workspaceId, channels)} group by 1`.execute(tx)
  return toFigures(rows, responseNames)
}

/** Few clocks run out without being stopped: a look-up of each is cheaper than a join of all conversations. */
const ASSIGNED = `(select assigned_staff_id from conversations as v
        where v.workspace_id = k.workspace_id and v.id = k.conversation_id)`

const breachNames = ['first_response', 'next_response', 'resolution'] as const
/** Clocks that ran out, by what was due. */
export type BreachFigures = Numbers<(typeof breachNames)[number]>

/**
 * Counts the clocks that ran out in the range without a reply, or a close, in time: those of `countSlaBreaches`.
 * They are of the member who stopped them late; while they run, of the one to whom the conversation is assigned.
 */
const loadBreachFigures = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  now: string,
  channels: VisibleChannels,
): Promise<Map<string, BreachFigures>> => {
  const clocks = (table: string, what: string, dueAt: string, metAt: string, metBy: string) => {
    const due = (member: string) => sql`
      select ${sql.raw(member)} as member, ${sql.raw(what)} as what from ${sql.table(table)} as k
      where workspace_id = ${workspaceId} and ${isWithin(dueAt, range)}
        ${isOnChannels('conversation_id', workspaceId, channels)}`
    return sql`
      ${due(metBy)} and ${sql.ref(dueAt)} < ${sql.ref(metAt)}
      union all
      ${due(ASSIGNED)} and ${sql.ref(metAt)} is null and ${sql.ref(dueAt)} < ${now}::timestamptz`
  }
  const { rows } = await sql<Record<keyof BreachFigures, string> & { member: string }>`
    select coalesce(member, 0) as member, count(*) filter (where what = 'first_response') as first_response,
      count(*) filter (where what = 'next_response') as next_response,
      count(*) filter (where what = 'resolution') as resolution
    from (
      ${clocks('reply_waits', 'kind', 'due_at', 'ended_at', endedBy('k'))}
      union all
      ${clocks('conversation_episodes', `'resolution'`, 'resolution_due_at', 'closed_at', 'closed_by')}
    ) as c group by 1`.execute(tx)
  return toFigures(rows, breachNames)
}

/** What members reopened, answered and let run out, by member. */
export type TimeFigures = {
  reopened: Map<string, { reopened: number }>
  responses: Map<string, ResponseFigures>
  breaches: Map<string, BreachFigures>
}

/** Loads the figures of reopenings, responses and service levels. */
export const loadTimeFigures = (
  db: Db,
  workspaceId: string,
  range: TimeRange,
  now: string,
  channels: VisibleChannels,
): Promise<TimeFigures> =>
  withSettings(db, async (tx) => {
    const [reopened, responses, breaches] = await Promise.all([
      loadReopenedFigures(tx, workspaceId, range, channels),
      loadResponseFigures(tx, workspaceId, range, channels),
      loadBreachFigures(tx, workspaceId, range, now, channels),
    ])
    return { reopened, responses, breaches }
  })

const workloadNames = ['waiting', 'assigned_open', 'window_expired'] as const
/** `oldest`: since when the longest waiting customer waits; null when none waits. */
export type WorkloadFigures = Numbers<(typeof workloadNames)[number]> & { oldest: string | null }

/**
 * How long a customer's message keeps the reply window of a channel type open, in milliseconds; `adMs`: one
 * that came from an ad; null when it does not open it.
 */
export type WindowRule = { type: string; ms: number; adMs: number | null }

/**
 * Counts open conversations at this time by the assigned member. The windows are those of
 * `server/domains/inbox/window.ts`, in SQL, since conversations may be many.
 */
export const loadWorkloadFigures = async (
  tx: Db,
  workspaceId: string,
  rules: readonly WindowRule[],
  now: string,
  channels: VisibleChannels,
): Promise<Map<string, WorkloadFigures>> => {
  const { rows } = await sql<
    Record<(typeof workloadNames)[number], string> & { member: string; oldest: string | null }
  >`
    with waits as materialized (
      select conversation_id as id, min(since) as since from reply_waits
      where workspace_id = ${workspaceId} and ended_at is null group by 1
    )
    select coalesce(v.assigned_staff_id, 0) as member, count(*) as assigned_open,
      count(w.id) as waiting, min(w.since) as oldest,
      count(*) filter (where r.type is not null and v.last_inbound_at is not null and least(
        greatest(v.last_inbound_at + r.ms * interval '1 millisecond',
          v.free_entry_at + r.ad_ms * interval '1 millisecond'),
        case when v.window_corrected_at >= v.last_inbound_at then v.window_corrected_at end
      ) <= ${now}::timestamptz) as window_expired
    from conversations v
    left join waits w on w.id = v.id
    left join channels h on h.workspace_id = v.workspace_id and h.id = v.channel_id
    left join unnest(${rules.map((r) => r.type)}::text[], ${rules.map((r) => r.ms)}::float8[],
      ${rules.map((r) => r.adMs)}::float8[]) as r (type, ms, ad_ms) on r.type = h.type
    where v.workspace_id = ${workspaceId} and v.facet = any('{0,2,4,6,8,10}'::smallint[])
      ${channels === null ? sql`` : sql`and v.channel_id = any(${channels}::bigint[])`} group by 1`.execute(
    tx,
  )
  const counts = toFigures(rows, workloadNames)
  return new Map(rows.map(({ member, oldest }) => [member, { ...counts.get(member)!, oldest }]))
}

/** Returns the names of all staff, disabled ones too, by id and in the order of ids. */
export const loadStaffNames = async (tx: Db, workspaceId: string): Promise<Map<string, string>> => {
  const rows = await tx
    .selectFrom('staff')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}
