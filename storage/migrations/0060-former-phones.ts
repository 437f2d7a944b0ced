import { type Kysely, sql } from 'kysely'

const statements = [
  // Numbers that contacts had until somebody gave them another one, by the keys of their lines. changed_at is business
  // time; rows are of use for a week.
  `create table contact_former_phones (
    workspace_id bigint not null, line_key text not null, contact_id bigint not null,
    changed_at timestamptz(3) not null, primary key (workspace_id, line_key)
  )`,
  `create index contact_former_phones_contact on contact_former_phones (workspace_id, contact_id)`,
  `create index contact_former_phones_changed on contact_former_phones (changed_at)`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
