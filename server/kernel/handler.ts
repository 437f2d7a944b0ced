import type { z } from 'zod'
import type { EventTypeId } from '../../catalog/events.ts'
import type { Declarations, OperationName } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import type { JobName } from '../work/runner.ts'
import type { Provider } from '../provider/port.ts'
import type { Actor, Context } from './context.ts'
import type { Problem } from './problem.ts'

export type InputOf<N extends OperationName> = z.output<Declarations[N]['input']>
export type OutputOf<N extends OperationName> = z.input<Declarations[N]['output']>
/** The event types that the operation declares in `emits`. */
export type EmitsOf<N extends OperationName> = NonNullable<Declarations[N]['emits']>[number]

/** A handler that needs only the database: it reads and writes through `ctx.tx` and returns the output. */
export type LocalHandler<Input = never, Output = unknown, Emits extends EventTypeId = EventTypeId> = (
  ctx: Context<Emits>,
  input: Input,
) => Promise<Output>

/**
 * A handler that calls the messaging provider, in three parts, so that no transaction is open during the
 * call.
 */
export type ExternalHandler<
  Input = never,
  Output = unknown,
  Intent = unknown,
  Result = unknown,
  Emits extends EventTypeId = EventTypeId,
> = {
  /**
   * Checks the input, writes what the call needs and returns the intent, which is committed before `call`. It
   * emits no events: nobody knows yet what comes of the call.
   */
  prepare: (ctx: Context, input: Input) => Promise<Intent>
  /**
   * Calls the provider without a transaction. A `Problem` from it is the provider's definite refusal, unless
   * `isOutcomeUnknown` says otherwise; any other failure leaves the outcome unknown.
   */
  call: (intent: Intent, options: CallOptions, input: Input) => Promise<Result>
  /**
   * Looks for what became of an earlier call whose outcome is unknown, by a natural key or by what the
   * provider has reported; never makes the call. Returns undefined when there is nothing of it (yet). Throws
   * a `Problem` like `call`.
   */
  findOutcome: (intent: Intent, options: CallOptions, input: Input) => Promise<Result | undefined>
  /**
   * Whether a repeat with the same key makes the call again when nothing of an earlier one is found: only
   * where that cannot leave a second one at the provider. The service itself never does.
   */
  mayRepeat: boolean
  /** What the answer says while the outcome is unknown. */
  openDetail?: string
  /** Writes the result and returns the output. */
  complete: (ctx: Context<Emits>, intent: Intent, result: Result) => Promise<Output>
  /**
   * Undoes what `prepare` wrote after the provider definitely refused, and writes what the refusal says; in
   * one transaction with the release of the idempotency key. Also for a call that is given up, unless there
   * is `giveUp`.
   */
  compensate?: (ctx: Context<Emits>, intent: Intent, problem: Problem) => Promise<void>
  /**
   * Fails what `prepare` wrote when the outcome was not found in time. Returns the final answer, and
   * undefined when the outcome has become known in the meantime.
   */
  giveUp?: (ctx: Context<Emits>, intent: Intent, problem: Problem) => Promise<Problem | undefined>
  /**
   * Returns what is written once the outcome is unknown, and undefined when nothing is. `compensate` is not called
   * after it, unless the call is made again. It may run repeatedly.
   */
  leaveOpen?: (intent: Intent) => ((ctx: Context<Emits>) => Promise<void>) | undefined
  /** Returns the result that a dry run assumes in place of `call`. */
  dryRunResult: (intent: Intent) => Result
  /**
   * The job that delivers the intents which `takes` names, in place of `call`: they are completed in the
   * transaction of `prepare`, with the result of a dry run. `needsNoProvider` tells of an input beforehand, where
   * there is no provider.
   */
  queue?: {
    job: JobName
    takes: (intent: Intent) => boolean
    needsNoProvider: (ctx: Context, input: Input) => Promise<boolean>
  }
}

/**
 * `again`: an earlier call may have reached the provider, or may still do so. `storedOnly`: the provider is
 * not asked now. `db`: outside of a transaction, so that the call sees what the provider's webhook has
 * committed and commits each of its own writes. `now`: business time.
 */
export type CallOptions = {
  again: boolean
  storedOnly: boolean
  signal: AbortSignal
  provider: Provider
  db: Db
  now: string
}

/** The handler of the operation `N`: its context emits only the events that the operation declares. */
export type Handler<N extends OperationName> = LocalHandler<InputOf<N>, OutputOf<N>, EmitsOf<N>>

/** The same for an operation that calls the messaging provider. */
export type ProviderHandler<N extends OperationName, Intent = unknown, Result = unknown> = ExternalHandler<
  InputOf<N>,
  OutputOf<N>,
  Intent,
  Result,
  EmitsOf<N>
>

/**
 * Adds to the answer of a local change what is known only after its commit, such as what a receiver answered. It
 * runs without a transaction, also when the answer is given again, and nothing of it is stored.
 */
export type Settler<N extends OperationName> = (
  app: { readonly db: Db },
  actor: Actor,
  input: InputOf<N>,
  answer: OutputOf<N>,
) => Promise<OutputOf<N>>

/** A settler of whichever operation. */
export type AnySettler = (
  app: { readonly db: Db },
  actor: Actor,
  input: never,
  answer: never,
) => Promise<unknown>

export type AnyHandler = LocalHandler | ExternalHandler

/** A handler for each operation of the catalog: an operation without one does not compile. */
export type Handlers = { readonly [N in OperationName]: Handler<N> | ProviderHandler<N> }
