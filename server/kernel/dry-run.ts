import { isObject } from '../../catalog/values.ts'
import { runDeferredWrite } from '../../storage/client/deferred-write.ts'
import { recordAudit } from '../guards/audit/record.ts'
import { hasContactBudget, takeContacts } from '../visibility/contact-budget.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { createContext, type PendingWrites } from './create-context.ts'
import type { EventTypeId } from '../../catalog/events.ts'
import { makePlan, type Planned, type Rehearsed, requirePlan, SHOW_PLAN } from '../guards/snapshot/plan.ts'
import type { Touched } from '../guards/snapshot/touched.ts'
import { requireProviderFor } from './require-provider.ts'
import { withRetries } from './retry.ts'
import { listQuestions } from '../guards/agents/policy.ts'
import { checkPrecondition, withoutPrecondition } from '../guards/snapshot/precondition.ts'
import {
  beginFor,
  type ExecutionResult,
  getHandler,
  getSuccessStatus,
  toSuccess,
  type Transaction,
  type WriteCall,
} from './write-call.ts'

type DryRunCall = Omit<WriteCall, 'key' | 'fresh'>

const runHandler = async (
  app: App,
  call: DryRunCall,
  ctx: Context<EventTypeId>,
  pending: PendingWrites,
): Promise<unknown> => {
  const handler = getHandler(app, call.op)
  const input = withoutPrecondition(call)
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
  const { output, pending, plan: made } = await rehearse(app, call)
  // Before the summary, which reads whom a filter found.
  await pending.afterDryRun?.(app.db)
  const plan =
    made && call.plan === SHOW_PLAN ? { ...made, summary: await summarize(app, call, output) } : made
  await recordAudit(app, { ...call, dryRun: true }, { at: app.now(), ...toSuccess(output, pending) })
  const shown = { ...output, dry_run: true, ...(plan ? { plan } : {}) }
  return {
    status: getSuccessStatus(call.op),
    body: JSON.stringify(shown),
    isPlanned: plan !== undefined,
    askedFor: listQuestions(call.actor, call.op, pending.events),
  }
}

/** The change in words, for those who may read the records that it names. */
const summarize = async (app: App, { actor, op, input }: DryRunCall, output: Record<string, unknown>) =>
  actor.key.scopes.includes('mcp:read')
    ? await app.summarizeCall(app.db, actor, op, input, output)
    : undefined

/** What a dry run makes of a record is no version of it: a change that is made later could get the same number. */
const withoutVersion = ({ op }: DryRunCall, output: Record<string, unknown>): Record<string, unknown> => {
  const { at } = op.versioned ?? {}
  if (at === undefined) return op.versioned && 'version' in output ? { ...output, version: null } : output
  const record = output[at]
  return isObject(record) && 'version' in record ? { ...output, [at]: { ...record, version: null } } : output
}

/** Runs the operation in this transaction, as a dry run. */
const rehearseIn = async (
  app: App,
  call: DryRunCall,
  tx: Transaction,
  attempt: number,
): Promise<Rehearsed> => {
  await checkPrecondition(app, tx, call)
  const pending: PendingWrites = { events: [] }
  const ctx = createContext(app, { ...call, tx, dryRun: true, pending, attempt })
  const output = (await runHandler(app, call, ctx, pending)) as Record<string, unknown>
  return { output: withoutVersion(call, output), pending }
}

/**
 * Rehearses a change in the transaction in which it is about to run. Throws 409 `plan_changed` unless it would do
 * what its plan says. The transaction must be one snapshot; nothing is left in it.
 */
export const checkPlan = async (
  app: App,
  tx: Transaction,
  call: WriteCall,
  attempt: number,
): Promise<void> => {
  if (call.plan === undefined) return
  const planned = await makePlan(app, tx, call, () => rehearseIn(app, call, tx, attempt))
  requirePlan(app, call.actor, call.plan, planned)
}

/** The whole operation in a transaction that is rolled back, of which the audit trail says nothing. */
export const rehearse = async (app: App, call: DryRunCall): Promise<Rehearsed & Partial<Planned>> => {
  const rehearsed: Rehearsed & Partial<Planned> = await withRetries(async (attempt) => {
    const tx = await beginFor(app, call)
    try {
      const work = () => rehearseIn(app, call, tx, attempt)
      if (call.plan === undefined) return await work()
      const planned = await makePlan(app, tx, call, work)
      if (call.plan !== SHOW_PLAN) requirePlan(app, call.actor, call.plan, planned)
      return planned
    } finally {
      await tx.rollback().execute()
    }
  })
  if (hasContactBudget(call.actor)) {
    const told = { ...rehearsed.output, planned: rehearsed.touched?.map(toMention) }
    await takeContacts(app, app.db, call.actor, listContactSubjects(call.op, call.input, told))
  }
  return rehearsed
}

const toMention = ({ kind, id }: Touched): Record<string, string> => ({ [`${kind}_id`]: id })
