import { insertAuditRow } from '../../storage/audit.ts'
import { insertEvents } from '../../storage/events.ts'
import {
  deleteRunningRecord,
  releaseLease,
  type LeaseToken,
  lockRecord,
  takeOverLease,
  completeRecord,
  insertIntent,
  insertResult,
} from '../../storage/idempotency.ts'
import { type CallTrace, toFailure } from '../audit/entry.ts'
import { markAudited } from '../audit/record.ts'
import { businessTime } from '../clock.ts'
import { isOutcomeUnknown, requireProviderConfigured } from '../provider/port.ts'
import type { App } from './app.ts'
import { createContext, type PendingWrites } from './create-context.ts'
import type { ExternalHandler } from './handler.ts'
import { Problem } from './problem.ts'
import { withRetries } from './retry.ts'
import {
  commitWith,
  type ExecutionResult,
  getSuccessStatus,
  reserve,
  toCallAudit,
  toFinalRecord,
  toRecordKey,
  toReplay,
  toSuccess,
  withTransaction,
  type WriteCall,
} from './write-call.ts'

const CALL_DEADLINE_MS = 20_000
/** Longer than a call may last, so that an expired lease means that the caller died. */
const LEASE_SECONDS = 30

/** What the record of a running call stores, so that a retry or a worker can complete it. */
export type StoredIntent = {
  intent: unknown
  input: Record<string, unknown>
  keyId: string
  trace?: CallTrace
}

/** A call whose intent is committed: `again` when an earlier call may have reached the provider. */
export type StartedCall = { intent: unknown; again: boolean; lease: LeaseToken }

/** Runs an operation that calls the provider: prepare, call, complete. */
export const executeExternal = async (
  app: App,
  call: WriteCall,
  handler: ExternalHandler<unknown>,
): Promise<ExecutionResult> => {
  const started = await withRetries(() => startCall(app, call, handler))
  return 'replay' in started ? started.replay : await completeCall(app, call, handler, started)
}

/** Commits the intent of a new call, or takes over that of a call whose lease expired. */
const startCall = (
  app: App,
  call: WriteCall,
  handler: ExternalHandler<unknown>,
): Promise<StartedCall | { replay: ExecutionResult }> =>
  withTransaction(app, async (tx) => {
    const { replay, unfinished } = await reserve(app, tx, call)
    if (replay) {
      await tx.rollback().execute()
      return { replay }
    }
    // Also before a call is taken over: nothing here may undo what it did at a provider.
    requireProviderConfigured(app.provider)
    if (unfinished) {
      const lease = await commitWith(tx, takeOverLease(tx, toRecordKey(call), LEASE_SECONDS))
      return { intent: (unfinished.intent as StoredIntent).intent, again: true, lease }
    }
    const intent = await handler.prepare(createContext(app, { ...call, tx }), call.input)
    const stored: StoredIntent = {
      intent,
      input: call.input,
      keyId: call.actor.key.id,
      trace: call.trace,
    }
    const lease = await commitWith(
      tx,
      insertIntent(tx, toFinalRecord(app, call, 0, ''), stored, LEASE_SECONDS),
    )
    return { intent, again: false, lease }
  })

/**
 * Calls the provider and writes the result. Also the entry point of a worker that takes over a call whose
 * process died.
 */
export const completeCall = async (
  app: App,
  call: WriteCall,
  handler: ExternalHandler<unknown>,
  started: StartedCall,
): Promise<ExecutionResult> => {
  const { intent, again } = started
  let result: unknown
  try {
    result = await handler.call(
      intent,
      {
        again,
        signal: AbortSignal.timeout(CALL_DEADLINE_MS),
        provider: app.provider,
        db: app.db,
        now: businessTime(app, call.actor.workspace.id),
      },
      call.input,
    )
  } catch (error) {
    throw await handleFailedCall(app, call, handler, started, error)
  }
  return await withRetries(() => writeResult(app, call, handler, intent, result))
}

/**
 * Whether a failed call keeps its intent. A call that was definitely not made is given back to its caller;
 * but not once an earlier response was lost, for the caller may be gone: then a worker calls again when the
 * provider can be reached.
 */
const mayHaveReachedProvider = (problem: Problem, again: boolean): boolean =>
  isOutcomeUnknown(problem) || (again && problem.code === 'upstream_unavailable')

/** Compensates, or gives up the lease so that the call is completed later. Returns the problem to throw. */
const handleFailedCall = async (
  app: App,
  call: WriteCall,
  handler: ExternalHandler<unknown>,
  started: StartedCall,
  error: unknown,
): Promise<Problem> => {
  if (error instanceof Problem && !mayHaveReachedProvider(error, started.again))
    await compensate(app, call, handler, started, error)
  else await releaseLease(app.db, toRecordKey(call), started.lease)
  const problem =
    error instanceof Problem
      ? error
      : new Problem(
          'timeout',
          'The messaging provider did not answer in time. Retry with the same Idempotency-Key; ' +
            'it never runs twice.',
        )
  // The audit row is written by `compensate`, or by whoever completes the call.
  markAudited(problem)
  return problem
}

const writeResult = (
  app: App,
  call: WriteCall,
  handler: ExternalHandler<unknown>,
  intent: unknown,
  result: unknown,
): Promise<ExecutionResult> =>
  withTransaction(app, async (tx) => {
    // A worker takes over from a caller that is silent for too long; the second of them finds the result of
    // the first.
    const record = await lockRecord(tx, toRecordKey(call))
    if (record?.state === 'done') {
      await tx.rollback().execute()
      return toReplay(app, call, record)
    }
    const pending: PendingWrites = { events: [] }
    const ctx = createContext(app, { ...call, tx, pending })
    const output = await handler.complete(ctx, intent, result)
    const [status, body] = [getSuccessStatus(call.op), JSON.stringify(output)]
    const final = toFinalRecord(app, call, status, body, toSuccess(output, pending))
    await commitWith(tx, (record ? completeRecord : insertResult)(tx, final, pending.events))
    return { status, body }
  })

/** Undoes what was prepared for a call that the provider definitely refused, and releases its key. */
const compensate = async (
  app: App,
  call: WriteCall,
  handler: ExternalHandler<unknown>,
  { intent, lease }: StartedCall,
  problem: Problem,
): Promise<void> => {
  const workspaceId = call.actor.workspace.id
  await withRetries(() =>
    withTransaction(app, async (tx) => {
      const pending: PendingWrites = { events: [] }
      if (await deleteRunningRecord(tx, toRecordKey(call), lease)) {
        await handler.compensate?.(createContext(app, { ...call, tx, pending }), intent, problem)
        await insertEvents(tx, workspaceId, pending.events)
        const entry = toCallAudit(app, call, { at: app.now(), ...toFailure(problem) })
        if (entry) await insertAuditRow(tx, workspaceId, entry)
      }
      await tx.commit().execute()
    }),
  )
}
