/** Work that goes on after a call. created_at and finished_at: business time. */
export const work = `
  -- What is to be done, when, and who has it. queue: takes turns with other queues. order_key: one after the other, by
  -- id. needs_version: what a server must know to take it. run_after: real time, until which whoever wrote lease has
  -- it; not rounded to milliseconds: what is due now would be due up to half of one later, so that a job that looks at
  -- once did not find it. attempts: without progress. step and position: how far it is.
  create table runs (
    workspace_id bigint not null, kind text not null, subject text not null, id bigint generated always as identity
      not null, queue text not null default '', order_key text, needs_version text,
    run_after timestamptz not null default clock_timestamp(), lease uuid, attempts smallint not null default 0,
    step integer not null default 0, position jsonb, primary key (workspace_id, kind, subject)
  ) with (autovacuum_vacuum_scale_factor = 0.02);
  create index runs_due on runs (kind, workspace_id, queue, run_after);
  create index runs_order on runs (workspace_id, kind, order_key, id) where order_key is not null;
  create index runs_leased on runs (kind) where lease is not null;

  -- Changes of more contacts or conversations than one call makes. state planned: the plan of a dry run, which is no
  -- job yet. input: of the calls that it makes, without records. digest: of the input that was planned. ran_ms:
  -- milliseconds that it has run for. expires_at: until when a plan can be carried out, business time.
  create table bulk_jobs (
    workspace_id bigint not null, id bigint generated always as identity not null, digest bytea,
    state text not null check (state in ('planned', 'running', 'paused', 'done', 'failed', 'cancelled')),
    operation text not null, input jsonb not null, staff_id bigint not null, key_id bigint not null,
    door text not null check (door in ('rest', 'ops', 'mcp', 'cli')), client text, request_id text not null,
    created_at timestamptz(3) not null, finished_at timestamptz(3),
    total integer not null, done integer not null default 0, changed integer not null default 0,
    failed integer not null default 0, ran_ms bigint not null default 0, problem jsonb,
    undo_of bigint, undone_by bigint, expires_at timestamptz(3), primary key (workspace_id, id)
  );
  create index bulk_jobs_listed on bulk_jobs (workspace_id, id desc) where state <> 'planned';
  create index bulk_jobs_age on bulk_jobs (created_at);
  -- The records of a job, as many as one transaction changes. calls: in place of the input of the job. undo: the calls
  -- that take back what it did. values_digests: of the values of each record of a plan, in the order of its ids,
  -- separated by spaces.
  create table bulk_job_batches (
    workspace_id bigint not null, job_id bigint not null, no integer not null, record_ids bigint[] not null,
    calls jsonb, is_done boolean not null default false, failures jsonb, undo jsonb, values_digests text,
    primary key (workspace_id, job_id, no)
  );
  create index bulk_job_batches_open on bulk_job_batches (workspace_id, job_id, no) where not is_done;
  create index bulk_job_batches_failed on bulk_job_batches (workspace_id, job_id, no) where failures is not null;

  -- Erasures of contacts, and their receipts. subject: what the person is found by while copies are erased, null when
  -- that is done. is_repeated: a call that was open may have written more, so that all steps come again.
  create table erasures (
    workspace_id bigint not null, id bigint generated always as identity not null, contact_id bigint not null,
    state text not null default 'running' check (state in ('running', 'done')), staff_id bigint not null,
    created_at timestamptz(3) not null, finished_at timestamptz(3),
    is_repeated boolean not null default false, counts jsonb not null default '{}', subject jsonb,
    primary key (workspace_id, id)
  );
  create unique index erasures_contact on erasures (workspace_id, contact_id);

  -- Files for people to download. subject: what a person is found by, null when the file is done. step and position:
  -- how far it is. file_until, after which the file is deleted: real time. size and sha256: of the whole file. Of
  -- files of contacts, key_id: who asked for it, and as whom it is read; contacts: what the file is.
  create table exports (
    workspace_id bigint not null, id bigint generated always as identity not null,
    kind text not null, contact_id bigint,
    state text not null default 'running' check (state in ('running', 'done', 'failed', 'erased', 'expired')),
    staff_id bigint not null, created_at timestamptz(3) not null, finished_at timestamptz(3),
    file_until timestamptz(3), step integer not null default 0, position jsonb, counts jsonb not null default '{}',
    subject jsonb, size bigint, sha256 text, problem text, key_id bigint, contacts jsonb, primary key (workspace_id, id)
  );
  create index exports_contact on exports (workspace_id, contact_id) where contact_id is not null;
  create index exports_age on exports (created_at);
  -- Files in the media store, which are the whole file one after the other. size: null until the file is written, which
  -- whoever has the lease does. entry: what begins with the part in an archive.
  create table export_parts (
    workspace_id bigint not null, export_id bigint not null, id bigint generated always as identity not null,
    lease_until timestamptz(3), size bigint, entry jsonb, primary key (workspace_id, export_id, id)
  );
  -- The contacts of a file, in the order of the file, until there is no file any more.
  create table export_batches (
    workspace_id bigint not null, export_id bigint not null, no integer not null, contact_ids bigint[] not null,
    primary key (workspace_id, export_id, no)
  );
`
