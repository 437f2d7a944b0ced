import { type Kysely, sql } from 'kysely'

const statements = [
  // Contacts that were merged into others. before, after: what undoes the merge, until it has expired; null then. Both
  // hold rows of the contacts, so they go with the contact that stays. merged_at is business time.
  `create table contact_merges (
    workspace_id bigint not null, contact_id bigint not null, into_id bigint not null,
    merged_at timestamptz(3) not null, before jsonb, after jsonb,
    primary key (workspace_id, contact_id)
  )`,
  `create index contact_merges_into on contact_merges (workspace_id, into_id)`,
  `create index contact_merges_undoable on contact_merges (merged_at) where before is not null`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
