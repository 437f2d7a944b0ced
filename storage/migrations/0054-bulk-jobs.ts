import { type Kysely, sql } from 'kysely'

const statements = [
  // Changes of more contacts than one call makes. state `planned`: the plan of a dry run, which is no job yet.
  // input: of the calls that it makes, without contacts. digest: of the input that was planned. run_after: real time,
  // also the lease of who runs it; created_at and finished_at: business time. ran_ms: milliseconds that it has run for.
  `create table bulk_jobs (
    workspace_id bigint not null, id bigint generated always as identity not null, plan_id text, digest bytea,
    state text not null check (state in ('planned', 'running', 'paused', 'done', 'failed', 'cancelled')),
    operation text not null, input jsonb not null, staff_id bigint not null, key_id bigint not null,
    door text not null check (door in ('rest', 'ops', 'mcp', 'cli')), client text, request_id text not null,
    created_at timestamptz(3) not null, finished_at timestamptz(3),
    run_after timestamptz(3) not null default now(), attempts smallint not null default 0,
    total integer not null, done integer not null default 0, changed integer not null default 0,
    failed integer not null default 0, ran_ms bigint not null default 0, problem jsonb,
    undo_of bigint, undone_by bigint, primary key (workspace_id, id)
  )`,
  `create unique index bulk_jobs_plan on bulk_jobs (workspace_id, plan_id) where plan_id is not null`,
  `create index bulk_jobs_due on bulk_jobs (run_after) where state = 'running'`,
  `create index bulk_jobs_listed on bulk_jobs (workspace_id, id desc) where state <> 'planned'`,
  `create index bulk_jobs_age on bulk_jobs (created_at)`,
  // The contacts of a job, as many as one transaction changes. calls: in place of the input of the job. undo: the calls
  // that take back what it did.
  `create table bulk_job_batches (
    workspace_id bigint not null, job_id bigint not null, no integer not null, contact_ids bigint[] not null,
    calls jsonb, is_done boolean not null default false, failures jsonb, undo jsonb,
    primary key (workspace_id, job_id, no)
  )`,
  `create index bulk_job_batches_open on bulk_job_batches (workspace_id, job_id, no) where not is_done`,
  `create index bulk_job_batches_failed on bulk_job_batches (workspace_id, job_id, no) where failures is not null`,
]

export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  for (const statement of statements) await sql.raw(statement).execute(kysely)
}
