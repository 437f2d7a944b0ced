import type { Kysely } from 'kysely'
import type { Db } from '../database.ts'
import { createPartitions, divideTable } from '../partitions.ts'

/**
 * Events, the audit trail and the attempts of webhook deliveries in partitions, of which old ones are dropped
 * (docs/decisions/0025-partitions.md). What the tables hold is not copied: each becomes the first partition of the
 * new one and keeps its indexes, once a scan has shown that its ids are of the partition's time. The tables are
 * locked until the end of the migration; measured: 2 s for each million events, 1 s for each million audit rows.
 */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  const db = kysely as unknown as Db
  const now = new Date().toISOString()
  await divideTable(db, 'events', now, {
    key: 'workspace_id, id',
    indexes: [
      `create index events_order on events (workspace_id, xid, id)`,
      `create index events_time on events using brin (occurred_at) with (pages_per_range = 32)`,
    ],
  })
  await divideTable(db, 'audit_log', now, {
    key: 'workspace_id, id',
    indexes: [
      `create index audit_log_key on audit_log (workspace_id, key_id, id)`,
      `create index audit_log_operation on audit_log (workspace_id, operation, id)`,
      `create index audit_log_door on audit_log (workspace_id, door, id)`,
      `create index audit_log_target on audit_log (workspace_id, target_id, id) where target_id is not null`,
      `create index audit_log_outcome on audit_log (workspace_id, outcome, id) where outcome <> 'done'`,
    ],
  })
  await divideTable(db, 'webhook_attempts', now, {
    key: 'workspace_id, delivery_id, number',
    indexes: [],
  })
  // As many as the default retention asks for; servers create the next ones.
  await createPartitions(db, 'events', now, null)
  await createPartitions(db, 'audit_log', now, 400)
  await createPartitions(db, 'webhook_attempts', now, 30)
}
