import { type Kysely, sql } from 'kysely'

const statements = [
  // Files for people to download. subject: what a person is found by, null when the file is done. step and position:
  // how far it is. created_at and finished_at: business time; file_until, after which the file is deleted, and
  // run_after, also the lease: real time. size and sha256: of the whole file.
  `create table exports (
    workspace_id bigint not null, id bigint generated always as identity not null,
    kind text not null, contact_id bigint,
    state text not null default 'running' check (state in ('running', 'done', 'failed', 'erased', 'expired')),
    staff_id bigint not null, created_at timestamptz(3) not null, finished_at timestamptz(3),
    file_until timestamptz(3), run_after timestamptz(3) not null default now(), attempts smallint not null default 0,
    step integer not null default 0, position jsonb, counts jsonb not null default '{}', subject jsonb,
    size bigint, sha256 text, problem text, primary key (workspace_id, id)
  )`,
  `create index exports_contact on exports (workspace_id, contact_id) where contact_id is not null`,
  `create index exports_due on exports (run_after) where state = 'running'`,
  `create index exports_age on exports (created_at)`,
  // Files in the media store, which are the whole file one after the other. size: null until the file is written,
  // which whoever has the lease does. entry: what begins with the part in an archive.
  `create table export_parts (
    workspace_id bigint not null, export_id bigint not null, id bigint generated always as identity not null,
    lease_until timestamptz(3), size bigint, entry jsonb, primary key (workspace_id, export_id, id)
  )`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
