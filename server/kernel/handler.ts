import type { EventTypeId } from '../../catalog/events.ts'
import type { Db } from '../../storage/database.ts'
import type { Actor, CallContext } from './context.ts'
import type { Problem } from './problem.ts'

/** A handler that needs only the database: it reads and writes through `ctx.tx` and returns the output. */
export type LocalHandler<
  Input = never,
  Output = unknown,
  Emits extends EventTypeId = EventTypeId,
  Services = never,
> = ((ctx: CallContext<Emits, Services>, input: Input) => Promise<Output>) & {
  /**
   * Reads from the outside what the handler needs, before any transaction and for dry runs alike. It finds it in
   * `ctx.call.lookedUp`.
   */
  readonly lookUp?: (options: LookUpOptions<Services>) => Promise<unknown>
}

export type LookUpOptions<Services = never> = Pick<
  CallOptions<Services>,
  'signal' | 'services' | 'db' | 'now'
> & { readonly actor: Actor }

/**
 * A handler that calls the outside, such as the messaging provider, in three parts, so that no transaction is open
 * during the call.
 */
export type ExternalHandler<
  Input = never,
  Output = unknown,
  Intent = unknown,
  Result = unknown,
  Emits extends EventTypeId = EventTypeId,
  Services = never,
> = {
  /** Throws 503 where there is nobody to call. */
  requireAvailable: (services: Services) => void
  /**
   * Checks the input, writes what the call needs and returns the intent, which is committed before `call`. It
   * emits no events: nobody knows yet what comes of the call.
   */
  prepare: (ctx: CallContext<never, Services>, input: Input) => Promise<Intent>
  /**
   * Makes the call without a transaction. A `Problem` from it is a definite refusal, unless
   * `isOutcomeUnknown` says otherwise; any other failure leaves the outcome unknown.
   */
  call: (intent: Intent, options: CallOptions<Services>, input: Input) => Promise<Result>
  /**
   * Looks for what became of an earlier call whose outcome is unknown, by a natural key or by what the
   * provider has reported; never makes the call. Returns undefined when there is nothing of it (yet). Throws
   * a `Problem` like `call`.
   */
  findOutcome: (intent: Intent, options: CallOptions<Services>, input: Input) => Promise<Result | undefined>
  /**
   * Whether a repeat with the same key makes the call again when nothing of an earlier one is found: only
   * where that cannot leave a second one at the provider. The service itself never does.
   */
  mayRepeat: boolean
  /** What the answer says while the outcome is unknown. */
  openDetail?: string
  /** Writes the result and returns the output. */
  complete: (ctx: CallContext<Emits, Services>, intent: Intent, result: Result) => Promise<Output>
  /**
   * Undoes what `prepare` wrote after the provider definitely refused, and writes what the refusal says; in
   * one transaction with the release of the idempotency key. Also for a call that is given up, unless there
   * is `giveUp`.
   */
  compensate?: (ctx: CallContext<Emits, Services>, intent: Intent, problem: Problem) => Promise<void>
  /**
   * Fails what `prepare` wrote when the outcome was not found in time. Returns the final answer, and
   * undefined when the outcome has become known in the meantime.
   */
  giveUp?: (
    ctx: CallContext<Emits, Services>,
    intent: Intent,
    problem: Problem,
  ) => Promise<Problem | undefined>
  /**
   * Returns what is written once the outcome is unknown, and undefined when nothing is. `compensate` is not called
   * after it, unless the call is made again. It may run repeatedly.
   */
  leaveOpen?: (intent: Intent) => ((ctx: CallContext<Emits, Services>) => Promise<void>) | undefined
  /** Returns the result that a dry run assumes in place of `call`. */
  dryRunResult: (intent: Intent) => Result
  /**
   * The job that delivers the intents which `takes` names, in place of `call`: they are completed in the
   * transaction of `prepare`, with the result of a dry run.
   */
  queue?: { job: string; takes: (intent: Intent) => boolean }
}

/**
 * `again`: an earlier call may have reached the outside, or may still do so. `storedOnly`: nobody is asked now.
 * `db`: outside of a transaction, so that the call sees what the provider's webhook has committed and commits each
 * of its own writes. `now`: business time.
 */
export type CallOptions<Services = never> = {
  again: boolean
  storedOnly: boolean
  signal: AbortSignal
  services: Services
  db: Db
  now: string
}

/** A settler of whichever operation. */
export type AnySettler = (
  app: { readonly db: Db },
  actor: Actor,
  input: never,
  answer: never,
) => Promise<unknown>

export type AnyHandler = LocalHandler | ExternalHandler

/** A handler whose input was validated against the schema of its operation. */
export type ErasedLocalHandler = LocalHandler<unknown, unknown, EventTypeId, unknown>
export type ErasedExternalHandler = ExternalHandler<unknown, unknown, unknown, unknown, EventTypeId, unknown>
