import { type Kysely, sql } from 'kysely'

/**
 * The audit trail. The id contains the time: milliseconds since 1970 in its upper bits, and below them a
 * number that never repeats within a millisecond. Every index that ends in the id is therefore sorted by time
 * and serves time ranges, and no further index on the time must be written with each change.
 */
const statements = [
  `create sequence audit_ids as bigint minvalue 0 maxvalue 262143 cycle`,
  `create table audit_log (
    workspace_id bigint not null, id bigint not null,
    staff_id bigint not null, key_id bigint not null,
    door text collate "C" not null check (door in ('rest', 'ops', 'mcp', 'cli')), client text,
    operation text collate "C" not null, target_type text collate "C", target_id text collate "C",
    outcome text collate "C" not null check (outcome in ('done', 'refused', 'failed')), code text collate "C",
    dry_run boolean not null, confirmed boolean not null, changes json, request_id text collate "C" not null,
    primary key (workspace_id, id)
  ) with (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)`,
  // Serves look-ups by staff member too, one key after the other: each change writes one index less.
  `create index audit_log_key on audit_log (workspace_id, key_id, id)`,
  `create index audit_log_operation on audit_log (workspace_id, operation, id)`,
  `create index audit_log_door on audit_log (workspace_id, door, id)`,
  `create index audit_log_target on audit_log (workspace_id, target_id, id) where target_id is not null`,
  // Almost all entries have the outcome done; those are found by the primary key.
  `create index audit_log_outcome on audit_log (workspace_id, outcome, id) where outcome <> 'done'`,
]

export const up = async (db: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
