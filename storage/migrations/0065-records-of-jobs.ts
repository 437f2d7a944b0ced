import { type Kysely, sql } from 'kysely'

const statements = [
  // Jobs are of contacts or conversations. No released version has these tables, so that their column can be renamed.
  `alter table bulk_job_batches rename column contact_ids to record_ids`,
  // Until when a plan can be carried out, business time.
  `alter table bulk_jobs add column expires_at timestamptz(3)`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
