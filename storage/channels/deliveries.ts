import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { INDEXED_PLAN } from '../client/driver.ts'

/**
 * The queue of replies to bridged channels. A row is deleted when the bridge took the reply, or when it
 * failed for good. All times are real times.
 */

export type NewChannelDelivery = {
  message_id: string
  channel_id: string
  conversation_id: string
  body: string
}

/** Adds a reply, due now. `expiresInSeconds`: it fails when its channel takes no replies for so long. */
export const insertChannelDelivery = async (
  tx: Db,
  workspaceId: string,
  { message_id, channel_id, conversation_id, body }: NewChannelDelivery,
  expiresInSeconds: number,
): Promise<void> => {
  await sql`
    insert into channel_deliveries (workspace_id, message_id, channel_id, conversation_id, body,
      next_attempt_at, expires_at)
    values (${workspaceId}::bigint, ${message_id}::bigint, ${channel_id}::bigint, ${conversation_id}::bigint,
      ${body}, clock_timestamp(), clock_timestamp() + ${expiresInSeconds}::float8 * interval '1 second')`.execute(
    tx,
  )
}

/**
 * A reply that this process has leased. `lease`: its end, as the database writes it. `url` and secrets are
 * null when the channel takes no replies now. `pending` is false when the message is known to be sent or
 * failed already; `error` is of the last attempt.
 */
export type ClaimedChannelDelivery = {
  workspace_id: string
  message_id: string
  channel_id: string
  body: string
  attempts: number
  error: string | null
  lease: string
  pending: boolean
  expired: boolean
  url: string | null
  signing_secrets: string | null
}

/** Whether a reply `w` is due, not leased, and the earliest of its conversation. */
const isFirstDue =
  sql.raw(`w.next_attempt_at <= now() and coalesce(w.lease_until <= now(), true) and not exists (
          select from channel_deliveries e where e.workspace_id = w.workspace_id
            and e.conversation_id = w.conversation_id and e.message_id < w.message_id)`)

/**
 * Leases replies that are due, of all workspaces: the earliest of each conversation, so that they arrive in
 * order, at most `perChannel` of one channel at a time on all servers together. Those of channels that take no
 * replies wait until they expire. Each channel's queue is read by itself, up to what it may have: a backlog that waits
 * costs nothing.
 */
export const claimChannelDeliveries = async (
  db: Db,
  leaseSeconds: number,
  perChannel: number,
  limit: number,
): Promise<ClaimedChannelDelivery[]> =>
  (
    await sql<ClaimedChannelDelivery>`${sql.raw(INDEXED_PLAN)}
    with recursive queues as (
      (select workspace_id, channel_id from channel_deliveries order by workspace_id, channel_id limit 1)
      union all
      select d.workspace_id, d.channel_id from queues q cross join lateral (
        select workspace_id, channel_id from channel_deliveries
        where (workspace_id, channel_id) > (q.workspace_id, q.channel_id)
        order by workspace_id, channel_id limit 1
      ) as d
    ), busy as (
      select workspace_id, channel_id, count(*) as n from channel_deliveries
      where lease_until is not null and lease_until > now()
      group by workspace_id, channel_id
    ), ready as (
      select q.workspace_id, q.channel_id, coalesce(h.status = 'connected' and h.url is not null, false) as open,
        ${perChannel}::int - coalesce(b.n, 0) as free
      from queues q
      left join channels h on h.workspace_id = q.workspace_id and h.id = q.channel_id
      left join busy b on b.workspace_id = q.workspace_id and b.channel_id = q.channel_id
    ), due as (
      select d.workspace_id, d.message_id, d.next_attempt_at from ready r cross join lateral (
        select w.workspace_id, w.message_id, w.next_attempt_at from channel_deliveries w
        where r.open and w.workspace_id = r.workspace_id and w.channel_id = r.channel_id and ${isFirstDue}
        order by w.next_attempt_at, w.message_id limit greatest(r.free, 0)
      ) as d
      union all
      select d.workspace_id, d.message_id, d.next_attempt_at from ready r cross join lateral (
        select w.workspace_id, w.message_id, w.next_attempt_at from channel_deliveries w
        where not r.open and w.workspace_id = r.workspace_id and w.channel_id = r.channel_id
          and w.expires_at <= now() and ${isFirstDue}
        order by w.expires_at limit greatest(r.free, 0)
      ) as d
    ), chosen as (
      select d.workspace_id, d.message_id from channel_deliveries d
      join due on due.workspace_id = d.workspace_id and due.message_id = d.message_id
      where coalesce(d.lease_until <= now(), true)
      order by due.next_attempt_at, d.message_id limit ${limit}::int
      for update of d skip locked
    ), claimed as (
      update channel_deliveries d
      set lease_until = date_trunc('milliseconds', now()) + ${leaseSeconds}::int * interval '1 second'
      from chosen c where d.workspace_id = c.workspace_id and d.message_id = c.message_id
      returning d.*
    )
    select c.workspace_id, c.message_id, c.channel_id, c.body, c.attempts, c.error, c.lease_until::text as lease,
      coalesce(m.status = 'pending', false) as pending,
      c.expires_at <= now() as expired,
      case when h.status = 'connected' then h.url end as url, s.signing_secrets
    from claimed c
    left join messages m on m.workspace_id = c.workspace_id and m.id = c.message_id
    left join channels h on h.workspace_id = c.workspace_id and h.id = c.channel_id
    left join channel_secrets s on s.workspace_id = c.workspace_id and s.channel_id = c.channel_id
    order by c.next_attempt_at, c.message_id`.execute(db)
  ).rows

type DeliveryKey = Pick<ClaimedChannelDelivery, 'workspace_id' | 'message_id'>

/**
 * Ends a delivery, or frees the place of one that another process has leased meanwhile. Returns false when it
 * was over already.
 */
export const deleteChannelDelivery = async (
  tx: Db,
  { workspace_id, message_id }: DeliveryKey,
): Promise<boolean> => {
  const { numDeletedRows } = await tx
    .deleteFrom('channel_deliveries')
    .where('workspace_id', '=', workspace_id)
    .where('message_id', '=', message_id)
    .executeTakeFirstOrThrow()
  return numDeletedRows === 1n
}

/**
 * Records a failed attempt, with the time until the next one. Later replies of the conversation wait as long.
 * Does nothing when another process has leased it meanwhile.
 */
export const postponeChannelDelivery = async (
  db: Db,
  { workspace_id, message_id, lease }: ClaimedChannelDelivery,
  retryInSeconds: number,
  error: string,
): Promise<void> => {
  await sql`
    with postponed as (
      update channel_deliveries set attempts = attempts + 1, error = ${error}, lease_until = null,
        next_attempt_at = clock_timestamp() + ${retryInSeconds}::float8 * interval '1 second'
      where workspace_id = ${workspace_id} and message_id = ${message_id}
        and lease_until = ${lease}::timestamptz
      returning workspace_id, conversation_id, message_id, next_attempt_at
    )
    update channel_deliveries d set next_attempt_at = p.next_attempt_at from postponed p
    where d.workspace_id = p.workspace_id and d.conversation_id = p.conversation_id
      and d.message_id > p.message_id and d.next_attempt_at < p.next_attempt_at`.execute(db)
}

/**
 * Seconds until the next reply becomes due; undefined when none does. Those that are due already wait for
 * another of their conversation or channel, whose end wakes the job.
 */
export const findSecondsUntilNextChannelDelivery = async (db: Db): Promise<number | undefined> => {
  const { rows } = await sql<{ seconds: number | null }>`${sql.raw(INDEXED_PLAN)}
    select extract(epoch from min(at) - now())::float8 as seconds from (
      (select next_attempt_at as at from channel_deliveries where next_attempt_at > now()
        order by next_attempt_at limit 1)
      union all
      (select lease_until from channel_deliveries where lease_until is not null and lease_until > now()
        order by lease_until limit 1)
    ) as next`.execute(db)
  return rows[0]?.seconds ?? undefined
}
