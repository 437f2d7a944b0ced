import { type Kysely, sql } from 'kysely'

/** The version of each running server, and by how many milliseconds its clock is ahead of the database's. */
const statements = ['alter table servers add column version text, add column clock_ahead_ms float8']

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
