import type { OperationName } from '../../catalog/index.ts'
import type { Context, InputOf, ProviderHandler } from '../handler.ts'
import { isProviderConfigured, requireProviderConfigured, unconfiguredProblem } from './port.ts'

/** `needsNoProvider`: of an input that reaches its customer without one. */
type Definition<N extends OperationName, Intent, Result> = Omit<
  ProviderHandler<N, Intent, Result>,
  'requireAvailable'
> & { needsNoProvider?: (ctx: Context, input: InputOf<N>) => Promise<boolean> }

/**
 * Types a provider handler and hides its intent and result, which only its own parts know. It throws 503 when the call
 * needs a provider and there is none: before anything is written, and for dry runs alike.
 */
export const defineProviderHandler = <N extends OperationName, Intent, Result>({
  needsNoProvider,
  ...handler
}: Definition<N, Intent, Result>): ProviderHandler<N> => {
  const defined: ProviderHandler<N, Intent, Result> = {
    ...handler,
    requireAvailable: ({ provider }) => requireProviderConfigured(provider),
    prepare: async (ctx, input) => {
      if (!isProviderConfigured(ctx.services.provider) && !(await needsNoProvider?.(ctx, input)))
        throw unconfiguredProblem()
      return await handler.prepare(ctx, input)
    },
  }
  return defined as unknown as ProviderHandler<N>
}
