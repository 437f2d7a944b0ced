import { type Kysely, sql } from 'kysely'

// A broadcast that a person approved sends the values that this person was asked about, and no others.
const statements = [
  // Digests of the values of each record of a plan, in the order of its ids, separated by spaces.
  `alter table bulk_job_batches add column values_digests text`,
  `alter table broadcast_recipients add column values_digest text`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
