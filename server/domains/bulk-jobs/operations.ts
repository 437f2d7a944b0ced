import { getDecision } from '../../agent-policy.ts'
import type { Context, Handler, OutputOf } from '../../handler.ts'
import { findOperation, type OperationName } from '../../../catalog/index.ts'
import {
  type FailurePosition,
  findJob,
  insertUndoJob,
  type JobRow,
  listFailurePage,
  listJobPage,
  lockJob,
  setJobState,
} from '../../../storage/work/bulk-jobs.ts'
import { findSend, setBroadcastStatus } from '../../../storage/broadcasts/sends.ts'
import { listRecipientRows } from '../../../storage/broadcasts/broadcasts.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { showQuotingText } from '../../visibility/phones.ts'
import { toNewJob } from './find-records.ts'
import { irreversible } from './undo.ts'
import { ANY_READER, showJob, toEventJob, toReader } from './view.ts'

const UNDO_MS = 7 * 24 * 60 * 60_000

export const listJobs: Handler<'jobs_list'> = async (ctx, { state, cursor, limit }) => {
  const position = ctx.cursors.open(cursor)
  const rows = await listJobPage(ctx.tx, ctx.actor.workspace.id, {
    reader: toReader(ctx.actor),
    state,
    before: position && String(position[0]),
    limit: limit + 1,
  })
  const shown = rows.slice(0, limit)
  return {
    data: shown.map((row) => showJob(ctx.actor, row)),
    next_cursor: rows.length > limit ? ctx.cursors.seal([shown.at(-1)!.id]) : null,
  }
}

const findOwnJob = async (ctx: Context, id: string): Promise<JobRow> => {
  const job = await findJob(ctx.tx, ctx.actor.workspace.id, toReader(ctx.actor), id)
  if (!job) throw notFound('job', id)
  return job
}

export const getJob: Handler<'jobs_get'> = async (ctx, { job_id: id }) =>
  showJob(ctx.actor, await findOwnJob(ctx, id))

const isSend = ({ operation }: JobRow): boolean => operation === 'messaging_send_bulk'

/** Who of a broadcast got no message: its job has no failures of its own. */
const listFailedRecipients = async (
  ctx: Context,
  { id: jobId }: JobRow,
  { cursor, limit }: { cursor?: string | undefined; limit: number },
): Promise<OutputOf<'jobs_list_failures'>> => {
  const workspaceId = ctx.actor.workspace.id
  const position = ctx.cursors.open(cursor)
  const send = await findSend(ctx.tx, workspaceId, jobId)
  if (!send) return { data: [], next_cursor: null }
  const after = position && String(position[0])
  const rows = await listRecipientRows(ctx.tx, workspaceId, send.broadcast_id, 'failed', after, limit + 1)
  const shown = rows.slice(0, limit)
  return {
    data: shown.map(({ contact_id: id, error_code: code, error }) => ({
      id,
      code: code ?? 'upstream_error',
      message:
        showQuotingText(ctx.actor, error) ?? 'The provider reported it as failed, and did not say why.',
    })),
    next_cursor: rows.length > limit ? ctx.cursors.seal([shown.at(-1)!.contact_id]) : null,
  }
}

export const listJobFailures: Handler<'jobs_list_failures'> = async (ctx, { job_id: id, cursor, limit }) => {
  const job = await findOwnJob(ctx, id)
  if (isSend(job)) return await listFailedRecipients(ctx, job, { cursor, limit })
  const position = ctx.cursors.open(cursor)
  const after: FailurePosition | null = position && { batch: String(position[0]), index: String(position[1]) }
  const rows = await listFailurePage(ctx.tx, ctx.actor.workspace.id, job.id, { after, limit: limit + 1 })
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.map(({ id: recordId, code, message }) => ({ id: recordId, code, message })),
    next_cursor: rows.length > limit ? ctx.cursors.seal([last!.batch, last!.index]) : null,
  }
}

export const lockOwnJob = async (ctx: Context, id: string): Promise<JobRow> => {
  const job = await lockJob(ctx.tx, ctx.actor.workspace.id, toReader(ctx.actor), id)
  if (!job) throw notFound('job', id)
  return job
}

const wrongState = (job: JobRow, what: string): Problem =>
  new Problem('conflict', `The job is ${job.state}, so it cannot be ${what}.`, { reason: 'job_state' })

/** Moves a job to another state. Throws 409 `job_state` unless it is in one of these. */
const changeState = async (
  ctx: Context,
  id: string,
  { from, to, what }: { from: readonly JobRow['state'][]; to: JobRow['state']; what: string },
): Promise<JobRow> => {
  const job = await lockOwnJob(ctx, id)
  if (job.state === to) return job
  if (!from.includes(job.state)) throw wrongState(job, what)
  const change = { state: to, problem: null, finished_at: to === 'cancelled' ? ctx.now : null }
  await setJobState(ctx.tx, job, change)
  ctx.auditChange({ state: job.state }, { state: to })
  return { ...job, ...change }
}

export const pauseJob: Handler<'jobs_pause'> = async (ctx, { job_id: id }) => ({
  job: showJob(ctx.actor, await changeState(ctx, id, { from: ['running'], to: 'paused', what: 'paused' })),
})

/**
 * Throws 403 where the key is an agent's that makes this call by itself, and may not make the change of the job by
 * itself: a job runs with the rights of who began it. Where a person is asked, the person decides.
 */
export const requireOwnRight = (
  { actor }: Context,
  { operation, input }: JobRow,
  call: 'jobs_resume' | 'jobs_undo' | 'messaging_reschedule_broadcast',
): void => {
  const op = findOperation(operation)
  if (!op || !actor.key.agent || actor.approvedBy) return
  if (getDecision(actor, findOperation(call)!).decision !== 'allow') return
  if (getDecision(actor, op, input).decision === 'allow') return
  throw new Problem(
    'forbidden',
    `The policy of this key does not allow it ${operation}, which the job does.`,
    {
      reason: 'denied_by_policy',
    },
  )
}

const alreadyUndone = (undoId: string): Problem =>
  new Problem('conflict', `Job ${undoId} undoes it.`, { reason: 'already_undone' })

export const resumeJob: Handler<'jobs_resume'> = async (ctx, { job_id: id }) => {
  const job = await lockOwnJob(ctx, id)
  requireOwnRight(ctx, job, 'jobs_resume')
  if (job.undone_by !== null) throw alreadyUndone(job.undone_by)
  const change = { from: ['paused', 'failed'], to: 'running', what: 'resumed' } as const
  ctx.pending.wakes = ['bulk-jobs', 'bulk-sends']
  return { job: showJob(ctx.actor, await changeState(ctx, id, change)) }
}

export const cancelJob: Handler<'jobs_cancel'> = async (ctx, { job_id: id }) => {
  const before = await lockOwnJob(ctx, id)
  const from = ['running', 'paused', 'failed'] as const
  const job = await changeState(ctx, id, { from, to: 'cancelled', what: 'cancelled' })
  if (before.state !== 'cancelled') ctx.emit('job.finished/1', toEventJob(job))
  if (isSend(job)) await setBroadcastStatus(ctx.tx, ctx.actor.workspace.id, job.id, 'cancelled')
  return { job: showJob(ctx.actor, job) }
}

export const undoJob: Handler<'jobs_undo'> = async (ctx, { job_id: id }) => {
  const workspaceId = ctx.actor.workspace.id
  const job = await lockOwnJob(ctx, id)
  requireOwnRight(ctx, job, 'jobs_undo')
  const why = irreversible[job.operation as OperationName]
  if (why !== undefined) throw new Problem('conflict', why, { reason: 'not_undoable' })
  if (job.finished_at === null) throw wrongState(job, 'undone: cancel it first')
  if (job.undone_by !== null) throw alreadyUndone(job.undone_by)
  if (Date.parse(ctx.now) - Date.parse(job.finished_at) > UNDO_MS)
    throw new Problem('conflict', 'The job ended more than 7 days ago.', { reason: 'undo_expired' })
  const undoId = await insertUndoJob(ctx.tx, job, toNewJob(ctx))
  if (undoId === undefined)
    throw new Problem('conflict', 'The job changed nothing.', { reason: 'nothing_to_undo' })
  ctx.pending.wakes = ['bulk-jobs']
  const undo = showJob(ctx.actor, (await findJob(ctx.tx, workspaceId, ANY_READER, undoId))!)
  return { job: ctx.dryRun ? { ...undo, id: null } : undo }
}
