import { type Kysely, sql } from 'kysely'

/** The id that another system has for a contact. A column without a default: no row is rewritten. */
const statements = [`alter table contacts add column external_id text`]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
