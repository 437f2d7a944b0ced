import { type Kysely, sql } from 'kysely'

/** The plan that a call which a person decides was asked with. Changes the catalog of the database alone. */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await sql.raw('alter table approvals add column if not exists plan text').execute(kysely)
}
