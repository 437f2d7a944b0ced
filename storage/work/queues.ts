import { type RawBuilder, sql } from 'kysely'
import { isOfKind } from './bulk-jobs.ts'
import type { Db } from '../database.ts'
import { isUnfinished, openQueues } from '../webhooks/deliveries.ts'

/** A queue of background work. `due`: entries whose time has come; `oldestSeconds`: since when the first waits. */
export type QueueState = { queue: string; due: number; oldestSeconds: number }

const queue = (name: string, entries: ReturnType<typeof sql>) => sql`
  select ${sql.lit(name)} as queue, count(*) as due,
    coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as oldest
  from (${entries}) as ${sql.ref(name)}`

/** Work that is taken by `run_after`: it is due, or whoever took it died. */
const runs = (table: 'bulk_jobs' | 'exports' | 'erasures', most: RawBuilder<unknown>, where = sql``) => sql`
  select run_after as since from ${sql.table(table)}
  where state = 'running' and run_after <= now() ${where} order by run_after ${most}`

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
    )} union all ${queue(
      'media',
      sql`select next_attempt_at as since from media
        where state = 'waiting' and next_attempt_at <= now() order by next_attempt_at ${most}`,
    )} union all ${queue(
      'channel_deliveries',
      sql`select next_attempt_at as since from channel_deliveries
        where next_attempt_at <= now() order by next_attempt_at ${most}`,
    )} union all ${queue('webhook_deliveries', dueDeliveries(most))} union all ${queue(
      'approved_calls',
      sql`select lease_until as since from approvals
        where status = 'approved' and lease_until <= now() order by lease_until ${most}`,
    )} union all ${queue('bulk_jobs', runs('bulk_jobs', most, sql`and ${isOfKind('changes')}`))}
    union all ${queue('broadcasts', runs('bulk_jobs', most, sql`and ${isOfKind('sends')}`))}
    union all ${queue('exports', runs('exports', most))}
    union all ${queue('erasures', runs('erasures', most))}`.execute(db)
  return rows.map(({ queue: name, due, oldest }) => ({
    queue: name,
    due: Number(due),
    oldestSeconds: oldest,
  }))
}
