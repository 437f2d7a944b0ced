import type { Call, ExecutionResult, Transaction } from './call.ts'
import { runDeferredWrite } from '../../storage/client/deferred-write.ts'
import { isObject } from '../../catalog/values.ts'
import type { PendingWrites } from './context.ts'
import { createContext } from './create-context.ts'
import { guardTransaction, guardOutcome } from './guard.ts'
import type { Kernel } from './kernel.ts'
import { withRetries } from './retry.ts'
import { beginFor, getHandler, getSuccessStatus, lookUp, toHandlerInput } from './write-call.ts'

/** What a change would answer, and what it would leave to its end. */
export type Rehearsed = { output: Record<string, unknown>; pending: PendingWrites }

/**
 * Runs the whole operation in a transaction that is rolled back: the same code as the real run, with nothing
 * left behind.
 */
export const dryRun = async (app: Kernel, call: Call): Promise<ExecutionResult> => {
  const { output, pending } = await rehearse(app, call)
  const answer = { ...output, dry_run: true }
  const headers: Record<string, string> = {}
  await guardOutcome(app, call, { kind: 'dry_run', db: app.db, output, pending, answer, headers })
  return {
    status: getSuccessStatus(call.op),
    body: JSON.stringify(answer),
    isPlanned: 'plan' in answer,
    headers,
  }
}

/** The same for whoever goes on with what it would answer. The audit trail says nothing of it. */
export const rehearse = async (app: Kernel, given: Call): Promise<Rehearsed> => {
  const call = { ...given, dryRun: true }
  await lookUp(app, call)
  const rehearsed = await withRetries(async (attempt) => {
    const tx = await beginFor(app, call)
    try {
      await guardTransaction(app, call, tx, attempt)
      return await rehearseIn(app, call, tx, attempt)
    } finally {
      await tx.rollback().execute()
    }
  })
  given.planned = call.planned
  await guardOutcome(app, call, { kind: 'rehearsed', db: app.db, ...rehearsed })
  return rehearsed
}

/** Runs the handler in this transaction, as a dry run. */
export const rehearseIn = async (
  app: Kernel,
  call: Call,
  tx: Transaction,
  attempt: number,
): Promise<Rehearsed> => {
  const pending: PendingWrites = { events: [] }
  const ctx = createContext(app, { ...call, tx, dryRun: true, pending, attempt })
  const handler = getHandler(app, call.op)
  const input = toHandlerInput(call)
  if (typeof handler !== 'function') {
    const intent = await handler.prepare(ctx, input)
    const output = await handler.complete(ctx, intent, handler.dryRunResult(intent))
    return { output: withoutVersion(call, output), pending }
  }
  const output = await handler(ctx, input)
  if (pending.deferred) await runDeferredWrite(tx, pending.deferred)
  return { output: withoutVersion(call, output), pending }
}

/** What a dry run makes of a record is no version of it: a change that is made later could get the same number. */
const withoutVersion = ({ op }: Call, answer: unknown): Record<string, unknown> => {
  const output = answer as Record<string, unknown>
  const { at } = op.versioned ?? {}
  if (at === undefined) return op.versioned && 'version' in output ? { ...output, version: null } : output
  const record = output[at]
  return isObject(record) && 'version' in record ? { ...output, [at]: { ...record, version: null } } : output
}
