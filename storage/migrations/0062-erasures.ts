import { type Kysely, sql } from 'kysely'

const statements = [
  // Erasures of contacts, and their receipts. subject: what the person is found by while copies are erased, null when
  // that is done. step and position: how far it is; is_repeated: a call that was open may have written more, so that
  // all steps come again. created_at and finished_at: business time; run_after: real time, also the lease.
  `create table erasures (
    workspace_id bigint not null, id bigint generated always as identity not null, contact_id bigint not null,
    state text not null default 'running' check (state in ('running', 'done')), staff_id bigint not null,
    created_at timestamptz(3) not null, finished_at timestamptz(3),
    run_after timestamptz(3) not null default now(), attempts smallint not null default 0,
    step integer not null default 0, position jsonb,
    is_repeated boolean not null default false, counts jsonb not null default '{}', subject jsonb,
    primary key (workspace_id, id)
  )`,
  `create unique index erasures_contact on erasures (workspace_id, contact_id)`,
  `create index erasures_due on erasures (run_after) where state = 'running'`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
