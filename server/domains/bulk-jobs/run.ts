import { requireUndenied } from '../../agent-policy.ts'
import type { Transaction } from '../../kernel/call.ts'
import type { Actor, PendingWrites } from '../../kernel/context.ts'
import { requireScope, requireActive } from '../../kernel/access.ts'
import { passesSoon } from '../../../catalog/passing-reasons.ts'
import { findOperation, operationNames } from '../../../catalog/index.ts'
import {
  type BatchCall,
  type BatchFailure,
  deleteJobsBefore,
  findOpenBatch,
  finishBatch,
  type JobRow,
  lockJob,
  type OpenBatch,
  setJobState,
} from '../../../storage/work/bulk-jobs.ts'
import { advanceRun, finishRun, type Run } from '../../../storage/work/runs.ts'
import type { Db } from '../../../storage/database.ts'
import { insertAuditRow } from '../../../storage/access/audit.ts'
import { type EventRow, insertEvents } from '../../../storage/events/events.ts'
import { writeEvents } from '../messaging/announce.ts'
import { findLiveKeyById, isKeyRevoked } from '../../../storage/access/keys.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { createContext } from '../../kernel/create-context.ts'
import { type Outcome, guardOutcome } from '../../kernel/guard.ts'
import { createEmit } from '../../kernel/emit.ts'
import { Problem } from '../../kernel/problem.ts'
import { withRetries } from '../../kernel/retry.ts'
import { toActor } from '../../kernel/authenticate.ts'
import { commitWith, getLocalHandler, withTransaction } from '../../kernel/write-call.ts'
import { notifyEvents } from '../events/signal.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { commitStep, createRunJob, type Progress } from '../../work/engine.ts'
import { FIXED_HOURS, hoursAgo } from '../../work/retention-periods.ts'
import type { JobDefinition } from '../../work/runner.ts'
import type { BulkOutput } from './output.ts'
import { getIdField, listCallIds } from './records.ts'
import { getRestorer, toRestoringCalls, toUndoCalls } from './undo.ts'
import { ANY_READER, toEventJob } from './view.ts'

/** The part of the time that is left to others between batches. */
const IDLE_SHARE = 0.2

/** `undo`: how it is taken back, but for what its events tell. */
type BatchOutcome = { events: EventRow[]; failures: readonly BatchFailure[]; undo: BatchCall[] }

/** Makes one call of a job in its transaction, as whoever began the job. */
const makeCall = async (
  app: App,
  tx: Transaction,
  job: JobRow,
  actor: Actor,
  { operation, input }: BatchCall,
  attempt: number,
): Promise<BatchOutcome> => {
  const op = findOperation(operation)
  if (!op) throw new Problem('not_found', `There is no operation ${operation}.`)
  requireScope(actor, op)
  requireUndenied(actor, op)
  const trace = { door: job.door, client: job.client, requestId: job.request_id, confirmed: false }
  const pending: PendingWrites = { events: [] }
  const ctx = createContext(app, { tx, actor, op, input, pending, attempt, trace })
  const handler = getRestorer({ operation, input }) ?? getLocalHandler(app, op)
  const output = (await handler(ctx, input)) as BulkOutput<unknown>
  const outcome: Outcome = { kind: 'completed', db: tx, output, pending }
  await guardOutcome(app, { actor, op, input, trace }, outcome)
  if (outcome.audit) await insertAuditRow(tx, actor.workspace.id, outcome.audit)
  return {
    events: pending.events,
    failures: pending.failures ?? output.failures,
    undo: toRestoringCalls(operation, pending.undo),
  }
}

/** A call that takes back what a job did can fail by itself, such as for a tag that was deleted since. */
const makeUndoCall = async (
  app: App,
  tx: Transaction,
  job: JobRow,
  actor: Actor,
  call: BatchCall,
  attempt: number,
): Promise<BatchOutcome> => {
  try {
    return await makeCall(app, tx, job, actor, call, attempt)
  } catch (error) {
    if (!(error instanceof Problem) || error.status === 403) throw error
    const { code, message } = error
    return { events: [], failures: listCallIds(call).map((id) => ({ id, code, message })), undo: [] }
  }
}

const runBatch = async (
  app: App,
  tx: Transaction,
  job: JobRow,
  actor: Actor,
  batch: OpenBatch,
  attempt: number,
): Promise<BatchOutcome> => {
  if (batch.calls === null) {
    const input = { ...job.input, [getIdField(job.operation)]: batch.record_ids }
    return await makeCall(app, tx, job, actor, { operation: job.operation, input }, attempt)
  }
  const outcomes: BatchOutcome[] = []
  for (const call of batch.calls) outcomes.push(await makeUndoCall(app, tx, job, actor, call, attempt))
  return {
    events: outcomes.flatMap(({ events }) => events),
    failures: outcomes.flatMap(({ failures }) => failures),
    undo: outcomes.flatMap(({ undo }) => undo),
  }
}

/** Changes the next batch of a job, or ends the job. Its row is locked, so nobody else does at the same time. */
const runNext = (app: App, run: Run): Promise<Progress> =>
  withRetries((attempt) =>
    withTransaction(app, async (tx) => {
      const { workspace_id: workspaceId, subject: id } = run
      const startedAt = performance.now()
      const job = await lockJob(tx, workspaceId, ANY_READER, id)
      if (job?.state !== 'running') {
        await commitStep(tx, finishRun(tx, run))
        return 'over'
      }
      const actor = await findActor(app, job, tx)
      const batch = await findOpenBatch(tx, workspaceId, id)
      if (!batch) {
        await end(app, tx, job, { state: 'done', problem: null })
        return 'over'
      }
      const { events, failures, undo } = await runBatch(app, tx, job, actor, batch, attempt)
      const { changed, calls } = toUndoCalls(events, undo)
      const needsDelivery = await writeEvents(tx, workspaceId, events)
      const tookMs = performance.now() - startedAt
      await finishBatch(tx, workspaceId, id, {
        no: batch.no,
        done: batch.record_ids.length,
        changed,
        // An undo is not undone itself.
        undo: batch.calls === null ? calls : [],
        failures,
        tookMs: tookMs / (1 - IDLE_SHARE),
      })
      if (!(await commitStep(tx, advanceRun(tx, run)))) return 'over'
      notifyEvents(app, { workspaceId, needsDelivery })
      return 'on'
    }),
  )

/** Ends a locked job, and commits. */
export const end = async (
  app: App,
  tx: Transaction,
  job: JobRow,
  { state, problem }: Pick<JobRow, 'state' | 'problem'>,
): Promise<void> => {
  const { workspace_id: workspaceId } = job
  const now = businessTime(app, workspaceId)
  const events: EventRow[] = []
  createEmit(events, now)('job.finished/1', toEventJob({ ...job, state }))
  await setJobState(tx, job, { state, problem, finished_at: now })
  const needsDelivery = await commitWith(tx, insertEvents(tx, workspaceId, events))
  notifyEvents(app, { workspaceId, needsDelivery })
}

/** Ends a job that cannot go on, unless it was paused or cancelled meanwhile. */
export const fail = (app: App, run: Run, { code, message }: Problem): Promise<void> =>
  withTransaction(app, async (tx) => {
    const job = await lockJob(tx, run.workspace_id, ANY_READER, run.subject)
    if (job?.state === 'running')
      await end(app, tx, job, { state: 'failed', problem: { code, detail: message } })
    else await commitStep(tx, finishRun(tx, run))
  })

/**
 * Returns the key that began a job or an export, or the newest one that replaced it. Throws 403 when that may do
 * nothing any more, or the one that began it was revoked: somebody else may have had it.
 */
export const findActor = async (
  app: App,
  { workspace_id: workspaceId, key_id: keyId }: Pick<JobRow, 'workspace_id' | 'key_id'>,
  db: Db = app.db,
): Promise<Actor> => {
  const key = await findLiveKeyById(db, workspaceId, keyId, app.now())
  const isEnded = !key || (key.key_id !== keyId && (await isKeyRevoked(db, workspaceId, keyId)))
  if (isEnded) throw new Problem('forbidden', 'The key that began the job is revoked, expired or disabled.')
  const actor = toActor(key)
  requireActive(actor)
  return actor
}

/** Problems that a later attempt may not meet. */
const isTransient = ({ status, extras }: Problem): boolean => status >= 500 || passesSoon(extras.reason)

/** One of an operation that nobody knows is taken after this, and fails. */
const ABANDONED_AFTER_SECONDS = 24 * 60 * 60

export const bulkJobsJob = (app: App): JobDefinition =>
  createRunJob(app, {
    kind: 'bulk_jobs',
    job: 'bulk-jobs',
    knows: operationNames,
    abandonedAfterSeconds: ABANDONED_AFTER_SECONDS,
    idleShare: IDLE_SHARE,
    step: (run) => runNext(app, run),
    fail: async (run, error) => {
      if (!(error instanceof Problem) || isTransient(error)) return false
      await fail(app, run, error)
      return true
    },
  })

/** Deletes plans that nobody carried out, and jobs that ended long ago. Returns their count. */
export const deleteOldJobs = (app: App, signal: AbortSignal): Promise<number> => {
  const before = {
    plans: hoursAgo(app.now(), FIXED_HOURS.plans),
    jobs: hoursAgo(app.now(), FIXED_HOURS.jobs),
  }
  return changeInBatches((limit) => deleteJobsBefore(app.db, before, limit), signal)
}
