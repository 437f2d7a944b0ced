import type { ExecutionResult, WriteCall } from './call.ts'
import { mayPass } from '../../catalog/passing-reasons.ts'
import { insertResult } from '../../storage/access/idempotency.ts'
import type { PendingWrites } from './context.ts'
import { createContext } from './create-context.ts'
import { isOutcomeLost } from './deadline.ts'
import { executeExternal } from './external.ts'
import { guardTransaction, type Outcome, guardOutcome } from './guard.ts'
import type { ErasedLocalHandler } from './handler.ts'
import { stillRunningProblem, toRunningKey } from './idempotency.ts'
import type { Kernel } from './kernel.ts'
import { Problem } from './problem.ts'
import { withRetries } from './retry.ts'
import {
  commitWith,
  endReplay,
  getHandler,
  getSuccessStatus,
  lookUp,
  reserve,
  showResult,
  toFinalRecord,
  toHandlerInput,
  toStoredProblem,
  withTransaction,
} from './write-call.ts'

/**
 * Runs a change once per key: the change, its events, its audit row and the record of its response are one
 * transaction.
 */
export const execute = async (app: Kernel, call: WriteCall): Promise<ExecutionResult> => {
  const runningKey = toRunningKey(call.actor, call.key)
  if (app.runningKeys.has(runningKey)) throw stillRunningProblem()
  app.runningKeys.add(runningKey)
  try {
    const result = await showResult(app, call, await run(app, call))
    if (result.instead || result.replayed) return result
    app.outbox.notifyOf(call, result)
    for (const job of result.wakes ?? []) app.wake(job)
    return result
  } catch (error) {
    if (error instanceof Problem && isFinal(error)) return await storeFailure(app, call, error)
    throw error
  } finally {
    app.runningKeys.delete(runningKey)
  }
}

/** Runs the handler. Where the connection was lost, the stored result says whether the change was made. */
const run = async (app: Kernel, call: WriteCall): Promise<ExecutionResult> => {
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

/** Runs an operation that needs only the database, in one transaction. */
const executeLocal = async (
  app: Kernel,
  call: WriteCall,
  handler: ErasedLocalHandler,
): Promise<ExecutionResult> => {
  await lookUp(app, call)
  return await withRetries((attempt) =>
    withTransaction(
      app,
      async (tx) => {
        const { replay } = call.fresh ? {} : await reserve(app, tx, call)
        if (replay) {
          await endReplay(tx)
          return replay
        }
        await guardTransaction(app, call, tx, attempt)
        const pending: PendingWrites = { events: [], mayBeOptimistic: attempt === 1 }
        const output = await handler(
          createContext(app, { ...call, tx, pending, attempt }),
          toHandlerInput(call),
        )
        const outcome: Outcome = { kind: 'changed', db: tx, output, pending }
        const instead = await guardOutcome(app, call, outcome)
        if (instead) {
          await tx.rollback().execute()
          return { status: 202, body: '', instead }
        }
        const answer = { status: getSuccessStatus(call.op, output), body: JSON.stringify(output) }
        const record = toFinalRecord(app, call, answer, outcome.audit)
        const events = await app.outbox.prepare(tx, call.actor.workspace.id, pending.events, attempt)
        const needsDelivery = await commitWith(tx, insertResult(tx, record, events, pending.deferred))
        return { ...answer, needsDelivery, wakes: pending.wakes }
      },
      call,
    ),
  )
}

/**
 * Returns the stored result of a call whose connection was lost, perhaps after its commit. Undefined when
 * there is none, or it cannot be read: then only a retry with the same key finds out.
 */
const findOutcome = (app: Kernel, call: WriteCall): Promise<ExecutionResult | undefined> =>
  withTransaction(app, async (tx) => {
    const { replay } = await reserve(app, tx, call)
    await (replay ? endReplay(tx) : tx.rollback().execute())
    return replay && { status: replay.status, body: replay.body }
  }).catch(() => undefined)

/** Errors about the state of records are stored. The others ask for another input or for a later retry. */
const FINAL_STATUSES = new Set([403, 404, 409])

/** Conflicts that end with something else than the records: with what the caller may see, or with another plan. */
const UNSTORED_REASONS = new Set<unknown>(['visibility_changed', 'plan_changed', 'plan_unknown'])

/**
 * Whether an error of the handler is stored for retries. A 400 never is, whenever it was found: the caller
 * corrects the input and sends it with the same key.
 */
const isFinal = (problem: Problem): boolean =>
  FINAL_STATUSES.has(problem.status) &&
  !mayPass(problem.extras.reason) &&
  !UNSTORED_REASONS.has(problem.extras.reason)

/**
 * Stores a problem as the answer of a call, in a transaction of its own: the one that failed changed nothing. Returns
 * the answer that is stored already, if there is one.
 */
export const storeFailure = async (
  app: Kernel,
  call: WriteCall,
  problem: Problem,
): Promise<ExecutionResult> => {
  const answer = { status: problem.status, body: toStoredProblem(problem) }
  const outcome: Outcome = { kind: 'refused', db: app.db, problem }
  await guardOutcome(app, call, outcome)
  const stored = await withRetries(() =>
    withTransaction(app, async (tx): Promise<ExecutionResult> => {
      const { replay } = call.fresh ? {} : await reserve(app, tx, call)
      if (replay) {
        await endReplay(tx)
        return replay
      }
      await commitWith(tx, insertResult(tx, toFinalRecord(app, call, answer, outcome.audit), []))
      return { ...answer, problem }
    }),
  )
  return await showResult(app, call, stored)
}
