import { type RawBuilder, sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { cancelRun, insertRun } from './runs.ts'

/*
 * Jobs: changes of more records, contacts or conversations, than one call makes. Which is fixed when they begin, in
 * batches; each is changed in one transaction together with the mark that it is done, so that none is changed twice.
 */

type Stored = TableRow<'bulk_jobs'>
export type JobState = Stored['state']

/** A call that a batch makes in place of the one of its job. */
export type BatchCall = { operation: string; input: Record<string, unknown> }
export type BatchFailure = { id: string; code: string; message: string }

export type JobRow = Omit<Stored, 'digest' | 'expires_at' | 'state'> & {
  state: Exclude<JobState, 'planned'>
  staff_name: string | null
}

export type NewJob = Pick<
  Stored,
  | 'workspace_id'
  | 'operation'
  | 'input'
  | 'staff_id'
  | 'key_id'
  | 'door'
  | 'client'
  | 'request_id'
  | 'created_at'
  | 'total'
> &
  Partial<Pick<Stored, 'digest' | 'expires_at'>> & { state: 'planned' | 'running' }

/** A broadcast is sent by a kind of run of its own. */
const toRun = ({ workspace_id, id, operation }: Pick<Stored, 'workspace_id' | 'id' | 'operation'>) => ({
  workspace_id,
  kind: operation === 'messaging_send_bulk' ? 'broadcasts' : 'bulk_jobs',
  subject: id,
  // A job of an operation that a server does not know is one of a later version.
  needs_version: operation,
})

const toJsonb = <T>(value: T) => sql<T>`${JSON.stringify(value)}::text::jsonb`

/** Inserts a job, or a plan, with its records: texts of arrays of ids. `digests`: see `Batch`. Returns its id. */
export const insertJob = async (
  db: Db,
  job: NewJob,
  batches: readonly string[],
  digests: readonly (string | null)[] = [],
): Promise<string> => {
  const { rows } = await sql<{ id: string }>`
    with job as (
      insert into bulk_jobs (workspace_id, digest, state, operation, input, staff_id, key_id, door, client,
        request_id, created_at, expires_at, total)
      values (${job.workspace_id}, ${job.digest ?? null}, ${job.state}, ${job.operation},
        ${JSON.stringify(job.input)}::text::jsonb, ${job.staff_id}, ${job.key_id}, ${job.door}, ${job.client},
        ${job.request_id}, ${job.created_at}, ${job.expires_at ?? null}, ${job.total})
      returning workspace_id, id
    ), batches as (
      insert into bulk_job_batches (workspace_id, job_id, no, record_ids, values_digests)
      select job.workspace_id, job.id, b.no - 1, b.ids::bigint[], b.digests
      from job, unnest(${batches}::text[], ${digests}::text[]) with ordinality as b (ids, digests, no)
    )
    select id from job`.execute(db)
  const { id } = rows[0]!
  if (job.state === 'running') await insertRun(db, toRun({ ...job, id }))
  return id
}

/**
 * Records of a job: a text of the array of their ids. `digests`: of what a person was asked about each, in the same
 * order and separated by spaces; null where that is the same for all.
 */
export type Batch = { ids: string; digests: string | null }

/** Returns the records of a job, or of a plan, in order. */
export const listJobBatches = async (tx: Db, workspaceId: string, id: string): Promise<Batch[]> =>
  (
    await sql<Batch>`
    select record_ids::text as ids, values_digests as digests from bulk_job_batches
    where workspace_id = ${workspaceId} and job_id = ${id} order by no`.execute(tx)
  ).rows

/**
 * Takes a plan away, so that nobody carries it out twice. Returns what it keeps, of which call and until when, business
 * time; undefined where there is none.
 */
export const takePlan = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<(Pick<Stored, 'digest' | 'expires_at'> & { found: Batch[] }) | undefined> => {
  const plan = await tx
    .deleteFrom('bulk_jobs')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('state', '=', 'planned')
    .returning(['digest', 'expires_at'])
    .executeTakeFirst()
  if (!plan) return undefined
  const found = await listJobBatches(tx, workspaceId, id)
  await tx
    .deleteFrom('bulk_job_batches')
    .where('workspace_id', '=', workspaceId)
    .where('job_id', '=', id)
    .execute()
  return { ...plan, found }
}

/**
 * Whose jobs are read, and broadcasts on which channels; null or absent: those of everybody, on all. `own`: operations
 * of which only the jobs of a staff member are read.
 */
export type JobReader = {
  staffId: string | null
  channelIds?: readonly string[] | null
  own?: { staffId: string; operations: readonly string[] }
}

/** Whether jobs (`j`) are read by somebody. */
export const isReadBy = ({ staffId, channelIds = null, own }: JobReader): RawBuilder<boolean> => sql<boolean>`
  ${staffId === null ? sql`true` : sql`j.staff_id = ${staffId}::bigint`}
  and ${own ? sql`(j.operation <> all(${own.operations}::text[]) or j.staff_id = ${own.staffId}::bigint)` : sql`true`}
  and ${
    channelIds === null
      ? sql`true`
      : sql`(j.operation <> 'messaging_send_bulk' or j.input ->> 'channel_id' = any(${channelIds}::text[]))`
  }`

const rows = (db: Db, workspaceId: string, reader: JobReader) =>
  db
    .selectFrom('bulk_jobs as j')
    .leftJoin('staff as s', (join) =>
      join.onRef('s.workspace_id', '=', 'j.workspace_id').onRef('s.id', '=', 'j.staff_id'),
    )
    .select([
      'j.workspace_id',
      'j.id',
      'j.operation',
      'j.input',
      'j.staff_id',
      'j.key_id',
      'j.door',
      'j.client',
      'j.request_id',
      'j.created_at',
      'j.finished_at',
      'j.total',
      'j.done',
      'j.changed',
      'j.failed',
      'j.ran_ms',
      'j.problem',
      'j.undo_of',
      'j.undone_by',
    ])
    .select(sql<JobRow['state']>`j.state`.as('state'))
    .select('s.name as staff_name')
    .where('j.workspace_id', '=', workspaceId)
    .where('j.state', '<>', 'planned')
    .where(isReadBy(reader))

/** Lists a page, newest first. */
export const listJobPage = async (
  db: Db,
  workspaceId: string,
  {
    reader,
    state,
    before,
    limit,
  }: { reader: JobReader; state: JobRow['state'] | undefined; before: string | null; limit: number },
): Promise<JobRow[]> =>
  await rows(db, workspaceId, reader)
    .$if(state !== undefined, (query) => query.where('j.state', '=', state!))
    .$if(before !== null, (query) => query.where('j.id', '<', before!))
    .orderBy('j.id', 'desc')
    .limit(limit)
    .execute()

export const findJob = async (
  db: Db,
  workspaceId: string,
  reader: JobReader,
  id: string,
): Promise<JobRow | undefined> =>
  await rows(db, workspaceId, reader).where('j.id', '=', toStorableId(id)).executeTakeFirst()

/** The same, locked. */
export const lockJob = async (
  tx: Db,
  workspaceId: string,
  reader: JobReader,
  id: string,
): Promise<JobRow | undefined> =>
  await rows(tx, workspaceId, reader).where('j.id', '=', toStorableId(id)).forUpdate('j').executeTakeFirst()

export type FailurePosition = { batch: string; index: string }

const afterFailure = (after: FailurePosition | null) =>
  after === null
    ? sql``
    : sql`and b.no >= ${after.batch}::integer
        and (b.no, f.n) > (${after.batch}::integer, ${after.index}::bigint)`

/** Lists a page of the failures of a job, in the order of its records. */
export const listFailurePage = async (
  db: Db,
  workspaceId: string,
  id: string,
  { after, limit }: { after: FailurePosition | null; limit: number },
): Promise<(BatchFailure & FailurePosition)[]> =>
  (
    await sql<BatchFailure & FailurePosition>`
    select b.no::text as batch, f.n::text as index, f.failure ->> 'id' as id, f.failure ->> 'code' as code,
      f.failure ->> 'message' as message
    from bulk_job_batches b cross join lateral jsonb_array_elements(b.failures) with ordinality as f (failure, n)
    where b.workspace_id = ${workspaceId} and b.job_id = ${id} and b.failures is not null
      ${afterFailure(after)}
    order by b.no, f.n limit ${limit}`.execute(db)
  ).rows

/** Moves a locked job to another state; `running` lets it go on at once, and another one ends its run. */
export const setJobState = async (
  tx: Db,
  { workspace_id: workspaceId, id, operation }: Pick<JobRow, 'workspace_id' | 'id' | 'operation'>,
  change: Partial<Pick<JobRow, 'finished_at' | 'problem' | 'undone_by'>> & Pick<JobRow, 'state'>,
): Promise<void> => {
  const { problem, ...columns } = change
  const run = toRun({ workspace_id: workspaceId, id, operation })
  await (change.state === 'running' ? insertRun(tx, run) : cancelRun(tx, run))
  await tx
    .updateTable('bulk_jobs')
    .set({
      ...columns,
      ...(problem === undefined ? {} : { problem: problem && toJsonb(problem) }),
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Inserts the job that takes back a locked one, the last batch first; undefined where nothing was changed. */
export const insertUndoJob = async (
  tx: Db,
  job: Pick<JobRow, 'workspace_id' | 'id' | 'operation'>,
  by: Pick<NewJob, 'staff_id' | 'key_id' | 'door' | 'client' | 'request_id' | 'created_at'>,
): Promise<string | undefined> => {
  const { rows } = await sql<{ id: string; operation: string }>`
    with own as (
      select no, record_ids, undo from bulk_job_batches
      where workspace_id = ${job.workspace_id} and job_id = ${job.id} and undo is not null
    ), made as (
      insert into bulk_jobs (workspace_id, state, operation, input, staff_id, key_id, door, client, request_id,
        created_at, total, undo_of)
      select ${job.workspace_id}::bigint, 'running', undo -> 0 ->> 'operation', '{}', ${by.staff_id}, ${by.key_id},
        ${by.door}, ${by.client}, ${by.request_id}, ${by.created_at},
        (select sum(cardinality(record_ids)) from own), ${job.id}::bigint
      from own order by no limit 1
      returning workspace_id, id, operation
    ), batches as (
      insert into bulk_job_batches (workspace_id, job_id, no, record_ids, calls)
      select made.workspace_id, made.id, row_number() over (order by no desc) - 1, record_ids, undo from made, own
    ), undone as (
      update bulk_jobs j set undone_by = made.id from made
      where j.workspace_id = made.workspace_id and j.id = ${job.id}
    )
    select id, operation from made`.execute(tx)
  const undo = rows[0]
  if (undo) await insertRun(tx, toRun({ workspace_id: job.workspace_id, ...undo }))
  return undo?.id
}

export type OpenBatch = { no: number; record_ids: string[]; calls: BatchCall[] | null }

/** Returns the first batch of a locked job that is not done; undefined when all are. */
export const findOpenBatch = async (
  tx: Db,
  workspaceId: string,
  jobId: string,
): Promise<OpenBatch | undefined> =>
  (
    await sql<OpenBatch>`
    select no, record_ids::text[] as record_ids, calls from bulk_job_batches
    where workspace_id = ${workspaceId} and job_id = ${jobId} and not is_done order by no limit 1`.execute(tx)
  ).rows[0]

export type BatchResult = {
  no: number
  done: number
  /** The records that changed, and what takes that back. */
  changed: readonly string[]
  undo: readonly BatchCall[]
  failures: readonly BatchFailure[]
  tookMs: number
}

/** Marks a batch of a locked job as done, and adds it to the progress of the job. */
export const finishBatch = async (
  tx: Db,
  workspaceId: string,
  jobId: string,
  { no, done, changed, undo, failures, tookMs }: BatchResult,
): Promise<void> => {
  const toJson = (list: readonly unknown[]) => (list.length === 0 ? null : JSON.stringify(list))
  await sql`
    with batch as (
      update bulk_job_batches set is_done = true, record_ids = ${changed}::bigint[], calls = null,
        failures = ${toJson(failures)}::text::jsonb, undo = ${toJson(undo)}::text::jsonb
      where workspace_id = ${workspaceId} and job_id = ${jobId} and no = ${no}
    )
    update bulk_jobs set done = done + ${done}::integer, changed = changed + ${changed.length}::integer,
      failed = failed + ${failures.length}::integer, ran_ms = ran_ms + ${Math.round(tookMs)}::bigint
    where workspace_id = ${workspaceId} and id = ${jobId}`.execute(tx)
}

/** Deletes plans that expired, and jobs that ended, before these times, with their records. Returns how many. */
export const deleteJobsBefore = async (
  db: Db,
  { plans, jobs }: { plans: string; jobs: string },
  limit: number,
): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    with old as (
      select workspace_id, id from bulk_jobs
      where created_at < ${plans}
        and (state = 'planned' and coalesce(expires_at, created_at) < ${plans} or finished_at < ${jobs})
      order by created_at limit ${limit} for update skip locked
    ), batches as (
      delete from bulk_job_batches b using old where b.workspace_id = old.workspace_id and b.job_id = old.id
    ), deleted as (
      delete from bulk_jobs j using old where j.workspace_id = old.workspace_id and j.id = old.id returning 1
    )
    select count(*) as n from deleted`.execute(db)
  return Number(rows[0]!.n)
}
