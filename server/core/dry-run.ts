import { runDeferredWrite } from '../../storage/deferred-write.ts'
import { recordAudit } from '../audit/record.ts'
import { hasContactBudget, takeContacts } from '../visibility/contact-budget.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { createContext, type PendingWrites } from './create-context.ts'
import type { EventTypeId } from '../../catalog/events.ts'
import { requireProviderFor } from './require-provider.ts'
import { withRetries } from './retry.ts'
import {
  type ExecutionResult,
  getHandler,
  getSuccessStatus,
  toSuccess,
  type WriteCall,
} from './write-call.ts'

type DryRunCall = Omit<WriteCall, 'key' | 'fresh'>

const runHandler = async (
  app: App,
  { op, input }: DryRunCall,
  ctx: Context<EventTypeId>,
  pending: PendingWrites,
): Promise<unknown> => {
  const handler = getHandler(app, op)
  if (typeof handler !== 'function') {
    await requireProviderFor(app, handler, ctx, input)
    const intent = await handler.prepare(ctx, input)
    return await handler.complete(ctx, intent, handler.dryRunResult(intent))
  }
  const output = await handler(ctx, input)
  if (pending.deferred) await runDeferredWrite(ctx.tx, pending.deferred)
  return output
}

/**
 * Runs the whole operation in a transaction that is rolled back: the same code as the real run, with nothing
 * left behind.
 */
export const dryRun = async (app: App, call: DryRunCall): Promise<ExecutionResult> => {
  const { output, pending } = await rehearse(app, call)
  await recordAudit(app, { ...call, dryRun: true }, { at: app.now(), ...toSuccess(output, pending) })
  return { status: getSuccessStatus(call.op), body: JSON.stringify({ ...output, dry_run: true }) }
}

/** The same, of which the audit trail says nothing. */
export const rehearse = async (
  app: App,
  call: DryRunCall,
): Promise<{ output: Record<string, unknown>; pending: PendingWrites }> => {
  const rehearsed = await withRetries(async (attempt) => {
    const tx = await app.db.startTransaction().execute()
    try {
      const pending: PendingWrites = { events: [] }
      const ctx = createContext(app, { ...call, tx, dryRun: true, pending, attempt })
      const output = await runHandler(app, call, ctx, pending)
      return { output: output as Record<string, unknown>, pending }
    } finally {
      await tx.rollback().execute()
    }
  })
  if (hasContactBudget(call.actor))
    await takeContacts(app, app.db, call.actor, listContactSubjects(call.op, call.input, rehearsed.output))
  return rehearsed
}
