import type { Call, Consent } from '../../../kernel/call.ts'
import { passesSoon } from '../../../../catalog/passing-reasons.ts'
import { findOperation, operationNames } from '../../../../catalog/index.ts'
import {
  type ApprovalRow,
  decideApproval,
  deleteApprovalsBefore,
  endApproval,
  findApproval,
  hasRecord,
  holdApproved,
  lockExpired,
} from '../../../../storage/agents/approvals.ts'
import type { Db } from '../../../../storage/database.ts'
import { finishRun, type Run } from '../../../../storage/work/runs.ts'
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
import { changeInBatches } from '../../../work/change-in-batches.ts'
import { createRunJob, type Progress } from '../../../work/engine.ts'
import { FIXED_HOURS, hoursAgo } from '../../../work/retention-periods.ts'
import type { JobDefinition } from '../../../work/runner.ts'
import { takePhoneBudget } from '../../phone-budget.ts'
import { requireApprovedSubjects } from './call-subjects.ts'
import { digestTemplate, requireSameTemplate } from './freeze.ts'
import { keyEndedProblem, mayReplay, RUN_SECONDS, toApprovedCall, toRunInput } from './stored-call.ts'
import { toEventApproval } from '../../../visibility/approvals.ts'

/** Calls that a server runs at once. */
const TURNS = 8

/** How an approved call ended. */
type Ending = { status: 'done' | 'failed'; answer: number; outcome: object | null }

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
const runApproved = async (app: App, row: ApprovalRow): Promise<Ending> => {
  const op = findOperation(row.operation)
  if (!op) return toFailed(tooLateProblem())
  const key = await findLiveKeyById(app.db, row.workspace_id, row.key_id, app.now())
  if (!key) return toFailed(keyEndedProblem())
  const call = toApprovedCall(row, toActor(key), op, toRunInput(app, row))
  // Also of a server that died: nothing but the record of the run tells of that.
  const hasRun = await mayReplay(app, call)
  if (!hasRun) {
    if (row.is_late) return toFailed(tooLateProblem())
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
  const result = await execute(app, call).catch(async (error: unknown) => {
    await count.keepIfSent({ error })
    throw error
  })
  await count.keepIfSent({ result })
  if (result.status < 400) {
    const { broadcast } = JSON.parse(result.body) as { broadcast?: { id: string } }
    return {
      status: 'done',
      answer: result.status,
      outcome: broadcast ? { broadcast_id: broadcast.id } : null,
    }
  }
  const problem =
    result.problem ??
    (({ code, detail, extras }) => new Problem(code, detail, extras))(
      JSON.parse(result.body) as { code: Problem['code']; detail: string; extras: Problem['extras'] },
    )
  return toFailed(problem)
}

/** Runs the call of a run, and writes how it ended; rejects where that is open still. */
const settle = async (app: App, run: Run): Promise<Progress> => {
  const { workspace_id: workspaceId, subject: id } = run
  const row = await findApproval(app.db, workspaceId, id)
  if (row?.status === 'approved')
    try {
      const ending = await runApproved(app, row).catch((error: unknown) => {
        if (error instanceof Problem && !isTransient(error)) return toFailed(error)
        throw error
      })
      await endApproval(app.db, workspaceId, id, { ...ending, now: businessTime(app, workspaceId) })
    } finally {
      notifyEvents(app, { workspaceId, needsDelivery: false })
    }
  await finishRun(app.db, run)
  return 'over'
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
export const approvalsJob = (app: App): JobDefinition => {
  const job = createRunJob(app, {
    kind: 'approved_calls',
    job: 'approvals',
    knows: operationNames,
    abandonedAfterSeconds: RUN_SECONDS,
    turns: TURNS,
    step: (run) => settle(app, run),
  })
  return {
    ...job,
    run: async (signal, nextWake) => {
      const result = await job.run(signal, nextWake)
      await expireApprovals(app)
      return result
    },
  }
}

/** Deletes requests that ended 30 days ago. */
export const deleteOldApprovals = (app: App, signal: AbortSignal): Promise<number> =>
  changeInBatches(
    (limit) => deleteApprovalsBefore(app.db, hoursAgo(app.now(), FIXED_HOURS.approvals), limit),
    signal,
  )
