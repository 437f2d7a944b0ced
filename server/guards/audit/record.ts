import { type AuditEntry, insertAuditRow } from '../../../storage/access/audit.ts'
import type { App } from '../../app.ts'
import { waitAtMost } from '../../../storage/client/wait-at-most.ts'
import type { Call } from '../../kernel/call.ts'
import type { Actor, CallTrace } from '../../kernel/context.ts'
import { noteDiskFull } from '../../kernel/disk-full.ts'
import type { Guard } from '../../kernel/guard.ts'
import type { Problem } from '../../kernel/problem.ts'
import { type CallOutcome, toAuditBase, toAuditEntry, toFailure, toSuccess } from './entry.ts'
import { limitSize, redactObject } from './redact.ts'

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

/** The response to a failure does not wait longer for its row. */
const WRITE_MS = 1_000

/**
 * A call that ended with a problem is recorded where that concerns permission or confirmation, or where a
 * change had begun. A client can cause any number of problems that come before the rate limit, so of those
 * only as many are recorded as its key may make changes.
 */
const isFailureRecorded = (app: App, { actor, progress }: Call, problem: Problem): boolean => {
  if (problem.isAudited || NOT_TRIED_REASONS.has(problem.extras.reason)) return false
  return toFailure(problem).outcome === 'failed'
    ? progress?.begun === true
    : progress?.limited === true || takeAuditToken(app, actor)
}

/** The row of a change is written with its answer; any other one in a transaction of its own. */
export const audit: Guard<App> = {
  after: async (app, call, outcome) => {
    if (!app.config.audit) return
    const { actor, op, trace, dryRun = false } = call
    const { kind, output, problem, pending } = outcome
    // What a read asks for is kept of agents alone.
    const isKnown = call.progress?.understood !== false && (op.scope !== 'mcp:read' || actor.key.agent)
    const toEntry = (what: Omit<CallOutcome, 'at'>) =>
      toAuditEntry(
        { actor, op, trace, dryRun, input: isKnown ? call.input : undefined },
        { at: app.now(), ...what },
      )
    switch (kind) {
      case 'changed':
      case 'completed':
        outcome.audit = toEntry(toSuccess(output, pending!))
        return
      case 'refused':
        if (!problem!.isAudited) outcome.audit = toEntry(toFailure(problem!))
        return
      case 'undone':
        outcome.audit = toEntry(toFailure(problem!))
        return
      case 'dry_run':
        await writeRow(app, actor, toEntry(toSuccess(output, pending!)))
        return
      case 'failed':
        if (isFailureRecorded(app, call, problem!))
          await waitAtMost(WRITE_MS, writeRow(app, actor, toEntry(toFailure(problem!))))
    }
  },
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
