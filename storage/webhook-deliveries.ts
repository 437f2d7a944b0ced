import { sql } from 'kysely'
import type { Db, DeliveryTrigger } from './database.ts'
import { CUSTOM_PLAN } from './driver.ts'
import { storableTime } from './times.ts'

/**
 * A delivery that this process has leased, with all that is needed to send it. `lease`: its end, as the
 * database writes it.
 */
export type ClaimedDelivery = {
  workspace_id: string
  id: string
  endpoint_id: string
  event_id: string
  event_type: string
  trigger: DeliveryTrigger
  attempts: number
  failures: number
  lease: string
  /** Seconds that it waited beyond the time at which it was due. */
  waited: number
  /** JSON of the event's data; null when the event is no longer kept. */
  data: string | null
  occurred_at: string
  url: string
  payload_format: 'envelope' | 'data'
  custom_headers: string
  signing_secret: string
  old_secret: string | null
  old_secret_until: string | null
}

/**
 * Deliveries that one claim takes; written into the statement, so that the planner knows how few they are.
 */
export const MOST_CLAIMED = 256

/** Deliveries that are still to be made, in the order in which endpoints and times stand in their index. */
const open = sql.raw(`status in ('pending', 'failed')`)

/**
 * Leases deliveries that are due, the oldest of each endpoint, for so many seconds; other servers pass them
 * over, and take them when the lease is over.
 * `free`: how many more an endpoint may have under way here, where it is not `each`. A paused endpoint gets
 * one, and the next when its probe is due.
 *
 * Each endpoint's queue is looked up by itself, so neither the backlog of one nor rows that are done cost
 * another anything. The endpoints that have a queue are found by leaps in the same index (a "loose index
 * scan", which PostgreSQL 15 does not do by itself). A lease changes no indexed column: the row's new
 * version stays in its page (HOT), at its place in the queue. Planned anew each time, which takes 1 ms: a
 * plan made while the table was empty scans all of it, measured 205 ms instead of 6 with 2000 rows, until
 * statistics are gathered.
 */
export const claimDeliveries = async (
  db: Db,
  leaseSeconds: number,
  each: number,
  free: ReadonlyMap<string, number>,
): Promise<ClaimedDelivery[]> =>
  (
    await sql<ClaimedDelivery>`${sql.raw(CUSTOM_PLAN)}
    with recursive queues as (
      (select workspace_id, endpoint_id from webhook_deliveries where ${open} order by workspace_id, endpoint_id limit 1)
      union all
      select d.workspace_id, d.endpoint_id from queues q cross join lateral (
        select workspace_id, endpoint_id from webhook_deliveries
        where ${open} and (workspace_id, endpoint_id) > (q.workspace_id, q.endpoint_id) order by workspace_id, endpoint_id limit 1) as d
    ), ready as (
      select e.workspace_id, e.id, e.status, case when e.status = 'paused' then 1 else coalesce(b.free, ${each}::int) end as free
      from queues q join webhook_endpoints e on e.workspace_id = q.workspace_id and e.id = q.endpoint_id
      left join unnest(${[...free.keys()]}::text[], ${[...free.values()]}::int[]) as b (id, free) on b.id = e.id
      where e.deleted_at is null and (e.status = 'active' or (e.status = 'paused' and coalesce(e.next_probe_at <= now(), true)))
    ), due as (
      select d.workspace_id, d.id, r.id as endpoint_id, r.status from ready r cross join lateral (
        select workspace_id, id, next_attempt_at from webhook_deliveries
        where workspace_id = r.workspace_id and endpoint_id = r.id and ${open} and next_attempt_at <= now() and coalesce(lease_until <= now(), true)
        order by next_attempt_at limit least(r.free, (select greatest(1, ${sql.lit(MOST_CLAIMED)} / count(*)) from ready)) for update skip locked) as d
      order by d.next_attempt_at limit ${sql.lit(MOST_CLAIMED)}
    ), probed as (
      update webhook_endpoints e set next_probe_at = now() + ${leaseSeconds}::int * interval '1 second'
      from due where due.status = 'paused' and e.workspace_id = due.workspace_id and e.id = due.endpoint_id
        and e.status = 'paused' and e.deleted_at is null and coalesce(e.next_probe_at <= now(), true)
      returning e.workspace_id, e.id
    ), claimed as (
      update webhook_deliveries d set lease_until = date_trunc('milliseconds', now()) + ${leaseSeconds}::int * interval '1 second'
      from due where d.workspace_id = due.workspace_id and d.id = due.id
        and (due.status = 'active' or exists (select from probed p where p.workspace_id = due.workspace_id and p.id = due.endpoint_id))
      returning d.workspace_id, d.id, d.endpoint_id, d.event_id, d.event_type, d.trigger, d.attempts, d.failures, d.lease_until, d.next_attempt_at, d.payload, d.created_at
    )
    select c.workspace_id, c.id, c.endpoint_id, c.event_id, c.event_type, c.trigger, c.attempts, c.failures, c.lease_until::text as lease,
      extract(epoch from clock_timestamp() - c.next_attempt_at)::float8 as waited,
      coalesce(c.payload, v.data)::text as data, coalesce(v.occurred_at, c.created_at) as occurred_at,
      e.url, e.payload_format, e.custom_headers, e.signing_secret, e.old_secret, e.old_secret_until
    from claimed c join webhook_endpoints e on e.workspace_id = c.workspace_id and e.id = c.endpoint_id
    left join events v on v.workspace_id = c.workspace_id and v.id = c.event_id
    order by c.next_attempt_at`.execute(db)
  ).rows

/** What an attempt came to. `retry_in`: seconds until the next one. */
export type Result = {
  workspace_id: string
  id: string
  lease: string
  status: 'delivered' | 'failed' | 'dead'
  failures: number
  retry_in: number | null
  started_at: string
  duration_ms: number
  response_status: number | null
  response_excerpt: string | null
  error: string | null
}

/** What a round did to an endpoint. `failures`: those since its last success in the round, or all of them. */
export type EndpointResult = {
  workspace_id: string
  id: string
  succeeded: boolean
  failures: number
  gone: boolean
}

/**
 * An endpoint that was changed by a round, as it is now, and what it was. `percent`: of the time until it
 * is disabled, when a warning is due.
 */
export type ChangedEndpoint = {
  workspace_id: string
  id: string
  url: string
  consecutive_failures: number
  status: 'active' | 'paused' | 'disabled'
  was: 'active' | 'paused' | 'disabled'
  disabled_reason: string | null
  percent: number | null
  disabled_after: string
}

export type BreakerRules = {
  pauseAfter: number
  disableAfterSeconds: number
  warnAt: readonly number[]
  probeSeconds: readonly [least: number, most: number]
}

/**
 * Writes what attempts came to, in one statement: the deliveries, the attempts, and the endpoints that
 * failed or recovered. A result whose lease was lost counts only if it is a success: then the event did
 * arrive. `now`: business time.
 */
export const settleDeliveries = async (
  tx: Db,
  results: readonly Result[],
  endpoints: readonly EndpointResult[],
  rules: BreakerRules,
  now: string,
): Promise<ChangedEndpoint[]> => {
  const [least, most] = rules.probeSeconds
  const { rows } = await sql<ChangedEndpoint>`${sql.raw(CUSTOM_PLAN)}
    with r as (
      select * from jsonb_to_recordset(${JSON.stringify(results)}::jsonb) as r (workspace_id bigint, id text, lease timestamptz, status text, failures smallint, retry_in float8,
        started_at timestamptz, duration_ms integer, response_status smallint, response_excerpt text, error text)
    ), done as (
      update webhook_deliveries d set status = r.status, attempts = d.attempts + 1, failures = r.failures, lease_until = null, last_response_status = r.response_status,
        next_attempt_at = case when r.status = 'failed' then clock_timestamp() + r.retry_in * interval '1 second' end,
        delivered_at = case when r.status = 'delivered' then ${storableTime(now)}::timestamptz end
      from r where d.workspace_id = r.workspace_id and d.id = r.id and d.${open} and (d.lease_until = r.lease or r.status = 'delivered')
      returning d.workspace_id, d.id, d.attempts, d.trigger
    ), noted as (
      insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms, response_status, response_excerpt, error, trigger)
      select r.workspace_id, r.id, done.attempts, r.started_at, r.duration_ms, r.response_status, r.response_excerpt, r.error, done.trigger
      from done join r on r.workspace_id = done.workspace_id and r.id = done.id
    ), o as (
      select * from jsonb_to_recordset(${JSON.stringify(endpoints)}::jsonb) as o (workspace_id bigint, id text, succeeded boolean, failures integer, gone boolean)
    ), before as (
      select e.*, o.succeeded, o.gone, case when o.succeeded then o.failures else e.consecutive_failures + o.failures end as failed,
        case when o.failures = 0 then null when o.succeeded then now() else coalesce(e.failing_since, now()) end as since
      from o join webhook_endpoints e on e.workspace_id = o.workspace_id and e.id = o.id
      where o.gone or o.failures > 0 or e.consecutive_failures > 0 or e.status = 'paused'
      order by e.workspace_id, e.id for update of e
    ), judged as (
      select b.*, extract(epoch from now() - b.since) / ${rules.disableAfterSeconds}::float8 as share,
        case when b.status = 'disabled' or b.gone then 'disabled'
          when b.status = 'paused' and not b.succeeded and now() - b.since >= ${rules.disableAfterSeconds}::float8 * interval '1 second' then 'disabled'
          when b.failed >= ${rules.pauseAfter} or (b.status = 'paused' and not b.succeeded) then 'paused' else 'active' end as becomes
      from before b
    ), warned as (
      select j.*, coalesce((select max(p) from unnest(${[...rules.warnAt]}::int[]) as p where j.becomes = 'paused' and j.share * 100 >= p), 0) as level from judged j
    ), changed as (
      update webhook_endpoints e set consecutive_failures = w.failed, failing_since = w.since, status = w.becomes,
        warned = case when w.since is null or w.succeeded then 0 else greatest(w.warned, w.level) end,
        next_probe_at = case when w.becomes = 'paused'
          then now() + least(${most}::float8, greatest(${least}::float8, extract(epoch from now() - w.since) / 10)) * (0.9 + random() * 0.2) * interval '1 second' end,
        disabled_at = case when w.becomes <> 'disabled' then null when w.status = 'disabled' then w.disabled_at else ${storableTime(now)}::timestamptz end,
        disabled_reason = case when w.becomes <> 'disabled' then null when w.status = 'disabled' then w.disabled_reason when w.gone then 'gone' else 'failing' end
      from warned w where e.workspace_id = w.workspace_id and e.id = w.id
      returning e.workspace_id, e.id, e.url, e.consecutive_failures, e.status, w.status as was, e.disabled_reason,
        case when w.level > w.warned then w.level end as percent, coalesce(w.since, now()) + ${rules.disableAfterSeconds}::float8 * interval '1 second' as disabled_after
    )
    select * from changed`.execute(tx)
  return rows
}

/** Gives leases back unused, so that the deliveries are due again at once. */
export const releaseDeliveries = async (
  db: Db,
  claimed: readonly Pick<ClaimedDelivery, 'workspace_id' | 'id' | 'lease'>[],
): Promise<void> => {
  if (claimed.length === 0) return
  const rows = claimed.map(({ workspace_id, id, lease }) => ({ workspace_id, id, lease }))
  await sql`
    with gone as (select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (workspace_id bigint, id text, lease timestamptz))
    update webhook_deliveries d set lease_until = null from gone where d.workspace_id = gone.workspace_id and d.id = gone.id and d.lease_until = gone.lease`.execute(
    db,
  )
}

/** Deliveries of active endpoints whose time has come, of every workspace, counted up to `most`. */
export const countDue = async (db: Db, most: number): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
    select count(*) as n from (
      select from webhook_deliveries d join webhook_endpoints e on e.workspace_id = d.workspace_id and e.id = d.endpoint_id
      where d.${open} and d.next_attempt_at <= now() and e.status = 'active' limit ${most}) as due`.execute(
        db,
      )
    ).rows[0]!.n,
  )

/** Drops what a change, as it committed beside the delete, still owed an endpoint that is gone. */
export const skipDeliveriesOfDeleted = async (db: Db): Promise<void> => {
  await sql`
    update webhook_deliveries d set status = 'skipped', next_attempt_at = null, lease_until = null
    from webhook_endpoints e where e.deleted_at is not null and d.workspace_id = e.workspace_id and d.endpoint_id = e.id and d.${open}`.execute(
    db,
  )
}

/**
 * Forgets deliveries from before this time that are over, and their attempts, `most` at a time. Answers how
 * many went.
 */
export const deleteDeliveriesBefore = async (db: Db, time: string, most = 2000): Promise<number> => {
  const {
    rows: [row],
  } = await sql<{ n: string }>`
    with old as (
      select workspace_id, id from webhook_deliveries
      where status in ('delivered', 'dead', 'skipped') and created_at < ${storableTime(time)}::timestamptz order by created_at limit ${sql.lit(most)} for update skip locked
    ), attempts as (delete from webhook_attempts a using old where a.workspace_id = old.workspace_id and a.delivery_id = old.id),
    gone as (delete from webhook_deliveries d using old where d.workspace_id = old.workspace_id and d.id = old.id returning 1)
    select count(*) as n from gone`.execute(db)
  return Number(row!.n)
}
