import type { OperationName } from '../../catalog/index.ts'
import type { ProviderHandler } from './handler.ts'

/** Types a provider handler and hides its intent and result, which only its own parts know. */
export const defineProviderHandler = <N extends OperationName, Intent, Result>(
  handler: ProviderHandler<N, Intent, Result>,
): ProviderHandler<N> => handler as unknown as ProviderHandler<N>
