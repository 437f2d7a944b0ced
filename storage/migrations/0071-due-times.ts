import { type Kysely, sql } from 'kysely'

// Rounded to milliseconds, what is due now was due up to half of one later, so that a job that looked at once did not
// find it. More digits rewrite no row.
const statements = [
  `alter table approvals alter column lease_until type timestamptz`,
  `alter table bulk_jobs alter column run_after type timestamptz`,
  `alter table erasures alter column run_after type timestamptz`,
  `alter table exports alter column run_after type timestamptz`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
