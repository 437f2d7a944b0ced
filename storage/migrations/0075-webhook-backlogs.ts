import { type Kysely, sql } from 'kysely'
import { createIndexConcurrently } from './concurrently.ts'

/**
 * resumed_at: since when deliveries that were to be attempted later are being made due; real time. Endpoints have few
 * rows and many readers: a lock that is not free is waited for briefly, and the migration tried again.
 */
const addColumn = async (kysely: Kysely<unknown>): Promise<void> => {
  await sql.raw(`set local lock_timeout = '2s'`).execute(kysely)
  await sql
    .raw(`alter table webhook_endpoints add column if not exists resumed_at timestamptz`)
    .execute(kysely)
}

/**
 * Finds the unfinished deliveries that need an event, and the deliveries of an endpoint that failed, for its log; and
 * remembers of an endpoint what its backlog still has to be told. Finds the replies that wait for a channel, in order.
 */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await (kysely.isTransaction ? addColumn(kysely) : kysely.transaction().execute(addColumn))
  await createIndexConcurrently(
    kysely,
    'webhook_deliveries_needs',
    `webhook_deliveries (workspace_id, event_id) where status in ('pending', 'failed')`,
  )
  await createIndexConcurrently(
    kysely,
    'webhook_deliveries_failures',
    `webhook_deliveries (workspace_id, endpoint_id, created_at desc, id desc) where status in ('dead', 'failed')`,
  )
  await createIndexConcurrently(
    kysely,
    'webhook_endpoints_resumed',
    'webhook_endpoints (workspace_id, id) where resumed_at is not null',
  )
  await createIndexConcurrently(
    kysely,
    'channel_deliveries_queue',
    'channel_deliveries (workspace_id, channel_id, next_attempt_at, message_id)',
  )
  await createIndexConcurrently(
    kysely,
    'channel_deliveries_expiry',
    'channel_deliveries (workspace_id, channel_id, expires_at)',
  )
  await createIndexConcurrently(
    kysely,
    'channel_deliveries_leases',
    'channel_deliveries (lease_until) where lease_until is not null',
  )
}
