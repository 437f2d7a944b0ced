import { sql } from 'kysely'
import type { Db, MessageStatus } from './database.ts'
import { storableTime } from './times.ts'

/** Instants, ISO 8601 UTC; the end is exclusive. */
export type Between = { start: string; end: string }

const within = (column: string, { start, end }: Between) =>
  sql`${sql.ref(column)} >= ${storableTime(start)}::timestamptz and ${sql.ref(column)} < ${storableTime(end)}::timestamptz`

/** Messages to customers written then, by how far they have come now. */
export const countOutbound = async (
  tx: Db,
  workspaceId: string,
  between: Between,
): Promise<Map<MessageStatus, number>> => {
  const { rows } = await sql<{ status: MessageStatus; n: string }>`
    select status, count(*) as n from messages where workspace_id = ${workspaceId} and direction = 'outbound' and ${within('created_at', between)} group by status`.execute(
    tx,
  )
  return new Map(rows.map(({ status, n }) => [status, Number(n)]))
}

/** `median`: seconds from opening to closing, null without a close. */
export type Closes = { closes: number; conversations: number; median: number | null }

/** Episodes that were closed then. */
export const countCloses = async (tx: Db, workspaceId: string, between: Between): Promise<Closes> => {
  // Sorting intervals was measured a third quicker than sorting numbers made of them.
  const {
    rows: [row],
  } = await sql<{ closes: string; conversations: string; median: string | null }>`
    select closes, conversations, extract(epoch from median) as median from (
      select count(*) as closes, count(distinct conversation_id) as conversations, percentile_cont(0.5) within group (order by closed_at - opened_at) as median
      from conversation_episodes where workspace_id = ${workspaceId} and ${within('closed_at', between)}) as c`.execute(
    tx,
  )
  return {
    closes: Number(row!.closes),
    conversations: Number(row!.conversations),
    median: row!.median === null ? null : Number(row!.median),
  }
}

/** Episodes but the first that were opened then. */
export const countReopened = async (tx: Db, workspaceId: string, between: Between): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
    select count(*) as n from conversation_episodes where workspace_id = ${workspaceId} and n > 1 and ${within('opened_at', between)}`.execute(
        tx,
      )
    ).rows[0]!.n,
  )

/**
 * Customers who wait for an answer at this time by how long they do, the shortest waits first: each bound,
 * in hours, is of the next bucket.
 */
export const countWaiting = async (
  tx: Db,
  workspaceId: string,
  now: string,
  bounds: readonly number[],
): Promise<number[]> => {
  const { rows } = await sql<{ bucket: number; n: string }>`
    select width_bucket(extract(epoch from ${now}::timestamptz - since)::double precision, ${bounds.map((hours) => hours * 3600)}::double precision[]) as bucket, count(*) as n
    from reply_waits where workspace_id = ${workspaceId} and ended_at is null group by 1`.execute(tx)
  const counts = new Map(rows.map(({ bucket, n }) => [bucket, Number(n)]))
  return [0, ...bounds].map((_, bucket) => counts.get(bucket) ?? 0)
}

/** Open conversations that neither a staff member nor a team has. */
export const countUnassigned = async (tx: Db, workspaceId: string): Promise<number> =>
  // By the numbers of such conversations in their index (migration 0003), whether customers wait or not.
  Number(
    (
      await sql<{
        n: string
      }>`select count(*) as n from conversations where workspace_id = ${workspaceId} and facet = any('{0,4,8}'::smallint[])`.execute(
        tx,
      )
    ).rows[0]!.n,
  )

/** Contacts made then and there still; counts no further than `most`. */
export const countNewContacts = async (
  tx: Db,
  workspaceId: string,
  between: Between,
  most: number,
): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
    select count(*) as n from (select from contacts where workspace_id = ${workspaceId} and ${within('created_at', between)} limit ${most}) as c`.execute(
        tx,
      )
    ).rows[0]!.n,
  )

export type BroadcastSums = {
  started: number
  sent: number
  delivered: number
  read: number
  failed: number
  opted_out: number
}

/**
 * Broadcasts that were started then, and their recipients by how far the message came, each counted once;
 * `opted_out` beside it.
 */
export const sumBroadcasts = async (
  tx: Db,
  workspaceId: string,
  between: Between,
): Promise<BroadcastSums> => {
  // Where a broadcast was started, that is when it begins, and there is an index of it.
  const {
    rows: [row],
  } = await sql<Record<keyof BroadcastSums, string>>`
    select count(distinct b.id) as started, coalesce(sum(k.sent), 0) as sent, coalesce(sum(k.delivered), 0) as delivered, coalesce(sum(k.read), 0) as read,
      coalesce(sum(k.failed), 0) as failed, coalesce(sum(k.opted_out), 0) as opted_out
    from broadcasts b left join broadcast_counts k on k.workspace_id = b.workspace_id and k.broadcast_id = b.id
    where b.workspace_id = ${workspaceId} and b.started_at is not null and ${within('b.begins_at', between)}`.execute(
    tx,
  )
  return Object.fromEntries(Object.entries(row!).map(([name, n]) => [name, Number(n)])) as BroadcastSums
}

/** Clocks of service levels that ran out then: nobody had answered, or closed, in time. */
export const countBreaches = async (
  tx: Db,
  workspaceId: string,
  between: Between,
  now: string,
): Promise<number> => {
  const due = (table: string, at: string, stopped: string) => sql`
    (select count(*) from ${sql.table(table)} where workspace_id = ${workspaceId} and ${within(at, between)} and ${sql.ref(at)} < ${sql.ref(stopped)})
    + (select count(*) from ${sql.table(table)} where workspace_id = ${workspaceId} and ${within(at, between)} and ${sql.ref(stopped)} is null and ${sql.ref(at)} < ${now}::timestamptz)`
  const { rows } = await sql<{ n: string }>`
    select ${due('reply_waits', 'due_at', 'ended_at')} + ${due('conversation_episodes', 'resolution_due_at', 'closed_at')} as n`.execute(
    tx,
  )
  return Number(rows[0]!.n)
}

/** Whether a key that works now is marked as an AI agent's. */
export const hasAgentKey = async (tx: Db, workspaceId: string, now: string): Promise<boolean> =>
  (
    await sql`select 1 from api_keys where workspace_id = ${workspaceId} and agent and revoked_at is null and (expires_at is null or expires_at > ${now}::timestamptz) limit 1`.execute(
      tx,
    )
  ).rows.length > 0
