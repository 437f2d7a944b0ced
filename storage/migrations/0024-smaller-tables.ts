import { type Kysely, sql } from 'kysely'

/**
 * Smaller indexes and tables (docs/operations.md, "Disk space").
 *
 * An index whose entries have the same key stores the key once and six bytes for each row
 * (docs/decisions/0027-small-indexes.md).
 *
 * Other sessions can read, but not change these tables until the end of the migration. Measured at a million
 * contacts, on two busy cores: 47 s.
 */
const statements = [
  `set local maintenance_work_mem = '256MB'`,
  // The rows of a contact are few and lie together. Instead of the primary key, which nothing needs: whoever
  // writes the values of a contact has locked it. `replica identity full`, since a table that is published for
  // replication must have one.
  `create index contact_attributes_contact on contact_attributes (workspace_id, contact_id)`,
  `alter table contact_attributes drop constraint contact_attributes_pkey`,
  `alter table contact_attributes replica identity full`,
  `drop index contact_tags_contact`,
  `create index contact_tags_contact on contact_tags (workspace_id, contact_id)`,
  `drop index contact_groups_contact`,
  `create index contact_groups_contact on contact_groups (workspace_id, contact_id)`,
  `drop index broadcast_recipients_contact`,
  `create index broadcast_recipients_contact on broadcast_recipients (workspace_id, contact_id)`,
  `drop index conversations_contact`,
  `create index conversations_contact on conversations (workspace_id, contact_id)`,
  // Many rows have the same value, state or assignee. Whoever looks for contacts by them reads the rows anyway, or as
  // many as decide how to look.
  `drop index contact_attributes_text`,
  `create index contact_attributes_text on contact_attributes (workspace_id, field_id, (left(text_key, 200)))
    where text_key is not null`,
  `drop index contact_attributes_bool`,
  `create index contact_attributes_bool on contact_attributes (workspace_id, field_id, bool_value)
    where bool_value is not null`,
  `drop index contact_attributes_time`,
  `create index contact_attributes_time on contact_attributes (workspace_id, field_id, time_value)
    where time_value is not null`,
  `drop index conversations_state`,
  `create index conversations_state on conversations (workspace_id, state, assigned_staff_id)`,
  // Half empty after contacts were imported in an order other than that of the index.
  `reindex index contact_tags_pkey`,
  `reindex index contact_groups_pkey`,
  `reindex index broadcast_recipients_pkey`,
  // Space that is left in each page serves changes that touch no indexed column. There are none: changes of a contact
  // have a time, the values of contacts are in an index, and the status of outbound messages is too.
  `alter table contacts set (fillfactor = 100)`,
  `alter table contact_facts set (fillfactor = 100)`,
  `alter table messages set (fillfactor = 100)`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
