import type { z } from 'zod'
import type { catalog, CatalogOperation, OperationName } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import type { Context } from './context.ts'
import type { Problem } from './problem.ts'
import type { Provider } from '../provider/port.ts'

type Find<N extends OperationName> = Extract<CatalogOperation, { name: N }>
export type InputOf<N extends OperationName> = z.output<Find<N>['input']>
export type OutputOf<N extends OperationName> = z.input<Find<N>['output']>

/** The rules of one operation: what it answers, and what it changes through `ctx.tx`. */
export type Handler<I = never, O = unknown> = (ctx: Context, input: I) => Promise<O>

/**
 * An operation that calls the messaging provider, in three parts, so that no transaction is held during the
 * call. `prepare` checks and answers the intent, which is committed before `call`. `call` holds no
 * transaction; with `again` an earlier call may have reached the provider, so it finds out by the natural
 * key before it calls anew, through `lookUp`. A `Problem` from it is the provider's definite refusal,
 * unless `outcomeUnknown` says otherwise; any other failure leaves the outcome unknown. `settle` writes
 * what came of it. `rehearse` is the result a dry run assumes.
 */
export type ProviderHandler<I = never, O = unknown, Intent = unknown, Result = unknown> = {
  prepare: (ctx: Context, input: I) => Promise<Intent>
  call: (intent: Intent, how: How, input: I) => Promise<Result>
  settle: (ctx: Context, intent: Intent, result: Result) => Promise<O>
  /**
   * Takes back what `prepare` wrote when the provider refused for sure, and notes what the refusal tells;
   * in one transaction with the freed key.
   */
  refused?: (ctx: Context, intent: Intent, problem: Problem) => Promise<void>
  rehearse: (intent: Intent) => Result
}

/** `tx`: the plain connection, to read what the provider's webhook told meanwhile. `now`: business time. */
export type How = { again: boolean; signal: AbortSignal; provider: Provider; tx: Db; now: string }

export type AnyHandler = Handler | ProviderHandler

/** One handler for every operation of the catalog: one without a handler does not compile. */
export type Handlers = {
  [N in (typeof catalog)[number]['name']]:
    | Handler<InputOf<N>, OutputOf<N>>
    | ProviderHandler<InputOf<N>, OutputOf<N>>
}
