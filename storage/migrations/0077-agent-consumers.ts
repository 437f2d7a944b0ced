import { type Kysely, sql } from 'kysely'

// An agent moves no consumer of the event log that somebody else reads by, unless a person says yes.
const statements = [
  // The staff member whose agent made the consumer; null where a key of a person made it.
  `alter table event_consumers add column agent_staff_id bigint`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
