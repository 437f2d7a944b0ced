import { type RawBuilder, sql } from 'kysely'
import type { Db, DeliveryTrigger } from '../database.ts'
import type { OldSecret } from '../tables/events.ts'
import { INDEXED_PLAN } from '../client/driver.ts'
import { toStorableTime } from '../values/times.ts'

/**
 * A delivery that this process has leased, with everything that is needed to send it. `lease`: its end, as
 * the database writes it.
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
  /** Seconds from the time at which it was due until it was claimed. */
  waited: number
  /** Seconds of its outage for which a paused endpoint could have been probed and was not; 0 for any other. */
  since_probe_due: number
  /** JSON of the event's data; null when the event was deleted. */
  data: string | null
  occurred_at: string
  url: string
  payload_format: 'envelope' | 'data'
  custom_headers: string
  signing_secret: string
  old_secrets: OldSecret[]
}

/** What is claimed so much later than it was due waited for a server: none ran, or none had time. */
const LATE = sql.raw(`interval '10 minutes'`)

/** Deliveries of one claim; a literal in the statement, so that the planner knows how few they are. */
export const MAX_CLAIMED = 256
const maxClaimed = sql.lit(MAX_CLAIMED)

/**
 * The data of an event as its endpoint is sent it: without the names of manager-only fields and of metadata,
 * where an agent gave the address. A test event has a payload of its own.
 */
const sentData = sql.raw(`
  case when e.for_agents and c.payload is null and c.event_type like 'contact.updated/%'
    then jsonb_set(v.data, '{changes}', coalesce((
      select jsonb_agg(n.name order by n.place)
      from jsonb_array_elements_text(v.data->'changes') with ordinality as n (name, place)
      where n.name <> 'metadata' and not exists (
        select from custom_fields f
        where f.workspace_id = c.workspace_id and f.visibility = 'manager_only'
          and n.name = case f.key when 'email' then f.key else 'attributes.' || f.key end)), '[]'))
    else coalesce(c.payload, v.data) end`)

/** The condition of the partial index over unfinished deliveries, by endpoint and time. */
export const isUnfinished = sql.raw(`status in ('pending', 'failed')`)

/** The time that an attempt waited for a server. */
const waitFor = (dueAt: RawBuilder<unknown>) => sql`greatest(interval '0', now() - ${LATE} - ${dueAt})`

/**
 * The start of an outage `e.failing_since`, moved on by the time that an attempt waited for a server. A backlog that is
 * claimed in several parts moves it on with each: an endpoint is disabled later then, never sooner.
 */
const withoutWait = (dueAt: RawBuilder<unknown>) => sql`
          least(now(), e.failing_since + ${waitFor(dueAt)})`

/** The endpoints that have unfinished deliveries, as the recursive common table expression `queues`. */
export const openQueues = sql.raw(`
      (
        select workspace_id, endpoint_id from webhook_deliveries where status in ('pending', 'failed')
        order by workspace_id, endpoint_id limit 1
      )
      union all
      select d.workspace_id, d.endpoint_id from queues q cross join lateral (
        select workspace_id, endpoint_id from webhook_deliveries
        where status in ('pending', 'failed')
          and (workspace_id, endpoint_id) > (q.workspace_id, q.endpoint_id)
        order by workspace_id, endpoint_id limit 1
      ) as d
    `)

/**
 * Leases deliveries that are due, the oldest of each endpoint first. Other servers skip them until the lease
 * has expired.
 * `limitPerEndpoint`: how many deliveries an endpoint may have leased, where `freeSlots` does not say how
 * many more it may. A paused endpoint gets one, and the next when its probe is due.
 *
 * Each endpoint's queue is read by itself, so neither the backlog of one nor finished rows cost another
 * anything. The endpoints that have a queue are found by a loose index scan in the same index (a recursive
 * query, as PostgreSQL 15 has none of its own). A lease changes no indexed column: the row's new version
 * stays in its page (HOT), at its place in the queue. Time in which nothing was tried although something was due
 * is no part of an endpoint's outage, after which it is disabled. Planning takes 1 ms, so it is done once, with indexes
 * alone: a plan made while the table was empty scanned all of it, measured 205 ms instead of 6 with 2000 rows.
 */
export const claimDeliveries = async (
  db: Db,
  leaseSeconds: number,
  limitPerEndpoint: number,
  freeSlots: ReadonlyMap<string, number>,
): Promise<ClaimedDelivery[]> =>
  (
    await sql<ClaimedDelivery>`${sql.raw(INDEXED_PLAN)}
    with recursive queues as (${openQueues}), ready as (
      select e.workspace_id, e.id, e.status, case when e.status = 'paused' then e.next_probe_at end as probe_at,
        case when e.status = 'paused' then 1
          else coalesce((${JSON.stringify(Object.fromEntries(freeSlots))}::jsonb ->> e.id)::int,
            ${limitPerEndpoint}::int) end as free
      from queues q join webhook_endpoints e on e.workspace_id = q.workspace_id and e.id = q.endpoint_id
      where e.deleted_at is null
        and (e.status = 'active' or (e.status = 'paused' and coalesce(e.next_probe_at <= now(), true)))
    ), due as (
      select d.workspace_id, d.id, r.id as endpoint_id, r.status, d.next_attempt_at, r.probe_at
      from ready r cross join lateral (
        select workspace_id, id, next_attempt_at from webhook_deliveries
        where workspace_id = r.workspace_id and endpoint_id = r.id and ${isUnfinished}
          and next_attempt_at <= now() and coalesce(lease_until <= now(), true)
        order by next_attempt_at
        limit least(r.free, (select greatest(1, ${maxClaimed} / count(*)) from ready)) for update skip locked
      ) as d
      order by d.next_attempt_at limit ${maxClaimed}
    ), probed as (
      update webhook_endpoints e set next_probe_at = now() + ${leaseSeconds}::int * interval '1 second',
        failing_since = ${withoutWait(sql`greatest(e.next_probe_at, due.next_attempt_at)`)}
      from due
      where due.status = 'paused' and e.workspace_id = due.workspace_id and e.id = due.endpoint_id
        and e.status = 'paused' and e.deleted_at is null and coalesce(e.next_probe_at <= now(), true)
      returning e.workspace_id, e.id
    ), late as (
      update webhook_endpoints e set failing_since = ${withoutWait(sql`l.due_at`)}
      from (
        select workspace_id, endpoint_id, min(next_attempt_at) as due_at from due where status = 'active' group by 1, 2
      ) as l
      where l.due_at < now() - ${LATE} and e.workspace_id = l.workspace_id and e.id = l.endpoint_id
        and e.failing_since < now()
    ), claimed as (
      update webhook_deliveries d
      set lease_until = date_trunc('milliseconds', now()) + ${leaseSeconds}::int * interval '1 second'
      from due where d.workspace_id = due.workspace_id and d.id = due.id
        and (due.status = 'active' or exists (
          select from probed p where p.workspace_id = due.workspace_id and p.id = due.endpoint_id))
      returning d.workspace_id, d.id, d.endpoint_id, d.event_id, d.event_type, d.trigger, d.attempts,
        d.failures, d.lease_until, d.next_attempt_at, d.payload, d.created_at, due.probe_at
    )
    select c.workspace_id, c.id, c.endpoint_id, c.event_id, c.event_type, c.trigger, c.attempts, c.failures,
      c.lease_until::text as lease,
      extract(epoch from clock_timestamp() - c.next_attempt_at)::float8 as waited,
      coalesce(extract(epoch from now() - c.probe_at
        - ${waitFor(sql`greatest(c.probe_at, c.next_attempt_at)`)}), 0)::float8 as since_probe_due,
      ${sentData}::text as data, coalesce(v.occurred_at, c.created_at) as occurred_at,
      e.url, e.payload_format, e.custom_headers, e.signing_secret, e.old_secrets
    from claimed c
    join webhook_endpoints e on e.workspace_id = c.workspace_id and e.id = c.endpoint_id
    left join events v on v.workspace_id = c.workspace_id and v.id = c.event_id
    order by c.next_attempt_at`.execute(db)
  ).rows

/**
 * Seconds until the next delivery or probe is due, at most `atMost`. What is due by now and was not claimed is
 * being sent by another process, whose lease of the first of each queue counts.
 */
export const findSecondsUntilNextDelivery = async (db: Db, atMost: number): Promise<number> => {
  const { rows } = await sql<{ seconds: number | null }>`${sql.raw(INDEXED_PLAN)}
    with recursive queues as (${openQueues}),
    waits as (
      select case when e.status = 'paused' then e.next_probe_at else least(n.at, f.at) end as at
      from queues q join webhook_endpoints e on e.workspace_id = q.workspace_id and e.id = q.endpoint_id
      left join lateral (
        select next_attempt_at as at from webhook_deliveries
        where workspace_id = q.workspace_id and endpoint_id = q.endpoint_id and ${isUnfinished}
          and next_attempt_at > now()
        order by next_attempt_at limit 1
      ) as n on true
      left join lateral (
        select lease_until as at from webhook_deliveries
        where workspace_id = q.workspace_id and endpoint_id = q.endpoint_id and ${isUnfinished}
          and next_attempt_at <= now()
        order by next_attempt_at limit 1
      ) as f on true
      where e.deleted_at is null and e.status <> 'disabled'
    )
    select extract(epoch from min(at) - now())::float8 as seconds from waits`.execute(db)
  return Math.max(0, Math.min(atMost, rows[0]?.seconds ?? atMost))
}

/** Gives up leases, so that the deliveries are due again at once. */
export const releaseDeliveries = async (
  db: Db,
  claimed: readonly Pick<ClaimedDelivery, 'workspace_id' | 'id' | 'lease'>[],
): Promise<void> => {
  if (claimed.length === 0) return
  const rows = claimed.map(({ workspace_id, id, lease }) => ({ workspace_id, id, lease }))
  await sql`
    with released as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as r (workspace_id bigint, id text, lease timestamptz)
    )
    update webhook_deliveries d set lease_until = null from released r
    where d.workspace_id = r.workspace_id and d.id = r.id and d.lease_until = r.lease`.execute(db)
}

/**
 * Skips deliveries, up to `limit` of each endpoint, of endpoints that are deleted (which skips the first of a large
 * backlog, and a change that commits at the same time can add others), or disabled since before a time: as long as
 * they are unfinished, the events that they need are kept. Returns the count.
 */
export const skipDeliveries = async (db: Db, time: string, limit: number): Promise<number> => {
  const { rows } = await sql<{ count: string }>`${sql.raw(INDEXED_PLAN)}
    with recursive queues as (${openQueues}), closed as materialized (
      select e.workspace_id, e.id
      from queues q join webhook_endpoints e on e.workspace_id = q.workspace_id and e.id = q.endpoint_id
      where e.deleted_at is not null
        or (e.status = 'disabled' and e.disabled_at < ${toStorableTime(time)}::timestamptz)
      for share of e
    ), unfinished as materialized (
      select d.workspace_id, d.id from closed c cross join lateral (
        select workspace_id, id from webhook_deliveries
        where workspace_id = c.workspace_id and endpoint_id = c.id and ${isUnfinished}
        order by next_attempt_at limit ${limit} for update skip locked
      ) as d
    ), skipped as (
      update webhook_deliveries d set status = 'skipped', next_attempt_at = null, lease_until = null
      from unfinished u where d.workspace_id = u.workspace_id and d.id = u.id
      returning 1
    )
    select count(*) as count from skipped`.execute(db)
  return Number(rows[0]!.count)
}

/**
 * Makes due what is left of the backlogs of endpoints that were enabled, up to `limit` deliveries of each. What was
 * attempted since then keeps its time. Returns the count.
 */
export const resumeDeliveries = async (db: Db, limit: number): Promise<number> => {
  const { rows } = await sql<{ count: string }>`${sql.raw(INDEXED_PLAN)}
    with resumed as materialized (
      select workspace_id, id, resumed_at from webhook_endpoints
      where resumed_at is not null and deleted_at is null and status <> 'disabled'
    ), waiting as materialized (
      select d.workspace_id, d.id, r.id as endpoint_id from resumed r cross join lateral (
        select w.workspace_id, w.id from webhook_deliveries w
        where w.workspace_id = r.workspace_id and w.endpoint_id = r.id and w.${isUnfinished}
          and w.next_attempt_at > now() and not exists (
            select from webhook_attempts a
            where a.workspace_id = w.workspace_id and a.delivery_id = w.id and a.number = w.attempts
              and a.started_at >= r.resumed_at)
        order by w.next_attempt_at limit ${limit} for update skip locked
      ) as d
    ), due as (
      update webhook_deliveries d set next_attempt_at = now()
      from waiting w where d.workspace_id = w.workspace_id and d.id = w.id
      returning 1
    ), ended as (
      update webhook_endpoints e set resumed_at = null from resumed r
      where e.workspace_id = r.workspace_id and e.id = r.id and e.resumed_at = r.resumed_at and ${limit} > (
        select count(*) from waiting w where w.workspace_id = r.workspace_id and w.endpoint_id = r.id)
    )
    select count(*) as count from due`.execute(db)
  return Number(rows[0]!.count)
}

/**
 * Deletes finished deliveries from before a time, up to `limit`; returns the count. Their attempts, which nobody can
 * find any more, are dropped with their partition, but for those in none.
 */
export const deleteDeliveriesBefore = async (db: Db, time: string, limit: number): Promise<number> => {
  const { rows } = await sql<{ count: string }>`
    with old as (
      select workspace_id, id from webhook_deliveries
      where status in ('delivered', 'dead', 'skipped') and created_at < ${toStorableTime(time)}::timestamptz
      order by created_at limit ${limit} for update skip locked
    ), attempts as (
      delete from webhook_attempts_default a using old
      where a.workspace_id = old.workspace_id and a.delivery_id = old.id
    ), deleted as (
      delete from webhook_deliveries d using old where d.workspace_id = old.workspace_id and d.id = old.id
      returning 1
    )
    select count(*) as count from deleted`.execute(db)
  return Number(rows[0]!.count)
}
