import { type AuditEntry, insertAuditRow } from '../../../storage/access/audit.ts'
import type { App } from '../../kernel/app.ts'
import type { Actor, CallTrace } from '../../kernel/context.ts'
import { noteDiskFull } from '../../kernel/disk-full.ts'
import type { Problem } from '../../kernel/problem.ts'
import { type AuditedCall, type CallOutcome, toAuditBase, toAuditEntry, toFailure } from './entry.ts'
import { limitSize, redactObject } from './redact.ts'

/**
 * Marks a problem whose row is written with its stored response, or will be when the outcome of a call to
 * the provider is known.
 */
export const markAudited = (problem: Problem): void => {
  problem.isAudited = true
}

/** Reasons of problems that say that nothing was tried, such as another request having the key. */
const NOT_TRIED_REASONS = new Set<unknown>([
  'still_running',
  'idempotency_key_reused',
  'idempotency_key_required',
  'idempotency_key_invalid',
])

/** Writes a row in a transaction of its own. The response is sent even if this fails. */
const writeRow = async (app: App, { workspace }: Actor, entry: AuditEntry): Promise<void> => {
  try {
    await insertAuditRow(app.db, workspace.id, entry)
  } catch (error) {
    if (noteDiskFull(app, error)) return
    app.log.error(
      { request_id: entry.request_id, operation: entry.operation, code: (error as { code?: string }).code },
      'Cannot write an audit row',
    )
  }
}

export const recordAudit = async (app: App, call: AuditedCall, outcome: CallOutcome): Promise<void> => {
  if (app.config.audit) await writeRow(app, call.actor, toAuditEntry(call, outcome))
}

/**
 * Records a call that ended with a problem, where that concerns permission or confirmation, or where a
 * change had `begun`. A client can cause any number of problems that come before the rate limit, so of those
 * only as many are recorded as its key may make changes.
 */
export const recordFailure = async (
  app: App,
  call: AuditedCall,
  problem: Problem,
  { begun, limited }: { begun: boolean; limited: boolean },
): Promise<void> => {
  if (problem.isAudited || NOT_TRIED_REASONS.has(problem.extras.reason)) return
  const failure = toFailure(problem)
  if (failure.outcome === 'failed' ? !begun : !limited && !takeAuditToken(app, call.actor)) return
  await recordAudit(app, call, { at: app.now(), ...failure })
}

/** Records an error that comes before the operation is known: the transport is recorded in its place. */
export const recordAuthFailure = async (
  app: App,
  actor: Actor,
  trace: CallTrace,
  problem: Problem,
): Promise<void> => {
  if (app.config.audit && takeAuditToken(app, actor))
    await writeRow(app, actor, {
      ...toAuditBase(actor, trace, { at: app.now(), ...toFailure(problem) }),
      operation: trace.door,
      target: null,
      dry_run: false,
      changes: null,
    })
}

/** A call of the sandbox's control surface, which is no operation. `limited`: the rate limit let it pass. */
export type ControlCall = {
  actor: Actor
  trace: CallTrace
  name: string
  input: Record<string, unknown> | undefined
  target: AuditEntry['target']
  outcome: Pick<CallOutcome, 'outcome' | 'code'>
  limited: boolean
}

/** Controls whose texts are messages. */
const messageControls: ReadonlySet<string> = new Set(['sandbox.say', 'sandbox.edit'])

export const recordControl = async (
  app: App,
  { actor, trace, name, input, target, outcome, limited }: ControlCall,
): Promise<void> => {
  if (app.config.audit && (limited || takeAuditToken(app, actor)))
    await writeRow(app, actor, {
      ...toAuditBase(actor, trace, { at: app.now(), ...outcome }),
      operation: name,
      target,
      dry_run: false,
      changes:
        input === undefined
          ? null
          : limitSize({ input: redactObject(name, input, { omitTexts: messageControls.has(name) }) }),
    })
}

/** Whether one more early problem of this key may be recorded in this minute of real time. */
const takeAuditToken = ({ auditLimiter, config }: App, { key }: Actor): boolean => {
  const minute = Math.floor(performance.now() / 60_000)
  if (auditLimiter.minute !== minute) {
    auditLimiter.minute = minute
    auditLimiter.countByKey.clear()
  }
  const count = (auditLimiter.countByKey.get(key.id) ?? 0) + 1
  auditLimiter.countByKey.set(key.id, count)
  return count <= config.limits.write.key
}
