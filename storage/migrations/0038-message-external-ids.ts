import { type Kysely, sql } from 'kysely'

/** The id that another system has for a message that it sends. No row is rewritten. */
const statements = [`alter table messages add column external_id text`]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
