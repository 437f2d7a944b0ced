import { type Kysely, sql } from 'kysely'
import { createIndexConcurrently } from './concurrently.ts'

/**
 * Columns of endpoints. They have few rows and many readers: a lock that is not free at once is waited for briefly,
 * and the migration tried again. resumed_at: since when deliveries that were to be attempted later are being made due.
 * last_failed_at: when an attempt failed last, while the endpoint fails. Both are real times.
 */
const addColumns = async (kysely: Kysely<unknown>): Promise<void> => {
  await sql.raw(`set local lock_timeout = '2s'`).execute(kysely)
  await sql
    .raw(
      `alter table webhook_endpoints add column if not exists resumed_at timestamptz,
        add column if not exists last_failed_at timestamptz`,
    )
    .execute(kysely)
}

/**
 * Finds the unfinished deliveries that need an event, and the deliveries of an endpoint that failed, for its log; and
 * remembers of an endpoint what its backlog still has to be told.
 */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await (kysely.isTransaction ? addColumns(kysely) : kysely.transaction().execute(addColumns))
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
}
