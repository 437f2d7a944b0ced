import { type RawBuilder, sql } from 'kysely'
import type { Db, MessageStatus } from '../database.ts'
import { toStorableTime } from '../values/times.ts'

/** A range of time, ISO 8601 UTC; the end is exclusive. */
export type TimeRange = { start: string; end: string }

/** The condition that a column lies in a range. */
export const isWithin = (column: string, { start, end }: TimeRange) => {
  const ref = sql.ref(column)
  return sql`
    ${ref} >= ${toStorableTime(start)}::timestamptz and ${ref} < ${toStorableTime(end)}::timestamptz`
}

/** The channels whose figures are counted; null: all, and what was on deleted channels. */
export type VisibleChannels = readonly string[] | null

/** Limits rows to conversations of these channels. `column`: that of the conversation's id. */
export const isOnChannels = (column: string, workspaceId: string, channels: VisibleChannels) =>
  channels === null
    ? sql``
    : sql`and ${sql.ref(column)} in (
        select id from conversations
        where workspace_id = ${workspaceId} and channel_id = any(${channels}::bigint[]))`

/** Runs a statement that selects one count as `n`. */
const countRows = async (tx: Db, statement: RawBuilder<unknown>): Promise<number> => {
  const { rows } = await sql<{ n: string }>`${statement}`.execute(tx)
  return Number(rows[0]!.n)
}

/** Counts outbound messages created in the range by their current status. */
export const countOutbound = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<Map<MessageStatus, number>> => {
  const { rows } = await sql<{ status: MessageStatus; n: string }>`
    select status, count(*) as n from messages
    where workspace_id = ${workspaceId} and direction = 'outbound' and ${isWithin('created_at', range)}
      ${isOnChannels('conversation_id', workspaceId, channels)}
    group by status`.execute(tx)
  return new Map(rows.map(({ status, n }) => [status, Number(n)]))
}

/** `median`: seconds from opening to closing; null without a close. */
export type CloseFigures = { closes: number; conversations: number; median: number | null }

/** Counts episodes that were closed in the range. */
export const loadCloseFigures = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<CloseFigures> => {
  // Sorting intervals was measured a third faster than sorting numbers made of them.
  const {
    rows: [row],
  } = await sql<{ closes: string; conversations: string; median: string | null }>`
    select closes, conversations, extract(epoch from median) as median from (
      select count(*) as closes, count(distinct conversation_id) as conversations,
        percentile_cont(0.5) within group (order by closed_at - opened_at) as median
      from conversation_episodes
      where workspace_id = ${workspaceId} and ${isWithin('closed_at', range)}
        ${isOnChannels('conversation_id', workspaceId, channels)}) as c`.execute(tx)
  return {
    closes: Number(row!.closes),
    conversations: Number(row!.conversations),
    median: row!.median === null ? null : Number(row!.median),
  }
}

/** Counts episodes after the first of their conversation that were opened in the range. */
export const countReopenings = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<number> =>
  countRows(
    tx,
    sql`select count(*) as n from conversation_episodes
      where workspace_id = ${workspaceId} and n > 1 and ${isWithin('opened_at', range)}
        ${isOnChannels('conversation_id', workspaceId, channels)}`,
  )

/**
 * Counts customers who wait for a reply by the duration of their wait, shortest first. `bounds`: lower bounds
 * of the buckets after the first, in hours.
 */
export const countWaitsByDuration = async (
  tx: Db,
  workspaceId: string,
  now: string,
  bounds: readonly number[],
  channels: VisibleChannels,
): Promise<number[]> => {
  const { rows } = await sql<{ bucket: number; n: string }>`
    select width_bucket(extract(epoch from ${now}::timestamptz - since)::double precision,
      ${bounds.map((hours) => hours * 3600)}::double precision[]) as bucket, count(*) as n
    from reply_waits where workspace_id = ${workspaceId} and ended_at is null
      ${isOnChannels('conversation_id', workspaceId, channels)} group by 1`.execute(tx)
  const counts = new Map(rows.map(({ bucket, n }) => [bucket, Number(n)]))
  return [0, ...bounds].map((_, bucket) => counts.get(bucket) ?? 0)
}

/** Counts open conversations that are assigned to neither a staff member nor a team. */
export const countUnassigned = async (
  tx: Db,
  workspaceId: string,
  channels: VisibleChannels,
): Promise<number> =>
  // The facets of such conversations with any reply status, for their index.
  countRows(
    tx,
    sql`select count(*) as n from conversations
      where workspace_id = ${workspaceId} and facet = any('{0,4,8}'::smallint[])
        ${channels === null ? sql`` : sql`and channel_id = any(${channels}::bigint[])`}`,
  )

/** Counts existing contacts that were created in the range, up to `limit`. */
export const countNewContacts = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  limit: number,
): Promise<number> =>
  countRows(
    tx,
    sql`select count(*) as n from (
      select from contacts where workspace_id = ${workspaceId} and ${isWithin('created_at', range)}
      limit ${limit}) as c`,
  )

export type BroadcastTotals = {
  started: number
  sent: number
  delivered: number
  read: number
  failed: number
  opted_out: number
}

/**
 * Counts broadcasts started in the range, and their recipients by message status, each once; `opted_out`
 * recipients have a status too.
 */
export const loadBroadcastTotals = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  channels: VisibleChannels,
): Promise<BroadcastTotals> => {
  // A started broadcast began when it was started, and begins_at is indexed.
  const {
    rows: [row],
  } = await sql<Record<keyof BroadcastTotals, string>>`
    select count(distinct b.id) as started, coalesce(sum(k.sent), 0) as sent,
      coalesce(sum(k.delivered), 0) as delivered, coalesce(sum(k.read), 0) as read,
      coalesce(sum(k.failed), 0) as failed, coalesce(sum(k.opted_out), 0) as opted_out
    from broadcasts b
    left join broadcast_counts k on k.workspace_id = b.workspace_id and k.broadcast_id = b.id
    where b.workspace_id = ${workspaceId} and b.started_at is not null
      and ${isWithin('b.begins_at', range)}
      ${channels === null ? sql`` : sql`and b.channel_id = any(${channels}::bigint[])`}`.execute(tx)
  return Object.fromEntries(Object.entries(row!).map(([name, n]) => [name, Number(n)])) as BroadcastTotals
}

/** Counts service level targets that fell due in the range without a reply, or a close, in time. */
export const countSlaBreaches = async (
  tx: Db,
  workspaceId: string,
  range: TimeRange,
  now: string,
  channels: VisibleChannels,
): Promise<number> => {
  const overdue = (table: string, dueAt: string, metAt: string) => {
    const due = sql`
      select count(*) from ${sql.table(table)}
      where workspace_id = ${workspaceId} and ${isWithin(dueAt, range)}
        ${isOnChannels('conversation_id', workspaceId, channels)}`
    return sql`
      (${due} and ${sql.ref(dueAt)} < ${sql.ref(metAt)})
      + (${due} and ${sql.ref(metAt)} is null and ${sql.ref(dueAt)} < ${now}::timestamptz)`
  }
  return countRows(
    tx,
    sql`select ${overdue('reply_waits', 'due_at', 'ended_at')}
      + ${overdue('conversation_episodes', 'resolution_due_at', 'closed_at')} as n`,
  )
}
