import type { z } from 'zod'
import type { EventTypeId } from '../../catalog/events.ts'
import type { CatalogOperation, OperationName } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import type { Provider } from '../provider/port.ts'
import type { Context } from './context.ts'
import type { Problem } from './problem.ts'

type Declaration<N extends OperationName> = Extract<CatalogOperation, { name: N }>
export type InputOf<N extends OperationName> = z.output<Declaration<N>['input']>
export type OutputOf<N extends OperationName> = z.input<Declaration<N>['output']>
/** The event types that the operation declares in `emits`. */
export type EmitsOf<N extends OperationName> = NonNullable<Declaration<N>['emits']>[number]

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
   * Calls the provider without a transaction. With `again` an earlier call may have reached the provider, so
   * it looks it up by the natural key (`lookUp`) before it calls again. A `Problem` from it is the
   * provider's definite refusal, unless `outcomeUnknown` says otherwise; any other failure leaves the outcome
   * unknown.
   */
  call: (intent: Intent, options: CallOptions, input: Input) => Promise<Result>
  /** Writes the result and returns the output. */
  complete: (ctx: Context<Emits>, intent: Intent, result: Result) => Promise<Output>
  /**
   * Undoes what `prepare` wrote after the provider definitely refused, and writes what the refusal says; in
   * one transaction with the release of the idempotency key.
   */
  compensate?: (ctx: Context<Emits>, intent: Intent, problem: Problem) => Promise<void>
  /** Returns the result that a dry run assumes in place of `call`. */
  dryRunResult: (intent: Intent) => Result
}

/**
 * `db`: outside of a transaction, so that the call sees what the provider's webhook has committed and commits
 * each of its own writes. `now`: business time.
 */
export type CallOptions = { again: boolean; signal: AbortSignal; provider: Provider; db: Db; now: string }

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

export type AnyHandler = LocalHandler | ExternalHandler

/** A handler for each operation of the catalog: an operation without one does not compile. */
export type Handlers = { readonly [N in OperationName]: Handler<N> | ProviderHandler<N> }
