import { type Kysely, sql } from 'kysely'

const statements = [
  // Of files of contacts. key_id: who asked for it, and as whom it is read. contacts: what the file is.
  `alter table exports add column key_id bigint, add column contacts jsonb`,
  // Their contacts, in the order of the file, until there is no file any more.
  `create table export_batches (
    workspace_id bigint not null, export_id bigint not null, no integer not null, contact_ids bigint[] not null,
    primary key (workspace_id, export_id, no)
  )`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
