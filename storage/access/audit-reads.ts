import { sql } from 'kysely'
import { type AuditEntry, firstIdAt } from './audit.ts'
import type { Db } from '../database.ts'

/** Reads in an hour of real time (its beginning, ISO 8601 UTC), and the ids of the contacts that they showed. */
export type ContactReadsRow = { hour: string; calls: number; contacts: readonly string[] }

/**
 * Adds reads to those of their key, operation and hour, and writes the row of the audit trail that tells of them all,
 * whichever server counted them. The row is of the first of them.
 */
export const writeContactReads = async (
  db: Db,
  workspaceId: string,
  entry: AuditEntry,
  { hour, calls, contacts }: ContactReadsRow,
): Promise<void> => {
  await sql`
    with merged as (
      insert into contact_reads as r (workspace_id, key_id, operation, hour, audit_id, calls, contacts)
      values (${workspaceId}::bigint, ${entry.key_id}::bigint, ${entry.operation}, ${hour}::timestamptz,
        ${firstIdAt(entry.at)}::bigint + nextval('audit_ids'), ${calls}::int, ${contacts}::bigint[])
      on conflict (workspace_id, key_id, operation, hour) do update set calls = r.calls + excluded.calls,
        contacts = (select array_agg(distinct c) from unnest(r.contacts || excluded.contacts) as c)
      returning audit_id, calls, cardinality(contacts) as contacts, hour
    ), described as (
      select audit_id, json_build_object('reads', json_build_object('calls', calls, 'contacts', contacts,
        'hour', to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) as changes
      from merged
    ), updated as (
      update audit_log a set changes = d.changes from described d
      where a.workspace_id = ${workspaceId} and a.id = d.audit_id returning a.id
    )
    insert into audit_log (workspace_id, id, staff_id, key_id, door, client, operation, outcome, dry_run, confirmed,
      changes, request_id)
    select ${workspaceId}::bigint, audit_id, ${entry.staff_id}::bigint, ${entry.key_id}::bigint, ${entry.door},
      ${entry.client}, ${entry.operation}, 'done', false, false, changes, ${entry.request_id}
    from described where not exists (select from updated)`.execute(db)
}
