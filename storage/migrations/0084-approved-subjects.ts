import { type Kysely, sql } from 'kysely'

// An approved call acts on what the person was shown: not on whom a contact has become since.
const statements = [
  // Salted digests of what the call acts on: as it was asked for, then as it was approved. Null: asked for before.
  `alter table approvals add column summary_version text`,
  `alter table approvals add column summary_salt text`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
