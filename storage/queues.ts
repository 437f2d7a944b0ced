import { sql } from 'kysely'
import type { Db } from './database.ts'
import { isUnfinished } from './webhook-deliveries.ts'

/** A queue of background work. `due`: entries whose time has come; `oldestSeconds`: since when the first waits. */
export type QueueState = { queue: string; due: number; oldestSeconds: number }

const queue = (name: string, entries: ReturnType<typeof sql>) => sql`
  select ${sql.lit(name)} as queue, count(*) as due,
    coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as oldest
  from (${entries}) as ${sql.ref(name)}`

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
    )} union all ${queue(
      'webhook_deliveries',
      sql`select d.next_attempt_at as since from webhook_deliveries d
        join webhook_endpoints e on e.workspace_id = d.workspace_id and e.id = d.endpoint_id
        where d.${isUnfinished} and d.next_attempt_at <= now() and e.status = 'active' ${most}`,
    )} union all ${queue(
      'approved_calls',
      sql`select lease_until as since from approvals
        where status = 'approved' and lease_until <= now() order by lease_until ${most}`,
    )}`.execute(db)
  return rows.map(({ queue: name, due, oldest }) => ({
    queue: name,
    due: Number(due),
    oldestSeconds: oldest,
  }))
}
