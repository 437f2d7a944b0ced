import type { Call, Consent, ExecutionResult } from '../../../kernel/call.ts'
import { passesSoon } from '../../../../catalog/passing-reasons.ts'
import { findOperation, operationNames } from '../../../../catalog/index.ts'
import {
  type ApprovalRow,
  claimApproved,
  decideApproval,
  deleteApprovalsBefore,
  endApproval,
  findApproval,
  findSecondsUntilNextRun,
  hasRecord,
  holdApproved,
  lockExpired,
  postponeApproved,
} from '../../../../storage/agents/approvals.ts'
import type { Db } from '../../../../storage/database.ts'
import type { EventRow } from '../../../../storage/events/events.ts'
import { findLiveKeyById } from '../../../../storage/access/keys.ts'
import { businessTime } from '../../../clock.ts'
import type { App } from '../../../app.ts'
import { createEmit } from '../../../kernel/emit.ts'
import { rehearse } from '../../../kernel/dry-run.ts'
import { execute } from '../../../kernel/execute.ts'
import { Problem } from '../../../kernel/problem.ts'
import { toActor } from '../../../kernel/authenticate.ts'
import { requireActive, requireScope } from '../../../kernel/access.ts'
import { applyPolicyToApproved, requireApprovedBounds } from '../policy.ts'
import { createSendCount } from '../send-count.ts'
import { withTransaction } from '../../../kernel/write-call.ts'
import { insertAllEvents, notifyEvents } from '../../../domains/events/signal.ts'
import { computeRetrySeconds } from '../../../work/backoff.ts'
import { changeInBatches } from '../../../work/change-in-batches.ts'
import { errorLogDetails } from '../../../kernel/log-details.ts'
import { FIXED_HOURS, hoursAgo } from '../../../work/retention-periods.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../../work/runner.ts'
import { takePhoneBudget } from '../../phone-budget.ts'
import { requireApprovedSubjects } from './call-subjects.ts'
import { digestTemplate, requireSameTemplate } from './freeze.ts'
import { keyEndedProblem, mayReplay, toApprovedCall, toRunInput } from './stored-call.ts'
import { toEventApproval } from '../../../visibility/approvals.ts'

/** Longer than a call may take, so that an expired lease means that its server died. */
const LEASE_SECONDS = 45
const BATCH_SIZE = 8
const MIN_DELAY_MS = 200

/** How an approved call ended; undefined when that is still open. */
type Ending = { status: 'done' | 'failed'; answer: number; outcome: object | null } | undefined

/** Problems that a later attempt may not meet, or that leave open what became of the call. */
const isTransient = (problem: Problem): boolean =>
  problem.status >= 500
    ? (problem.code !== 'upstream_error' && problem.code !== 'service_unconfigured') ||
      problem.leavesOpen ||
      problem.extras.reason === 'outcome_unknown'
    : passesSoon(problem.extras.reason)

const toFailed = (problem: Problem): Ending => ({
  status: 'failed',
  answer: problem.status,
  outcome: { code: problem.code, reason: problem.extras.reason ?? null, detail: problem.message },
})

const tooLateProblem = (): Problem =>
  new Problem('declined', 'No server could run the call for too long after it was approved.', {
    reason: 'expired',
  })

/** Whether the call that was asked for ran by itself, under the idempotency key that it came with. */
const ranMeanwhile = async (app: App, row: ApprovalRow): Promise<boolean> =>
  row.idempotency_key !== null &&
  (await hasRecord(app.db, {
    workspaceId: row.workspace_id,
    staffId: row.staff_id,
    key: row.idempotency_key,
    fingerprint: row.digest,
  }))

/** Checks in the transaction of an approved call that it may still run: an erasure cancels what waits. */
export const requireStillApproved = async (
  app: App,
  tx: Db,
  call: Call,
  { approvalId, askedFor }: Extract<Consent, { by: 'approval' }>,
): Promise<void> => {
  if (!(await holdApproved(tx, call.actor.workspace.id, approvalId)))
    throw new Problem('declined', 'The request was cancelled before the call began.', { reason: 'cancelled' })
  await requireApprovedBounds(app, tx, call, askedFor)
}

/**
 * Runs an approved call as the agent that asked for it, with the rights and under the policy of this moment. Its
 * idempotency key makes sure that it runs once, whichever server begins it, and again after a crash.
 */
const runApproved = async (app: App, row: ApprovalRow, isLate: boolean): Promise<Ending> => {
  const op = findOperation(row.operation)
  if (!op) return toFailed(tooLateProblem())
  const key = await findLiveKeyById(app.db, row.workspace_id, row.key_id, app.now())
  if (!key) return toFailed(keyEndedProblem())
  const call = toApprovedCall(row, toActor(key), op, toRunInput(app, row))
  // Also of a server that died: nothing but the record of the run tells of that.
  const hasRun = await mayReplay(app, call)
  if (!hasRun) {
    if (isLate) return toFailed(tooLateProblem())
    if (await ranMeanwhile(app, row))
      return toFailed(
        new Problem(
          'conflict',
          'The same call ran under its idempotency key meanwhile; it does not run again.',
          {
            reason: 'already_decided',
          },
        ),
      )
    requireActive(call.actor)
    requireScope(call.actor, op)
    await applyPolicyToApproved(app, call.actor, op, call.input, row.asked_for)
    await takePhoneBudget(app, call.actor, op, call.input)
    await requireApprovedSubjects(app, call.actor, row)
    if (digestTemplate(op, row.preview) !== undefined)
      requireSameTemplate(op, row.preview, (await rehearse(app, call)).output)
  }
  const count = createSendCount(app, call.actor, op)
  // Beyond the limit too, or the messages that follow would be too many.
  if (!hasRun) await count.take(false)
  let result: ExecutionResult
  try {
    result = await execute(app, call)
  } catch (error) {
    await count.keepIfSent({ error })
    throw error
  }
  await count.keepIfSent({ result })
  if (result.status < 400) return { status: 'done', answer: result.status, outcome: null }
  const problem =
    result.problem ??
    (({ code, detail, extras }) => new Problem(code, detail, extras))(
      JSON.parse(result.body) as { code: Problem['code']; detail: string; extras: Problem['extras'] },
    )
  return toFailed(problem)
}

const settle = async (
  app: App,
  {
    workspace_id: workspaceId,
    id,
    attempts,
    is_late: isLate,
  }: Awaited<ReturnType<typeof claimApproved>>[number],
): Promise<void> => {
  const retryIn = computeRetrySeconds(attempts)
  let ending: Ending
  try {
    const row = await findApproval(app.db, workspaceId, id)
    if (!row) return
    ending = await runApproved(app, row, isLate)
  } catch (error) {
    if (error instanceof Problem && !isTransient(error)) ending = toFailed(error)
    else app.log.warn({ approval: id, ...errorLogDetails(error) }, 'An approved call did not end; retrying')
  }
  if (ending === undefined) await postponeApproved(app.db, workspaceId, id, retryIn)
  else await endApproval(app.db, workspaceId, id, { ...ending, now: businessTime(app, workspaceId) })
  notifyEvents(app, { workspaceId, needsDelivery: false })
}

/** Runs approved calls whose time has come. Returns how many. */
const runAllApproved = async (app: App, signal: AbortSignal): Promise<number> => {
  for (let count = 0; ;) {
    if (signal.aborted) return count
    const batch = await claimApproved(app.db, LEASE_SECONDS, BATCH_SIZE, operationNames)
    await Promise.all(batch.map((claimed) => settle(app, claimed)))
    count += batch.length
    if (batch.length < BATCH_SIZE) return count
  }
}

/** Ends requests on which nobody decided in time. Returns how many. */
const expireApprovals = async (app: App): Promise<number> => {
  const expired = await withTransaction(app, async (tx) => {
    const rows = await lockExpired(tx, app.now(), app.clockOffsets, 100)
    const events = new Map<string, EventRow[]>()
    for (const { workspace_id: workspaceId, id } of rows) {
      const now = businessTime(app, workspaceId)
      const row = (await findApproval(tx, workspaceId, id))!
      await decideApproval(tx, workspaceId, id, {
        status: 'expired',
        now,
        staffId: null,
        keyId: null,
        note: null,
        edited: null,
        runSeconds: 0,
      })
      const own = events.get(workspaceId) ?? []
      events.set(workspaceId, own)
      createEmit(own, now)('approval.decided/1', {
        approval: toEventApproval(row, 'expired'),
        decided_by: null,
      })
    }
    const news = await insertAllEvents(tx, events)
    await tx.commit().execute()
    return { count: rows.length, news }
  })
  for (const news of expired.news) notifyEvents(app, news)
  return expired.count
}

/** Runs what was approved, also of servers that died, and ends what expired. */
export const approvalsJob = (app: App): JobDefinition => ({
  name: 'approvals',
  intervalMs: getIdleMs(app),
  run: async (signal) => {
    const processed = await runAllApproved(app, signal)
    await expireApprovals(app)
    const seconds = await findSecondsUntilNextRun(app.db, operationNames)
    return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
  },
})

/** Deletes requests that ended 30 days ago. */
export const deleteOldApprovals = (app: App, signal: AbortSignal): Promise<number> =>
  changeInBatches(
    (limit) => deleteApprovalsBefore(app.db, hoursAgo(app.now(), FIXED_HOURS.approvals), limit),
    signal,
  )
