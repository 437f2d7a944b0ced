import { type Kysely, sql } from 'kysely'

const statements = [
  // How far somebody has handled the event log. event_id: the event may be deleted since. is_incomplete: events after
  // it were deleted before they were acknowledged. Both times are business time.
  `create table event_consumers (
    workspace_id bigint not null, name text not null, event_id text not null,
    acknowledged_at timestamptz(3) not null, created_at timestamptz(3) not null,
    is_incomplete boolean not null default false,
    primary key (workspace_id, name)
  )`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
