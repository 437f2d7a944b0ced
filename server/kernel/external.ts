import { setTimeout as sleep } from 'node:timers/promises'
import { insertAuditRow } from '../../storage/access/audit.ts'
import {
  deleteRunningRecord,
  releaseLease,
  type LeaseToken,
  lockRecord,
  takeOverLease,
  completeRecord,
  insertIntent,
  insertResult,
} from '../../storage/access/idempotency.ts'
import { toFailure } from '../guards/audit/entry.ts'
import { markAudited } from '../guards/audit/record.ts'
import { businessTime } from '../clock.ts'
import { notifyEvents } from '../domains/events/signal.ts'
import { errorLogDetails } from './log-details.ts'
import { isOutcomeUnknown, requireProviderConfigured } from '../provider/port.ts'
import { announceOnRetry, writeEvents } from '../domains/messaging/announce.ts'
import { hasContactBudget, takeContacts } from '../visibility/contact-budget.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import type { App } from './app.ts'
import type { Actor, CallTrace } from './context.ts'
import { createContext, type PendingWrites } from './create-context.ts'
import { checkPlan } from './dry-run.ts'
import type { CallOptions, ExternalHandler } from './handler.ts'
import { answerOpen, notConfirmedProblem, timeoutProblem } from './open-outcomes.ts'
import { Problem } from './problem.ts'
import { requireProviderFor } from './require-provider.ts'
import { withRetries } from './retry.ts'
import { checkPrecondition, withoutPrecondition } from '../guards/snapshot/precondition.ts'
import {
  commitWith,
  endReplay,
  type ExecutionResult,
  getSuccessStatus,
  reserve,
  toCallAudit,
  toFinalRecord,
  toRecordKey,
  toReplay,
  toStoredProblem,
  toSuccess,
  type Transaction,
  withTransaction,
  type WriteCall,
} from './write-call.ts'

const CALL_DEADLINE_MS = 20_000
/** Longer than a call or a wait may last, so that an expired lease means that the caller died. */
const LEASE_SECONDS = 30
/** Business time after which a call whose outcome is unknown is given up. */
const GIVE_UP_AFTER_MS = 24 * 60 * 60 * 1000
/** How often a waiting repeat looks at what this service has stored, and how often it asks the provider. */
const CHECK_MS = 500
const ASK_MS = 2500

/** What the record of a running call stores, so that a repeat or a worker can complete it. */
export type StoredIntent = {
  intent: unknown
  input: Record<string, unknown>
  keyId: string
  trace?: CallTrace
  /** Who approved the call of an agent. */
  approvedBy?: Actor['approvedBy']
}

/** A call whose intent is committed. */
export type StartedCall = { intent: unknown; lease: LeaseToken }

type Handler = ExternalHandler<unknown>

/** Runs an operation that calls the provider: prepare, call, complete. */
export const executeExternal = async (
  app: App,
  call: WriteCall,
  handler: Handler,
): Promise<ExecutionResult> => {
  const started = await withRetries((attempt) => startCall(app, call, handler, attempt))
  if ('replay' in started) return started.replay
  if ('queued' in started) {
    app.jobs.job(handler.queue!.job).wake()
    return started.queued
  }
  return started.earlier
    ? await repeatCall(app, call, handler, started, started.earlier.over)
    : await makeCall(app, call, handler, started)
}

/**
 * `earlier`: the call was begun before, and its outcome is unknown; `over`: it is given up now. `queued`:
 * there is nothing to call, because a job delivers it.
 */
type Start =
  | (StartedCall & { earlier?: { over: boolean } })
  | { replay: ExecutionResult }
  | { queued: ExecutionResult }

/** Commits the intent of a new call, or takes over that of a call whose outcome is unknown. */
const startCall = (app: App, call: WriteCall, handler: Handler, attempt: number): Promise<Start> =>
  withTransaction(
    app,
    async (tx) => {
      const { replay, unfinished } = await reserve(app, tx, call)
      if (replay) {
        await endReplay(tx)
        return { replay }
      }
      const now = Date.parse(businessTime(app, call.actor.workspace.id))
      if (unfinished) {
        // Nothing here may undo what the call did at a provider.
        requireProviderConfigured(app.provider)
        const lease = await commitWith(tx, takeOverLease(tx, toRecordKey(call), LEASE_SECONDS))
        const { intent } = unfinished.intent as StoredIntent
        const giveUpAt = unfinished.give_up_at
        return { intent, lease, earlier: { over: giveUpAt !== null && Date.parse(giveUpAt) <= now } }
      }
      await call.requireStillAllowed?.(tx)
      await checkPrecondition(app, tx, call)
      await checkPlan(app, tx, call, attempt)
      const pending: PendingWrites = { events: [] }
      const ctx = createContext(app, { ...call, tx, pending, attempt })
      await requireProviderFor(app, handler, ctx, call.input)
      const intent = await handler.prepare(ctx, withoutPrecondition(call))
      if (hasContactBudget(call.actor))
        await takeContacts(app, tx, call.actor, listContactSubjects(call.op, call.input, intent))
      if (handler.queue?.takes(intent)) {
        const output = await handler.complete(ctx, intent, handler.dryRunResult(intent))
        const [status, body] = [getSuccessStatus(call.op), JSON.stringify(output)]
        const final = toFinalRecord(app, call, status, body, toSuccess(output, pending))
        const events = await announceOnRetry(tx, call.actor.workspace.id, pending.events, attempt)
        const needsDelivery = await commitWith(tx, insertResult(tx, final, events))
        return { queued: { status, body, needsDelivery } }
      }
      const stored: StoredIntent = {
        intent,
        input: call.input,
        keyId: call.actor.key.id,
        trace: call.trace,
        ...(call.actor.approvedBy ? { approvedBy: call.actor.approvedBy } : {}),
      }
      const record = toFinalRecord(app, call, 0, '')
      const giveUpAt = new Date(now + GIVE_UP_AFTER_MS).toISOString()
      const lease = await commitWith(tx, insertIntent(tx, record, stored, LEASE_SECONDS, giveUpAt))
      return { intent, lease }
    },
    call,
  )

const createCallOptions = (app: App, call: WriteCall, again: boolean): CallOptions => ({
  again,
  storedOnly: false,
  signal: AbortSignal.timeout(CALL_DEADLINE_MS),
  provider: app.provider,
  db: app.db,
  now: businessTime(app, call.actor.workspace.id),
})

/** Calls the provider and writes the result. `again`: an earlier call may still arrive there. */
const makeCall = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  started: StartedCall,
  again = false,
): Promise<ExecutionResult> => {
  const options = createCallOptions(app, call, again)
  let result: unknown
  try {
    result = await handler.call(started.intent, options, call.input).catch(async (error: unknown) => {
      if (!again || !(error instanceof Problem) || isOutcomeUnknown(error)) throw error
      // The provider may have refused because the earlier call arrived only after the look-up.
      const found = await handler.findOutcome(started.intent, options, call.input)
      if (found === undefined) throw error
      return found
    })
  } catch (error) {
    throw await handleFailedCall(app, call, handler, started, error, again)
  }
  return await withRetries((attempt) => writeResult(app, call, handler, started.intent, result, attempt))
}

/**
 * Answers a repeat of a call whose outcome is unknown. It looks for the outcome, and makes the call again
 * only if that is harmless; for another it waits a while for what becomes of it.
 */
const repeatCall = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  started: StartedCall,
  over: boolean,
): Promise<ExecutionResult> => {
  const waitMs = handler.mayRepeat || over ? 0 : app.config.providerTimeoutMs
  let found: unknown
  try {
    found = await awaitOutcome(app, call, handler, started.intent, waitMs)
  } catch (error) {
    throw await handleFailedCall(app, call, handler, started, error, true)
  }
  if (found !== undefined)
    return await withRetries((attempt) => writeResult(app, call, handler, started.intent, found, attempt))
  if (over) return await giveUp(app, call, handler, started)
  if (handler.mayRepeat) return await makeCall(app, call, handler, started, true)
  throw await handleFailedCall(app, call, handler, started, timeoutProblem(), true)
}

/** Looks for the outcome of an earlier call until it is found or `waitMs` have passed. */
const awaitOutcome = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  intent: unknown,
  waitMs: number,
): Promise<unknown> => {
  const options = createCallOptions(app, call, true)
  const endAt = performance.now() + waitMs
  let askAt = -Infinity
  for (;;) {
    const now = performance.now()
    const storedOnly = now < askAt && now < endAt
    if (!storedOnly) askAt = now + ASK_MS
    const found = await handler.findOutcome(intent, { ...options, storedOnly }, call.input)
    if (found !== undefined || now >= endAt) return found
    await sleep(Math.min(CHECK_MS, endAt - now))
  }
}

/**
 * Completes a call that was left open, for a worker: it only looks for the outcome, and never makes the call
 * again. Returns undefined when the outcome stays open.
 */
export const settleOpenCall = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  started: StartedCall,
  over: boolean,
): Promise<ExecutionResult | undefined> => {
  let found: unknown
  try {
    found = await awaitOutcome(app, call, handler, started.intent, 0)
  } catch (error) {
    throw await handleFailedCall(app, call, handler, started, error, true)
  }
  if (found !== undefined)
    return await withRetries((attempt) => writeResult(app, call, handler, started.intent, found, attempt))
  if (over) return await giveUp(app, call, handler, started)
  await leaveOpen(app, call, handler, started)
  return undefined
}

/**
 * Undoes what was prepared when the call was definitely not made; otherwise gives up the lease, so that the
 * call is completed later. A call that was put off stays open once an earlier one may have been made. Returns
 * the problem to throw.
 */
const handleFailedCall = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  started: StartedCall,
  error: unknown,
  again: boolean,
): Promise<Problem> => {
  const problem = error instanceof Problem ? error : timeoutProblem()
  if (!isOutcomeUnknown(problem) && !(again && problem.code === 'upstream_unavailable')) {
    await compensate(app, call, handler, started, problem)
    markAudited(problem)
    return problem
  }
  if (!(error instanceof Problem))
    app.log.warn({ operation: call.op.name, ...errorLogDetails(error) }, 'A call to the provider failed')
  await leaveOpen(app, call, handler, started)
  return answerOpen(problem, handler)
}

/** Writes what is to be known of a call whose outcome is unknown, and lets others look for it. */
const leaveOpen = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  { intent, lease }: StartedCall,
): Promise<void> => {
  const workspaceId = call.actor.workspace.id
  const write = handler.leaveOpen?.(intent)
  try {
    const needsDelivery =
      write !== undefined &&
      (await withRetries(() =>
        withTransaction(app, async (tx) => {
          const pending: PendingWrites = { events: [] }
          await write(createContext(app, { ...call, tx, pending }))
          return await commitWith(tx, writeEvents(tx, workspaceId, pending.events))
        }),
      ))
    notifyEvents(app, { workspaceId, needsDelivery })
  } catch (error) {
    // The answer must say that the outcome is unknown all the same; the job that looks for it writes this later.
    app.log.warn({ operation: call.op.name, ...errorLogDetails(error) }, 'A call was left open unannounced')
  }
  await releaseLease(app.db, toRecordKey(call), lease)
}

/**
 * Runs the last part of a call in a transaction, unless the call is completed already: a worker takes over
 * from a caller that is silent for too long, and the second of them finds the result of the first.
 */
const finishOnce = (
  app: App,
  call: WriteCall,
  work: (tx: Transaction, isRunning: boolean) => Promise<ExecutionResult>,
): Promise<ExecutionResult> =>
  withTransaction(app, async (tx) => {
    const record = await lockRecord(tx, toRecordKey(call))
    if (record?.state === 'done') {
      await endReplay(tx)
      return toReplay(app, call, record)
    }
    return await work(tx, record !== undefined)
  })

const writeResult = (
  app: App,
  call: WriteCall,
  handler: Handler,
  intent: unknown,
  result: unknown,
  attempt: number,
): Promise<ExecutionResult> =>
  finishOnce(app, call, async (tx, isRunning) => {
    const pending: PendingWrites = { events: [] }
    const ctx = createContext(app, { ...call, tx, pending })
    const output = await handler.complete(ctx, intent, result)
    const [status, body] = [getSuccessStatus(call.op), JSON.stringify(output)]
    const final = toFinalRecord(app, call, status, body, toSuccess(output, pending))
    const events = await announceOnRetry(tx, call.actor.workspace.id, pending.events, attempt)
    const needsDelivery = await commitWith(tx, (isRunning ? completeRecord : insertResult)(tx, final, events))
    return { status, body, needsDelivery }
  })

/** Ends a call whose outcome was not found in time: undoes or fails what it prepared, stores the answer. */
const giveUp = (
  app: App,
  call: WriteCall,
  handler: Handler,
  { intent }: StartedCall,
): Promise<ExecutionResult> =>
  withRetries((attempt) =>
    finishOnce(app, call, async (tx, isRunning) => {
      const pending: PendingWrites = { events: [] }
      const ctx = createContext(app, { ...call, tx, pending })
      const problem = notConfirmedProblem()
      const final = handler.giveUp ? await handler.giveUp(ctx, intent, problem) : problem
      if (!final) throw answerOpen(timeoutProblem(), handler)
      if (!handler.giveUp) await handler.compensate?.(ctx, intent, problem)
      const body = toStoredProblem(final)
      const record = toFinalRecord(app, call, final.status, body, toFailure(final))
      const events = await announceOnRetry(tx, call.actor.workspace.id, pending.events, attempt)
      const needsDelivery = await commitWith(
        tx,
        (isRunning ? completeRecord : insertResult)(tx, record, events),
      )
      return { status: final.status, body, problem: final, needsDelivery }
    }),
  )

/** Undoes what was prepared for a call that the provider definitely refused, and releases its key. */
const compensate = async (
  app: App,
  call: WriteCall,
  handler: Handler,
  { intent, lease }: StartedCall,
  problem: Problem,
): Promise<void> => {
  const workspaceId = call.actor.workspace.id
  const needsDelivery = await withRetries(() =>
    withTransaction(app, async (tx) => {
      const pending: PendingWrites = { events: [] }
      let needsDelivery = false
      if (await deleteRunningRecord(tx, toRecordKey(call), lease)) {
        await handler.compensate?.(createContext(app, { ...call, tx, pending }), intent, problem)
        needsDelivery = await writeEvents(tx, workspaceId, pending.events)
        const entry = toCallAudit(app, call, { at: app.now(), ...toFailure(problem) })
        if (entry) await insertAuditRow(tx, workspaceId, entry)
      }
      await tx.commit().execute()
      return needsDelivery
    }),
  )
  notifyEvents(app, { workspaceId, needsDelivery })
}
