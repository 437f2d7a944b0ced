import type { ExecutionResult, Transaction, WriteCall } from './call.ts'
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
import { businessTime } from '../clock.ts'
import type { Actor, CallTrace, PendingWrites } from './context.ts'
import { createContext } from './create-context.ts'
import { guardTransaction, type Outcome, guardOutcome } from './guard.ts'
import type { CallOptions, ErasedExternalHandler } from './handler.ts'
import type { Kernel } from './kernel.ts'
import { errorLogDetails } from './log-details.ts'
import {
  answerOpen,
  isOutcomeUnknown,
  markAudited,
  notConfirmedProblem,
  timeoutProblem,
} from './open-outcomes.ts'
import { Problem } from './problem.ts'
import { withRetries } from './retry.ts'
import {
  CALL_DEADLINE_MS,
  commitWith,
  endReplay,
  getSuccessStatus,
  reserve,
  toFinalRecord,
  toHandlerInput,
  toRecordKey,
  toReplay,
  toStoredProblem,
  withTransaction,
} from './write-call.ts'

/*
 * An operation that calls the outside: its intent is committed, then the call is made without a transaction, then what
 * came of it is written. A process may die anywhere between these, so each repeat, and a worker, goes on from what is
 * stored.
 */

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

/** A call of an operation that calls the outside. */
type External = { readonly call: WriteCall; readonly handler: ErasedExternalHandler }

/** A call whose intent is committed. `again`: an earlier call may still arrive at the outside. */
type Started = { readonly intent: unknown; readonly lease: LeaseToken; readonly again: boolean }

/** What came of a call. `open`: nobody knows. `given up`: nobody found out in time. */
type Ending =
  | { readonly as: 'completed'; readonly result: unknown }
  | { readonly as: 'refused'; readonly problem: Problem }
  | { readonly as: 'open'; readonly problem: Problem }
  | { readonly as: 'given up' }

/** Runs an operation that calls the outside. */
export const executeExternal = async (
  app: Kernel,
  call: WriteCall,
  handler: ErasedExternalHandler,
): Promise<ExecutionResult> => {
  const external = { call, handler }
  const started = await withRetries((attempt) => start(app, external, attempt))
  if ('answer' in started) return started.answer
  const ending = started.earlier
    ? await findEnding(app, external, started, started.earlier.isOver)
    : await makeCall(app, external, started)
  return await end(app, external, started, ending)
}

/** `earlier`: the call was begun before, and its outcome is unknown; `isOver`: it is given up now. */
type Start =
  | (Started & { readonly earlier?: { readonly isOver: boolean } })
  | { readonly answer: ExecutionResult }

/**
 * Commits the intent of a new call, or takes over that of a call whose outcome is unknown. A call that ran, or that a
 * job makes, is answered.
 */
const start = (app: Kernel, { call, handler }: External, attempt: number): Promise<Start> =>
  withTransaction(
    app,
    async (tx): Promise<Start> => {
      const { replay, unfinished } = await reserve(app, tx, call)
      if (replay) {
        await endReplay(tx)
        return { answer: replay }
      }
      const now = Date.parse(businessTime(app, call.actor.workspace.id))
      if (unfinished) {
        // Nothing here may undo what the call did at a provider.
        handler.requireAvailable(app)
        const lease = await commitWith(tx, takeOverLease(tx, toRecordKey(call), LEASE_SECONDS))
        const { intent } = unfinished.intent as StoredIntent
        const giveUpAt = unfinished.give_up_at
        const isOver = giveUpAt !== null && Date.parse(giveUpAt) <= now
        return { intent, lease, again: true, earlier: { isOver } }
      }
      await guardTransaction(app, call, tx, attempt)
      const pending: PendingWrites = { events: [] }
      const ctx = createContext(app, { ...call, tx, pending, attempt })
      const intent = await handler.prepare(ctx, toHandlerInput(call))
      await guardOutcome(app, call, { kind: 'begun', db: tx, output: intent })
      if (handler.queue?.takes(intent)) {
        const output = await handler.complete(ctx, intent, handler.dryRunResult(intent))
        const answer = await writeAnswer(app, call, { tx, output, pending, attempt, write: insertResult })
        return { answer: { ...answer, wakes: [handler.queue.job] } }
      }
      const stored: StoredIntent = {
        intent,
        input: call.input,
        keyId: call.actor.key.id,
        trace: call.trace,
        ...(call.actor.approvedBy ? { approvedBy: call.actor.approvedBy } : {}),
      }
      const record = toFinalRecord(app, call, { status: 0, body: '' })
      const giveUpAt = new Date(now + GIVE_UP_AFTER_MS).toISOString()
      const lease = await commitWith(tx, insertIntent(tx, record, stored, LEASE_SECONDS, giveUpAt))
      return { intent, lease, again: false }
    },
    call,
  )

const createCallOptions = (app: Kernel, call: WriteCall, again: boolean): CallOptions<unknown> => ({
  again,
  storedOnly: false,
  signal: AbortSignal.timeout(CALL_DEADLINE_MS),
  services: app,
  db: app.db,
  now: businessTime(app, call.actor.workspace.id),
})

/** Makes the call. */
const makeCall = async (
  app: Kernel,
  { call, handler }: External,
  { intent, again }: Started,
): Promise<Ending> => {
  const options = createCallOptions(app, call, again)
  try {
    const result = await handler.call(intent, options, call.input).catch(async (error: unknown) => {
      if (!again || !(error instanceof Problem) || isOutcomeUnknown(error)) throw error
      // The provider may have refused because the earlier call arrived only after the look-up.
      const found = await handler.findOutcome(intent, options, call.input)
      if (found === undefined) throw error
      return found
    })
    return { as: 'completed', result }
  } catch (error) {
    return toEnding(app, call, error, again)
  }
}

/**
 * What an error says of the call: it was definitely not made, or nobody knows. A call that was put off stays open once
 * an earlier one may have been made.
 */
const toEnding = (app: Kernel, { op }: WriteCall, error: unknown, again: boolean): Ending => {
  const problem = error instanceof Problem ? error : timeoutProblem()
  if (!isOutcomeUnknown(problem) && !(again && problem.code === 'upstream_unavailable'))
    return { as: 'refused', problem }
  if (!(error instanceof Problem))
    app.log.warn({ operation: op.name, ...errorLogDetails(error) }, 'A call to the provider failed')
  return { as: 'open', problem }
}

/**
 * Finds out what became of an earlier call. Where nobody knows, the call is made again only if that is harmless; for
 * another one this waits a while.
 */
const findEnding = async (
  app: Kernel,
  external: External,
  started: Started,
  isOver: boolean,
): Promise<Ending> => {
  const waitMs = external.handler.mayRepeat || isOver ? 0 : app.config.providerTimeoutMs
  const found = await awaitEnding(app, external, started.intent, waitMs)
  if (found) return found
  if (isOver) return { as: 'given up' }
  if (external.handler.mayRepeat) return await makeCall(app, external, started)
  return { as: 'open', problem: timeoutProblem() }
}

/** Looks for the outcome of an earlier call until it is found or `waitMs` have passed. */
const awaitEnding = async (
  app: Kernel,
  { call, handler }: External,
  intent: unknown,
  waitMs: number,
): Promise<Ending | undefined> => {
  const options = createCallOptions(app, call, true)
  const endAt = performance.now() + waitMs
  let askAt = -Infinity
  try {
    for (;;) {
      const now = performance.now()
      const storedOnly = now < askAt && now < endAt
      if (!storedOnly) askAt = now + ASK_MS
      const result = await handler.findOutcome(intent, { ...options, storedOnly }, call.input)
      if (result !== undefined) return { as: 'completed', result }
      if (now >= endAt) return undefined
      await sleep(Math.min(CHECK_MS, endAt - now))
    }
  } catch (error) {
    return toEnding(app, call, error, true)
  }
}

/**
 * Completes a call that was left open, for a worker: it only looks for the outcome, and never makes the call
 * again. Returns undefined when the outcome stays open.
 */
export const settleOpenCall = async (
  app: Kernel,
  call: WriteCall,
  handler: ErasedExternalHandler,
  { intent, lease, isOver }: { intent: unknown; lease: LeaseToken; isOver: boolean },
): Promise<ExecutionResult | undefined> => {
  const external = { call, handler }
  const started = { intent, lease, again: true }
  const found = await awaitEnding(app, external, intent, 0)
  if (found) return await end(app, external, started, found)
  if (isOver) return await end(app, external, started, { as: 'given up' })
  await leaveOpen(app, external, started)
  return undefined
}

/** Writes what came of a call. Returns its answer, or throws it. */
const end = (app: Kernel, external: External, started: Started, ending: Ending): Promise<ExecutionResult> =>
  (ways[ending.as] as Way<Ending>)(app, external, started, ending)

type Way<E extends Ending> = (
  app: Kernel,
  external: External,
  started: Started,
  ending: E,
) => Promise<ExecutionResult>

type Answer = {
  tx: Transaction
  output: unknown
  pending: PendingWrites
  attempt: number
  write: typeof insertResult | typeof completeRecord
}

/** Commits the events and the answer of a call. */
const writeAnswer = async (
  app: Kernel,
  call: WriteCall,
  { tx, output, pending, attempt, write }: Answer,
): Promise<ExecutionResult> => {
  const answer = { status: getSuccessStatus(call.op), body: JSON.stringify(output) }
  const outcome: Outcome = { kind: 'completed', db: tx, output, pending }
  await guardOutcome(app, call, outcome)
  const record = toFinalRecord(app, call, answer, outcome.audit)
  const events = await app.outbox.prepare(tx, call.actor.workspace.id, pending.events, attempt)
  return { ...answer, needsDelivery: await commitWith(tx, write(tx, record, events)) }
}

/**
 * Runs the last part of a call in a transaction, unless the call is completed already: a worker takes over
 * from a caller that is silent for too long, and the second of them finds the result of the first.
 */
const finishOnce = async (
  app: Kernel,
  call: WriteCall,
  work: (tx: Transaction, write: Answer['write'], attempt: number) => Promise<ExecutionResult>,
): Promise<ExecutionResult> =>
  await withRetries((attempt) =>
    withTransaction(app, async (tx) => {
      const record = await lockRecord(tx, toRecordKey(call))
      if (record?.state === 'done') {
        await endReplay(tx)
        return toReplay(app, call, record)
      }
      return await work(tx, record ? completeRecord : insertResult, attempt)
    }),
  )

const complete = (
  app: Kernel,
  { call, handler }: External,
  { intent }: Started,
  { result }: Extract<Ending, { as: 'completed' }>,
): Promise<ExecutionResult> =>
  finishOnce(app, call, async (tx, write, attempt) => {
    const pending: PendingWrites = { events: [] }
    const output = await handler.complete(createContext(app, { ...call, tx, pending }), intent, result)
    return await writeAnswer(app, call, { tx, output, pending, attempt, write })
  })

/** Ends a call whose outcome was not found in time: undoes or fails what it prepared, stores the answer. */
const giveUp = (app: Kernel, { call, handler }: External, { intent }: Started): Promise<ExecutionResult> =>
  finishOnce(app, call, async (tx, write, attempt) => {
    const pending: PendingWrites = { events: [] }
    const ctx = createContext(app, { ...call, tx, pending })
    const problem = notConfirmedProblem()
    const final = handler.giveUp ? await handler.giveUp(ctx, intent, problem) : problem
    if (!final) throw answerOpen(timeoutProblem(), handler)
    if (!handler.giveUp) await handler.compensate?.(ctx, intent, problem)
    const answer = { status: final.status, body: toStoredProblem(final) }
    const outcome: Outcome = { kind: 'undone', db: tx, problem: final }
    await guardOutcome(app, call, outcome)
    const record = toFinalRecord(app, call, answer, outcome.audit)
    const events = await app.outbox.prepare(tx, call.actor.workspace.id, pending.events, attempt)
    return { ...answer, problem: final, needsDelivery: await commitWith(tx, write(tx, record, events)) }
  })

/**
 * Undoes what was prepared for a call that the outside definitely refused, and releases its key. Throws the refusal.
 */
const compensate = async (
  app: Kernel,
  { call, handler }: External,
  { intent, lease }: Started,
  { problem }: Extract<Ending, { as: 'refused' }>,
): Promise<never> => {
  const workspaceId = call.actor.workspace.id
  const needsDelivery = await withRetries(() =>
    withTransaction(app, async (tx) => {
      const pending: PendingWrites = { events: [] }
      let needsDelivery = false
      if (await deleteRunningRecord(tx, toRecordKey(call), lease)) {
        await handler.compensate?.(createContext(app, { ...call, tx, pending }), intent, problem)
        needsDelivery = await app.outbox.write(tx, workspaceId, pending.events)
        const outcome: Outcome = { kind: 'undone', db: tx, problem }
        await guardOutcome(app, call, outcome)
        if (outcome.audit) await insertAuditRow(tx, workspaceId, outcome.audit)
      }
      await tx.commit().execute()
      return needsDelivery
    }),
  )
  app.outbox.notify(workspaceId, needsDelivery)
  markAudited(problem)
  throw problem
}

/** Gives up the lease, so that the call is completed later. Throws what its caller is told meanwhile. */
const answerLater = async (
  app: Kernel,
  external: External,
  started: Started,
  { problem }: Extract<Ending, { as: 'open' }>,
): Promise<never> => {
  await leaveOpen(app, external, started)
  throw answerOpen(problem, external.handler)
}

/** Writes what is to be known of a call whose outcome is unknown, and lets others look for it. */
const leaveOpen = async (
  app: Kernel,
  { call, handler }: External,
  { intent, lease }: Started,
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
          return await commitWith(tx, app.outbox.write(tx, workspaceId, pending.events))
        }),
      ))
    app.outbox.notify(workspaceId, needsDelivery)
  } catch (error) {
    // The answer must say that the outcome is unknown all the same; the job that looks for it writes this later.
    app.log.warn({ operation: call.op.name, ...errorLogDetails(error) }, 'A call was left open unannounced')
  }
  await releaseLease(app.db, toRecordKey(call), lease)
}

/** The ways in which a call ends; a fifth is that a job makes it (`start`). */
const ways: { readonly [As in Ending['as']]: Way<Extract<Ending, { as: As }>> } = {
  completed: complete,
  refused: compensate,
  open: answerLater,
  'given up': giveUp,
}
