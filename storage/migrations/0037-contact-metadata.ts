import { type Kysely, sql } from 'kysely'

/** What integrations keep about a contact, beside its custom fields. No row is rewritten. */
const statements = [`alter table contact_facts add column metadata jsonb`]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
