import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'
import { isUnfinished, openQueues } from '../webhooks/deliveries.ts'

/** A queue of background work. `due`: entries whose time has come; `oldestSeconds`: since when the first waits. */
export type QueueState = { queue: string; due: number; oldestSeconds: number }

const queue = (name: string, entries: ReturnType<typeof sql>) => sql`
  select ${sql.lit(name)} as queue, count(*) as due,
    coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as oldest
  from (${entries}) as ${sql.ref(name)}`

/** Kinds of runs that somebody waits for. */
const kinds = [
  'media',
  'channel_deliveries',
  'approved_calls',
  'bulk_jobs',
  'broadcasts',
  'exports',
  'erasures',
]

/** The runs of each kind that are due, or whose worker died: those of each of its queues, the earliest first. */
const dueRuns = (limit: number) => sql`
  with recursive queues as (
    (select kind, workspace_id, queue from runs order by kind, workspace_id, queue limit 1)
    union all
    select n.* from queues q cross join lateral (
      select kind, workspace_id, queue from runs
      where (kind, workspace_id, queue) > (q.kind, q.workspace_id, q.queue)
      order by kind, workspace_id, queue limit 1) as n
  )
  select k.kind as queue, least(coalesce(sum(d.due), 0), ${limit})::bigint as due,
    coalesce(extract(epoch from clock_timestamp() - min(d.since)), 0)::float8 as oldest
  from unnest(${kinds}::text[]) as k (kind)
  left join queues q on q.kind = k.kind
  left join lateral (
    select count(*) as due, min(f.run_after) as since from (
      select run_after from runs
      where kind = q.kind and workspace_id = q.workspace_id and queue = q.queue and run_after <= now()
      order by run_after limit ${limit}) as f
  ) as d on true
  group by k.kind`

/**
 * Deliveries to endpoints that get any, which each have a queue in one index: the first of each, so that the oldest
 * of all is among them, before the others.
 */
const dueDeliveries = (most: RawBuilder<unknown>) => sql`
  with recursive queues as (${openQueues}), active as materialized (
    select e.workspace_id, e.id
    from queues q join webhook_endpoints e on e.workspace_id = q.workspace_id and e.id = q.endpoint_id
    where e.status = 'active' and e.deleted_at is null
  ), firsts as materialized (
    select d.* from active a cross join lateral (
      select workspace_id, id, next_attempt_at from webhook_deliveries
      where workspace_id = a.workspace_id and endpoint_id = a.id and ${isUnfinished} and next_attempt_at <= now()
      order by next_attempt_at limit 1
    ) as d
  )
  (select next_attempt_at as since from firsts order by next_attempt_at ${most})
  union all
  (select d.next_attempt_at from active a cross join lateral (
    select workspace_id, id, next_attempt_at from webhook_deliveries
    where workspace_id = a.workspace_id and endpoint_id = a.id and ${isUnfinished} and next_attempt_at <= now()
    order by next_attempt_at offset 1 ${most}
  ) as d ${most})
  ${most}`

/** Counts what waits in each queue, of all workspaces, up to `limit` entries: every index is read from its start. */
export const readQueues = async (db: Db, limit: number): Promise<QueueState[]> => {
  const most = sql`limit ${limit}`
  const { rows } = await sql<{ queue: string; due: string; oldest: number }>`
    ${queue(
      'provider_updates',
      sql`select next_attempt_at as since from provider_updates
        where state = 'waiting' and next_attempt_at <= now() order by next_attempt_at ${most}`,
    )} union all ${queue(
      'provider_calls',
      sql`select lease_until as since from idempotency
        where state = 'running' and lease_until <= now() order by lease_until ${most}`,
    )} union all ${queue('webhook_deliveries', dueDeliveries(most))} union all (${dueRuns(limit)})`.execute(
    db,
  )
  return rows.map(({ queue: name, due, oldest }) => ({
    queue: name,
    due: Number(due),
    oldestSeconds: oldest,
  }))
}
