import type { Operation } from '../../catalog/index.ts'
import { isByFilter } from '../../catalog/operation.ts'
import { isObject } from '../../catalog/values.ts'
import type { Db } from '../../storage/database.ts'
import {
  deleteRecord,
  type CompletedRecord,
  type IdempotencyRecord,
  reserveKey,
} from '../../storage/access/idempotency.ts'
import { commitReplicated } from '../../storage/client/replication.ts'
import { businessTime } from '../clock.ts'
import type { Call, ExecutionResult, Transaction, WriteCall } from './call.ts'
import { type Outcome, guardReplay } from './guard.ts'
import type { ErasedExternalHandler, ErasedLocalHandler } from './handler.ts'
import {
  computeFingerprint,
  openBody,
  RECORD_TTL_MS,
  requireOwnRecord,
  requireSameRequest,
  sealBody,
  stillRunningProblem,
} from './idempotency.ts'
import type { Kernel } from './kernel.ts'
import type { Problem } from './problem.ts'

export const getHandler = (app: Kernel, op: Operation): ErasedLocalHandler | ErasedExternalHandler =>
  app.handlers[op.name] as unknown as ErasedLocalHandler | ErasedExternalHandler

export const getLocalHandler = (app: Kernel, op: Operation): ErasedLocalHandler =>
  app.handlers[op.name] as unknown as ErasedLocalHandler

/** Shorter than the deadline of the whole, so that what came of a call outside is said in time. */
export const CALL_DEADLINE_MS = 20_000

/** Looks up what the handler of a call needs from the outside, where it needs anything. */
export const lookUp = async (app: Kernel, call: Call): Promise<void> => {
  const { actor } = call
  const handler = getLocalHandler(app, call.op)
  if (!handler.lookUp) return
  call.lookedUp = await handler.lookUp({
    actor,
    services: app,
    db: app.db,
    signal: AbortSignal.timeout(CALL_DEADLINE_MS),
    now: businessTime(app, actor.workspace.id),
  })
}

/** Returns the input without the precondition, which is no business of the handler. */
export const toHandlerInput = ({ input }: Pick<Call, 'input'>): Call['input'] => {
  if (!('if_version' in input)) return input
  const { if_version: _, ...fields } = input
  return fields
}

/** Returns the status of a success, which is the same for all transports: 202 where a job does the work. */
export const getSuccessStatus = ({ routes: [route], jobs }: Operation, output?: unknown): number =>
  jobs && isObject(output) && output['job'] !== undefined
    ? 202
    : typeof route === 'object'
      ? (route.status ?? 200)
      : 200

export const toRecordKey = ({ actor, key }: Pick<WriteCall, 'actor' | 'key'>) => ({
  workspaceId: actor.workspace.id,
  staffId: actor.staff.id,
  key,
})

/** Returns the idempotency record of a call, with its row for the audit trail. */
export const toFinalRecord = (
  app: Kernel,
  call: WriteCall,
  { status, body }: Pick<ExecutionResult, 'status' | 'body'>,
  audit?: Outcome['audit'],
): CompletedRecord => {
  const now = app.now()
  return {
    ...toRecordKey(call),
    operation: call.op.name,
    fingerprint: computeFingerprint(call.op, call.input),
    status,
    body: sealBody(app, call, body),
    view: app.toView(call.actor),
    now,
    expiresAt: new Date(Date.parse(now) + RECORD_TTL_MS).toISOString(),
    audit,
  }
}

/** Returns an error as it is stored for retries. */
export const toStoredProblem = ({ code, message, extras }: Problem): string =>
  JSON.stringify({ code, detail: message, extras })

/** Returns the stored result of a finished call. */
export const toReplay = (
  app: Kernel,
  call: WriteCall,
  { status, body, view }: Pick<IdempotencyRecord, 'status' | 'body' | 'view'>,
): ExecutionResult => {
  const opened = openBody(app, call, body!)
  return { status: status!, body: opened, replayed: { body: opened, view } }
}

/** Returns a stored result as its caller may see it now; any other one as it is. */
export const showResult = async (
  app: Kernel,
  call: WriteCall,
  result: ExecutionResult,
): Promise<ExecutionResult> =>
  result.replayed ? { ...result, body: (await guardReplay(app, call, result.replayed))! } : result

/**
 * Reserves the key in this transaction. Returns the result to replay, or the record of an external call that
 * was not completed; neither for a new call. Throws 409 while another request with the key is running.
 */
export const reserve = async (
  app: Kernel,
  tx: Db,
  call: WriteCall,
): Promise<{ replay?: ExecutionResult; unfinished?: IdempotencyRecord }> => {
  const { locked, record } = await reserveKey(tx, toRecordKey(call), app.now())
  if (!locked) throw stillRunningProblem()
  if (!record) return {}
  if (record.expired && record.state === 'done') {
    await deleteRecord(tx, toRecordKey(call))
    return {}
  }
  requireOwnRecord(call.actor, record.view)
  requireSameRequest(record, computeFingerprint(call.op, call.input))
  if (record.state === 'done') return { replay: toReplay(app, call, record) }
  if (!record.lease_over) throw stillRunningProblem()
  await guardReplay(app, call, { body: null, view: record.view })
  return { unfinished: record }
}

/**
 * Commits after the last statement and returns its result. Most last statements carry the commit with them
 * (storage/client/driver.ts).
 */
export const commitWith = async <T>(tx: Transaction, last: Promise<T>): Promise<T> => {
  const result = await last
  await tx.commit().execute()
  return result
}

/** Ends a transaction that found the result of an earlier call, which may be sent once it cannot be lost any more. */
export const endReplay = (tx: Transaction): Promise<void> => commitWith(tx, commitReplicated(tx))

type Begun = Pick<Call, 'plan' | 'op' | 'input'>

/**
 * Begins the transaction of a call. One with a plan is one snapshot: what is rehearsed in it and what then runs see the
 * same, and a change of another call to what this one writes is a serialization failure, which is retried. By a filter
 * it is none: such a call is not rehearsed, and its plan says which records, not how they are.
 */
export const beginFor = (app: { readonly db: Db }, call: Begun | undefined): Promise<Transaction> =>
  call?.plan === undefined || isByFilter(call.op, call.input)
    ? app.db.startTransaction().execute()
    : app.db.startTransaction().setIsolationLevel('repeatable read').execute()

/** Runs `work`, which commits or rolls back itself; rolls back when it throws. `call`: of which it begins. */
export const withTransaction = async <T>(
  app: { readonly db: Db },
  work: (tx: Transaction) => Promise<T>,
  call?: Begun,
): Promise<T> => {
  const tx = await beginFor(app, call)
  try {
    return await work(tx)
  } catch (error) {
    if (!tx.isCommitted)
      await tx
        .rollback()
        .execute()
        .catch(() => {})
    throw error
  }
}
