import type { OperationName } from '../../catalog/index.ts'
import { mayPass } from '../../catalog/passing-reasons.ts'
import { insertResult } from '../../storage/access/idempotency.ts'
import { insertRefusal } from '../../storage/agents/refusals.ts'
import { toFailure } from '../guards/audit/entry.ts'
import { type EventNews, notifyEvents } from '../domains/events/signal.ts'
import { hasContactBudget, takeContacts } from '../visibility/contact-budget.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import { announceOnRetry } from '../domains/messaging/announce.ts'
import type { JobName } from '../work/runner.ts'
import type { App } from './app.ts'
import { createContext, type PendingWrites } from './create-context.ts'
import { checkPlan } from './dry-run.ts'
import { executeExternal } from './external.ts'
import type { LocalHandler } from './handler.ts'
import { Problem } from './problem.ts'
import { withRetries } from './retry.ts'
import { isOutcomeLost } from './deadline.ts'
import { computeFingerprint, RECORD_TTL_MS, stillRunningProblem, toRunningKey } from './idempotency.ts'
import { listQuestions } from '../guards/agents/policy.ts'
import { checkPrecondition, withoutPrecondition } from '../guards/snapshot/precondition.ts'
import {
  commitWith,
  endReplay,
  type ExecutionResult,
  getHandler,
  getSuccessStatus,
  reserve,
  toFinalRecord,
  toStoredProblem,
  toSuccess,
  withTransaction,
  type WriteCall,
} from './write-call.ts'

/**
 * Runs a change once per key: the change, its events, its audit row and the record of its response are one
 * transaction.
 */
export const execute = async (app: App, call: WriteCall): Promise<ExecutionResult> => {
  const runningKey = toRunningKey(call.actor, call.key)
  if (app.runningKeys.has(runningKey)) throw stillRunningProblem()
  app.runningKeys.add(runningKey)
  try {
    const result = await run(app, call)
    if (result.askedFor) return result
    if (result.replayed) await countStoredAnswer(app, call, result)
    if (!result.replayed && mayWriteEvents(call)) notifyEvents(app, toNews(call, result))
    for (const name of listJobsToWake(call, result)) app.jobs.job(name).wake()
    return result
  } catch (error) {
    if (error instanceof Problem && isFinal(error)) return await storeFailure(app, call, error)
    throw error
  } finally {
    app.runningKeys.delete(runningKey)
  }
}

/** The jobs that have work after each call of these operations. */
const JOBS_AFTER: Partial<Record<OperationName, readonly JobName[]>> = {
  approvals_approve: ['approvals'],
  crm_erase_contact: ['erasures'],
  crm_export_contacts: ['exports'],
  crm_export_person: ['exports'],
  jobs_resume: ['bulk-jobs', 'bulk-sends'],
  jobs_undo: ['bulk-jobs'],
}

/** Returns the background jobs to wake after a call. Without that they find its work at their interval. */
const listJobsToWake = ({ op }: WriteCall, { status }: ExecutionResult): readonly JobName[] => {
  const after = JOBS_AFTER[op.name as OperationName]
  if (after) return after
  // Of few records, such an operation does the work itself.
  if (!op.jobs || status !== 202) return []
  return [op.name === 'messaging_send_bulk' ? 'bulk-sends' : 'bulk-jobs']
}

/** An answer that is given again shows contacts again, perhaps on another day. */
const countStoredAnswer = async (app: App, { actor, op, input }: WriteCall, { body }: ExecutionResult) => {
  if (hasContactBudget(actor))
    await takeContacts(app, app.db, actor, listContactSubjects(op, input, JSON.parse(body)))
}

export const clientDeclinedProblem = (): Problem =>
  new Problem('declined', 'The person who was asked declined this call.')

/**
 * Stores that the person behind the client declined a call, which then never runs under its key; the same call of an
 * agent not under another key either, for a day. Returns the stored answer where the call has run already. `asked`:
 * the input as the client sent it.
 */
export const refuse = async (
  app: App,
  call: WriteCall,
  asked: Record<string, unknown>,
): Promise<ExecutionResult> => {
  const result = await storeFailure(app, call, clientDeclinedProblem())
  const { key, staff, workspace } = call.actor
  if (key.agent && result.status >= 400) {
    const now = app.now()
    const expiresAt = new Date(Date.parse(now) + RECORD_TTL_MS).toISOString()
    const asker = { workspaceId: workspace.id, staffId: staff.id, familyId: key.familyId }
    await insertRefusal(app.db, asker, computeFingerprint(call.op, asked), { now, expiresAt })
  }
  return result
}

/** Runs the handler. Where the connection was lost, the stored result says whether the change was made. */
const run = async (app: App, call: WriteCall): Promise<ExecutionResult> => {
  const handler = getHandler(app, call.op)
  try {
    return typeof handler === 'function'
      ? await executeLocal(app, call, handler)
      : await executeExternal(app, call, handler)
  } catch (error) {
    const found = isOutcomeLost(error) ? await findOutcome(app, call) : undefined
    if (!found) throw error
    return found
  }
}

/** Events, or deliveries to webhook endpoints. */
const mayWriteEvents = ({ op }: WriteCall): boolean =>
  (op.emits?.length ?? 0) > 0 || op.scope === 'webhooks:write'

/** An operation on webhooks may add deliveries itself; where the result does not say, there may be some. */
const toNews = ({ actor, op }: WriteCall, { needsDelivery = true }: ExecutionResult): EventNews => ({
  workspaceId: actor.workspace.id,
  needsDelivery: needsDelivery || op.scope === 'webhooks:write',
})

/** Runs an operation that needs only the database, in one transaction. */
const executeLocal = (app: App, call: WriteCall, handler: LocalHandler<unknown>): Promise<ExecutionResult> =>
  withRetries((attempt) =>
    withTransaction(
      app,
      async (tx) => {
        const { replay } = call.fresh ? {} : await reserve(app, tx, call)
        if (replay) {
          await endReplay(tx)
          return replay
        }
        await call.requireStillAllowed?.(tx)
        await checkPrecondition(app, tx, call)
        await checkPlan(app, tx, call, attempt)
        const pending: PendingWrites = { events: [] }
        const output = await handler(
          createContext(app, { ...call, tx, pending, attempt, mayBeOptimistic: attempt === 1 }),
          withoutPrecondition(call),
        )
        const askedFor = call.mayAsk ? listQuestions(call.actor, call.op, pending.events) : undefined
        if (askedFor) {
          await tx.rollback().execute()
          return { status: 202, body: '', askedFor }
        }
        if (hasContactBudget(call.actor))
          await takeContacts(app, tx, call.actor, listContactSubjects(call.op, call.input, output))
        const [status, body] = [getSuccessStatus(call.op, output), JSON.stringify(output)]
        const record = toFinalRecord(app, call, status, body, toSuccess(output, pending))
        const events = await announceOnRetry(tx, call.actor.workspace.id, pending.events, attempt)
        const needsDelivery = await commitWith(tx, insertResult(tx, record, events, pending.deferred))
        return { status, body, needsDelivery }
      },
      call,
    ),
  )

/**
 * Returns the stored result of a call whose connection was lost, perhaps after its commit. Undefined when
 * there is none, or it cannot be read: then only a retry with the same key finds out.
 */
const findOutcome = (app: App, call: WriteCall): Promise<ExecutionResult | undefined> =>
  withTransaction(app, async (tx) => {
    const { replay } = await reserve(app, tx, call)
    await (replay ? endReplay(tx) : tx.rollback().execute())
    return replay && { ...replay, replayed: false }
  }).catch(() => undefined)

/** Errors about the state of records are stored. The others ask for another input or for a later retry. */
const FINAL_STATUSES = new Set([403, 404, 409])

/** Conflicts that end with something else than the records: with what the caller may see, or with another plan. */
const UNSTORED_REASONS = new Set<unknown>(['visibility_changed', 'plan_changed'])

/**
 * Whether an error of the handler is stored for retries. A 400 never is, whenever it was found: the caller
 * corrects the input and sends it with the same key.
 */
const isFinal = (problem: Problem): boolean =>
  FINAL_STATUSES.has(problem.status) &&
  !mayPass(problem.extras.reason) &&
  !UNSTORED_REASONS.has(problem.extras.reason)

/** Stores an error in a transaction of its own: the one that failed changed nothing. */
const storeFailure = async (app: App, call: WriteCall, problem: Problem): Promise<ExecutionResult> => {
  const body = toStoredProblem(problem)
  if (hasContactBudget(call.actor))
    await takeContacts(app, app.db, call.actor, listContactSubjects(call.op, call.input))
  return await withRetries(() =>
    withTransaction(app, async (tx) => {
      const { replay } = call.fresh ? {} : await reserve(app, tx, call)
      if (replay) {
        await endReplay(tx)
        return replay
      }
      const outcome = problem.isAudited ? undefined : toFailure(problem)
      await commitWith(tx, insertResult(tx, toFinalRecord(app, call, problem.status, body, outcome), []))
      return { status: problem.status, body, problem }
    }),
  )
}
