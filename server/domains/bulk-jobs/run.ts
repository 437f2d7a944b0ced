import { requireUndenied } from '../../agent-policy.ts'
import type { Transaction } from '../../kernel/call.ts'
import type { Actor, PendingWrites } from '../../kernel/context.ts'
import { requireScope, requireActive } from '../../kernel/access.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { passesSoon } from '../../../catalog/passing-reasons.ts'
import { findOperation, operationNames } from '../../../catalog/index.ts'
import {
  type BatchCall,
  type BatchFailure,
  claimJob,
  deleteJobsBefore,
  findOpenBatch,
  findSecondsUntilJob,
  finishBatch,
  type JobRow,
  lockJob,
  type OpenBatch,
  postponeJob,
  setJobState,
} from '../../../storage/work/bulk-jobs.ts'
import { insertAuditRow } from '../../../storage/access/audit.ts'
import { type EventRow, insertEvents } from '../../../storage/events/events.ts'
import { writeEvents } from '../messaging/announce.ts'
import { findLiveKeyById, isKeyRevoked } from '../../../storage/access/keys.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { createContext } from '../../kernel/create-context.ts'
import { type Outcome, settleOutcome } from '../../kernel/guard.ts'
import { createEmit } from '../../kernel/emit.ts'
import { Problem } from '../../kernel/problem.ts'
import { withRetries } from '../../kernel/retry.ts'
import { toActor } from '../../kernel/authenticate.ts'
import { commitWith, getLocalHandler, withTransaction } from '../../kernel/write-call.ts'
import { notifyEvents } from '../events/signal.ts'
import { computeRetrySeconds } from '../../work/backoff.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { FIXED_HOURS, hoursAgo } from '../../work/retention-periods.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import type { BulkOutput } from './output.ts'
import { getIdField, listCallIds } from './records.ts'
import { getRestorer, toRestoringCalls, toUndoCalls } from './undo.ts'
import { ANY_READER, toEventJob } from './view.ts'

/** Longer than a batch may take, so that an expired lease means that its server died. */
const LEASE_SECONDS = 30
/** After this others get their turn: jobs of other workspaces, on whichever server. */
const TURN_MS = 2000
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
  await settleOutcome(app, { actor, op, input, trace }, outcome)
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

/** What became of a job in a turn: it goes on, or has ended or stopped. */
type Progress = { goesOn: boolean; tookMs: number }
export type Claimed = NonNullable<Awaited<ReturnType<typeof claimJob>>>

/** Changes the next batch of a job, or ends the job. Its row is locked, so nobody else does at the same time. */
const runNext = (app: App, { workspace_id: workspaceId, id }: Claimed, actor: Actor): Promise<Progress> =>
  withRetries((attempt) =>
    withTransaction(app, async (tx) => {
      const startedAt = performance.now()
      const job = await lockJob(tx, workspaceId, ANY_READER, id)
      if (job?.state !== 'running') {
        await tx.rollback().execute()
        return { goesOn: false, tookMs: 0 }
      }
      const batch = await findOpenBatch(tx, workspaceId, id)
      if (!batch) {
        await end(app, tx, job, { state: 'done', problem: null })
        return { goesOn: false, tookMs: 0 }
      }
      const { events, failures, undo } = await runBatch(app, tx, job, actor, batch, attempt)
      const { changed, calls } = toUndoCalls(events, undo)
      const needsDelivery = await writeEvents(tx, workspaceId, events)
      const tookMs = performance.now() - startedAt
      await commitWith(
        tx,
        finishBatch(
          tx,
          workspaceId,
          id,
          {
            no: batch.no,
            done: batch.record_ids.length,
            changed,
            // An undo is not undone itself.
            undo: batch.calls === null ? calls : [],
            failures,
            tookMs: tookMs / (1 - IDLE_SHARE),
          },
          LEASE_SECONDS,
        ),
      )
      notifyEvents(app, { workspaceId, needsDelivery })
      return { goesOn: true, tookMs: performance.now() - startedAt }
    }),
  )

/** Ends a locked job, and commits. */
export const end = async (
  app: App,
  tx: Transaction,
  job: JobRow,
  { state, problem }: Pick<JobRow, 'state' | 'problem'>,
): Promise<void> => {
  const { workspace_id: workspaceId, id } = job
  const now = businessTime(app, workspaceId)
  const events: EventRow[] = []
  createEmit(events, now)('job.finished/1', toEventJob({ ...job, state }))
  await setJobState(tx, workspaceId, id, { state, problem, finished_at: now })
  const needsDelivery = await commitWith(tx, insertEvents(tx, workspaceId, events))
  notifyEvents(app, { workspaceId, needsDelivery })
}

/** Ends a job that cannot go on, unless it was paused or cancelled meanwhile. */
export const fail = (
  app: App,
  { workspace_id: workspaceId, id }: Claimed,
  { code, message }: Problem,
): Promise<void> =>
  withTransaction(app, async (tx) => {
    const job = await lockJob(tx, workspaceId, ANY_READER, id)
    if (job?.state === 'running')
      await end(app, tx, job, { state: 'failed', problem: { code, detail: message } })
    else await tx.rollback().execute()
  })

/**
 * Returns the key that began a job or an export, or the newest one that replaced it. Throws 403 when that may do
 * nothing any more, or the one that began it was revoked: somebody else may have had it.
 */
export const findActor = async (
  app: App,
  { workspace_id: workspaceId, key_id: keyId }: Pick<Claimed, 'workspace_id' | 'key_id'>,
): Promise<Actor> => {
  const key = await findLiveKeyById(app.db, workspaceId, keyId, app.now())
  const isEnded = !key || (key.key_id !== keyId && (await isKeyRevoked(app.db, workspaceId, keyId)))
  if (isEnded) throw new Problem('forbidden', 'The key that began the job is revoked, expired or disabled.')
  const actor = toActor(key)
  requireActive(actor)
  return actor
}

/** Problems that a later attempt may not meet. */
const isTransient = ({ status, extras }: Problem): boolean => status >= 500 || passesSoon(extras.reason)

/** Lets a claimed job change batches for a while. Returns how many. */
const takeTurn = async (app: App, claimed: Claimed, signal: AbortSignal): Promise<number> => {
  const { workspace_id: workspaceId, id, attempts } = claimed
  const startedAt = performance.now()
  let retryIn = 0
  let count = 0
  try {
    const actor = await findActor(app, claimed)
    for (; !signal.aborted && performance.now() - startedAt < TURN_MS; count++) {
      const { goesOn, tookMs } = await runNext(app, claimed, actor)
      if (!goesOn) return count
      // Rejects when the job is stopped, which ends the turn.
      await sleep((tookMs * IDLE_SHARE) / (1 - IDLE_SHARE), undefined, { signal }).catch(() => {})
    }
  } catch (error) {
    if (error instanceof Problem && !isTransient(error)) {
      await fail(app, claimed, error)
      return count
    }
    retryIn = computeRetrySeconds(attempts)
    app.log.warn({ job: id, ...errorLogDetails(error) }, 'A job did not go on; retrying')
  }
  await postponeJob(app.db, workspaceId, id, retryIn)
  return count
}

const runAll = async (app: App, signal: AbortSignal): Promise<number> => {
  for (let count = 0; ;) {
    const claimed = signal.aborted
      ? undefined
      : await claimJob(app.db, LEASE_SECONDS, 'changes', operationNames)
    if (!claimed) return count
    count += await takeTurn(app, claimed, signal)
  }
}

const MIN_DELAY_MS = 200

export const bulkJobsJob = (app: App): JobDefinition => ({
  name: 'bulk-jobs',
  intervalMs: getIdleMs(app),
  run: async (signal) => {
    const processed = await runAll(app, signal)
    const seconds = await findSecondsUntilJob(app.db, 'changes', operationNames)
    return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
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
