import type { Actor, PendingWrites } from './context.ts'
import type { AuditEntry } from '../../storage/access/audit.ts'
import type { Db } from '../../storage/database.ts'
import type { Call, CallRequest, ExecutionResult, Instead, StoredAnswer, Transaction } from './call.ts'
import type { Problem } from './problem.ts'

/** A request whose key is known, before its input is read. */
export type Admission = {
  readonly request: CallRequest
  readonly actor: Actor
  readonly kind: 'read' | 'write'
  /** Of the response. */
  readonly headers: Record<string, string>
}

/** How an attempt to answer a call ended. `work`: what may go on after a deadline has passed. */
export type AttemptEnding = {
  readonly result?: ExecutionResult
  readonly error?: unknown
  readonly work?: Promise<unknown>
}

/** A validated call on its way from a door to its handler. */
export type Incoming = Call &
  Admission & {
    /** Runs when the attempt has ended, in the reverse order. */
    readonly onEnd: (end: (ending: AttemptEnding) => unknown) => void
  }

/**
 * What came of a call, at the moments at which guards are asked:
 * - `read`: the output of a read, before it is answered
 * - `rehearsed`: of a dry run, which is rolled back; `dry_run`: the same is about to be answered
 * - `changed`: of a change, before its commit
 * - `begun`: what an operation that calls the outside is about to commit, before the call
 * - `completed`: of the same after the call: nothing may refuse it any more
 * - `refused`: a problem that is about to be stored as the answer
 * - `undone`: the outside refused a call, or it is given up
 * - `failed`: a problem that is about to be answered; `thrown` is its cause
 */
export type Outcome = {
  readonly kind:
    | 'read'
    | 'rehearsed'
    | 'dry_run'
    | 'changed'
    | 'begun'
    | 'completed'
    | 'refused'
    | 'undone'
    | 'failed'
  /** The transaction of the change, where it is still open. */
  readonly db: Db
  readonly output?: unknown
  readonly problem?: Problem
  readonly thrown?: unknown
  readonly pending?: PendingWrites
  /** The answer of a dry run and the headers of its response, to which a guard may add. */
  readonly answer?: Record<string, unknown>
  readonly headers?: Record<string, string>
  /** Its row for the audit trail, which is written with the answer. */
  audit?: AuditEntry | undefined
}

/**
 * What a feature adds to every call; each function may throw a `Problem`. They are methods, so that the kernel may hold
 * guards that need more of the server than it knows.
 */
export type Guard<App> = {
  /**
   * Which calls it concerns: changes and their dry runs, those of AI agents' keys, or both; all when absent. `admit` is
   * asked of every call: what is asked for is not known yet.
   */
  readonly only?: { readonly changes?: true; readonly agents?: true }
  /** Who may call at all, before the input is read. */
  admit?(app: App, admission: Admission): Promise<void> | void
  /** Before the work begins. May answer in its place. */
  before?(app: App, call: Incoming): Promise<ExecutionResult | void> | ExecutionResult | void
  /** In the transaction of a change or of its rehearsal, before the handler. What it locks stays locked. */
  inTransaction?(app: App, call: Call, tx: Transaction, attempt: number): Promise<void> | void
  /** With what came of the call. Only a change may be answered otherwise. */
  after?(app: App, call: Call, outcome: Outcome): Promise<Instead | void> | Instead | void
  /** Before a stored answer is given again. Returns its body as the caller may see it now. */
  onReplay?(app: App, call: Call, stored: StoredAnswer): Promise<string | void> | string | void
}

type Guarded<App> = App & { readonly guards: readonly Guard<App>[] }

/** Returns the guards that a call concerns, in their order. */
export const listGuards = <App>(
  { guards }: Guarded<App>,
  { op, actor }: Pick<Call, 'op' | 'actor'>,
): readonly Guard<App>[] =>
  guards.filter(
    ({ only }) => !only || ((!only.changes || op.scope !== 'mcp:read') && (!only.agents || actor.key.agent)),
  )

export const guardTransaction = async <App>(
  app: Guarded<App>,
  call: Call,
  tx: Transaction,
  attempt: number,
): Promise<void> => {
  for (const guard of listGuards(app, call)) await guard.inTransaction?.(app, call, tx, attempt)
}

/** Asks the guards what becomes of an outcome. Returns the answer in place of a change, if there is one. */
export const guardOutcome = async <App>(
  app: Guarded<App>,
  call: Call,
  outcome: Outcome,
): Promise<Instead | undefined> => {
  for (const guard of listGuards(app, call)) {
    const instead = await guard.after?.(app, call, outcome)
    if (instead) return instead
  }
  return undefined
}

/** Returns a stored body as its caller may see it now. */
export const guardReplay = async <App>(
  app: Guarded<App>,
  call: Call,
  { body, view }: StoredAnswer,
): Promise<string | null> => {
  let shown = body
  for (const guard of listGuards(app, call))
    shown = (await guard.onReplay?.(app, call, { body: shown, view })) ?? shown
  return shown
}
