import { type Kysely, sql } from 'kysely'

/** A random version of each workspace's custom fields, new with every change of them: what a server remembers under one is right for ever. */
const statements = [
  `create table field_versions (workspace_id bigint primary key, version uuid not null default gen_random_uuid())`,
  `insert into field_versions (workspace_id) select id from workspaces`,
]

export const up = async (db: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
