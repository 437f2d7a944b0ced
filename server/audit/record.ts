import { type AuditEntry, writeAudit } from '../../storage/audit.ts'
import type { App } from '../app.ts'
import type { Actor } from '../core/context.ts'
import type { Problem } from '../core/problem.ts'
import { basisOf, endedBy, entryOf, type Told, type Trace, type Went } from './entry.ts'

/**
 * Problems whose row is written with the answer that is kept of them, or will be when the outcome of a call
 * to the provider is known.
 */
const told = new WeakSet<Problem>()

export const markTold = (problem: Problem): void => void told.add(problem)
export const isTold = (problem: Problem): boolean => told.has(problem)

/** Nothing was tried: another request has the key. */
const NOT_TRIED = new Set<unknown>([
  'still_running',
  'idempotency_key_reused',
  'idempotency_key_required',
  'idempotency_key_invalid',
])

/** Writes a row in a transaction of its own. The call is answered even if it cannot be written. */
const write = async (app: App, { workspace }: Actor, entry: AuditEntry): Promise<void> => {
  try {
    await writeAudit(app.db, workspace.id, entry)
  } catch (error) {
    app.log.error(
      { request_id: entry.request_id, operation: entry.operation, code: (error as { code?: string }).code },
      'audit row not written',
    )
  }
}

export const tell = async (app: App, call: Told, went: Went): Promise<void> => {
  if (app.config.audit) await write(app, call.actor, entryOf(call, went))
}

/**
 * Tells of a call that a problem ended, where that concerns permission or confirmation, or where a change
 * had `begun`. Refusals that come before the rate limit are as many as a client likes, so of those only as
 * many are told as a key may make changes.
 */
export const tellProblem = async (
  app: App,
  call: Told,
  problem: Problem,
  { begun, limited }: { begun: boolean; limited: boolean },
): Promise<void> => {
  if (isTold(problem) || NOT_TRIED.has(problem.extras.reason)) return
  const went = endedBy(app.now(), problem)
  if (went.outcome === 'failed' ? !begun : !limited && !mayTell(app, call.actor)) return
  await tell(app, call, went)
}

/** Tells of a refusal before it is known which operation is asked for: the door stands in its place. */
export const tellAtDoor = async (app: App, actor: Actor, trace: Trace, problem: Problem): Promise<void> => {
  if (app.config.audit && mayTell(app, actor))
    await write(app, actor, {
      ...basisOf(actor, trace, endedBy(app.now(), problem)),
      operation: trace.door,
      target: null,
      dry_run: false,
      changes: null,
    })
}

/** How many early refusals of each key were told in this minute of real time. */
type Minute = { minute: number; counts: Map<string, number> }
const minutes = new WeakMap<App, Minute>()

const mayTell = (app: App, { key }: Actor): boolean => {
  const minute = Math.floor(performance.now() / 60_000)
  let current = minutes.get(app)
  if (current?.minute !== minute) minutes.set(app, (current = { minute, counts: new Map() }))
  const n = (current.counts.get(key.id) ?? 0) + 1
  current.counts.set(key.id, n)
  return n <= app.config.limits.write.key
}
