import { insertResult } from '../../storage/idempotency.ts'
import { toFailure } from '../audit/entry.ts'
import { notifyEvents } from '../events/signal.ts'
import type { App } from './app.ts'
import { createContext, type PendingWrites } from './create-context.ts'
import { executeExternal } from './external.ts'
import type { LocalHandler } from './handler.ts'
import { Problem } from './problem.ts'
import { withRetries } from './retry.ts'
import { withDeadline } from './steps/deadline.ts'
import { stillRunningProblem, toRunningKey } from './steps/idempotency.ts'
import {
  commitWith,
  type ExecutionResult,
  getHandler,
  getSuccessStatus,
  reserve,
  toFinalRecord,
  toSuccess,
  withTransaction,
  WRITE_DEADLINE_MS,
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
    const handler = getHandler(app, call.op)
    const result =
      typeof handler === 'function'
        ? await executeLocal(app, call, handler)
        : await executeExternal(app, call, handler)
    if (!result.replayed && mayWriteEvents(call)) notifyEvents(app)
    return result
  } catch (error) {
    if (error instanceof Problem && isFinal(error)) return await storeFailure(app, call, error)
    throw error
  } finally {
    app.runningKeys.delete(runningKey)
  }
}

/** Events, or deliveries to webhook endpoints. */
const mayWriteEvents = ({ op }: WriteCall): boolean =>
  (op.emits?.length ?? 0) > 0 || op.scope === 'webhooks:write'

/** Runs an operation that needs only the database, in one transaction. */
const executeLocal = (app: App, call: WriteCall, handler: LocalHandler<unknown>): Promise<ExecutionResult> =>
  withRetries((attempt) =>
    withDeadline(
      WRITE_DEADLINE_MS,
      withTransaction(app, async (tx) => {
        const { replay } = call.fresh ? {} : await reserve(app, tx, call)
        if (replay) {
          await tx.rollback().execute()
          return replay
        }
        const pending: PendingWrites = { events: [] }
        const output = await handler(createContext(app, { ...call, tx, pending, attempt }), call.input)
        const [status, body] = [getSuccessStatus(call.op), JSON.stringify(output)]
        const record = toFinalRecord(app, call, status, body, toSuccess(output, pending))
        await commitWith(tx, insertResult(tx, record, pending.events, pending.deferred))
        return { status, body }
      }),
    ),
  )

/** Errors that a mere retry may fix, or that belong to another request, are not stored. */
const TRANSIENT_REASONS = new Set<unknown>(['still_running', 'deleted_meanwhile', 'idempotency_key_reused'])

/** Errors 4xx of the handler are stored for retries. */
const isFinal = (problem: Problem): boolean =>
  problem.status < 500 && !TRANSIENT_REASONS.has(problem.extras.reason)

/** Stores an error in a transaction of its own: the one that failed changed nothing. */
const storeFailure = async (app: App, call: WriteCall, problem: Problem): Promise<ExecutionResult> => {
  const body = JSON.stringify({ code: problem.code, detail: problem.message, extras: problem.extras })
  return await withRetries(() =>
    withTransaction(app, async (tx) => {
      const { replay } = call.fresh ? {} : await reserve(app, tx, call)
      if (replay) {
        await tx.rollback().execute()
        return replay
      }
      const outcome = problem.isAudited ? undefined : toFailure(problem)
      await commitWith(tx, insertResult(tx, toFinalRecord(app, call, problem.status, body, outcome), []))
      return { status: problem.status, body, problem }
    }),
  )
}
