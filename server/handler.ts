import type { z } from 'zod'
import type { EventTypeId } from '../catalog/events.ts'
import type { Declarations, OperationName } from '../catalog/index.ts'
import type { Db } from '../storage/database.ts'
import type { Services } from './app.ts'
import type { Actor, CallContext } from './kernel/context.ts'
import type {
  CallOptions as KernelCallOptions,
  ExternalHandler as KernelExternalHandler,
  LocalHandler,
} from './kernel/handler.ts'

/** What a handler gets (kernel/context.ts), with what features use of the server. */
export type Context<Emits extends EventTypeId = never> = CallContext<Emits, Services>

export type InputOf<N extends OperationName> = z.output<Declarations[N]['input']>
export type OutputOf<N extends OperationName> = z.input<Declarations[N]['output']>
/** The event types that the operation declares in `emits`. */
export type EmitsOf<N extends OperationName> = NonNullable<Declarations[N]['emits']>[number]

/** The handler of the operation `N`: its context emits only the events that the operation declares. */
export type Handler<N extends OperationName> = LocalHandler<InputOf<N>, OutputOf<N>, EmitsOf<N>, Services>

export type CallOptions = KernelCallOptions<Services>

/** A handler that calls the messaging provider. */
export type ExternalHandler<
  Input = never,
  Output = unknown,
  Intent = unknown,
  Result = unknown,
  Emits extends EventTypeId = EventTypeId,
> = KernelExternalHandler<Input, Output, Intent, Result, Emits, Services>

/** The same for an operation. */
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

/** A handler for each operation of the catalog: an operation without one does not compile. */
export type Handlers = { readonly [N in OperationName]: Handler<N> | ProviderHandler<N> }
