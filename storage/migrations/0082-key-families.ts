import { type Kysely, sql } from 'kysely'

// A key and the one that replaces it are valid at once for a while, and are one agent: see `key-families.ts`.
const statements = [
  // The first of the keys that took each other's place; null: the key itself.
  `alter table api_keys add column family_id bigint`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
