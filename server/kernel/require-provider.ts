import { isProviderConfigured, unconfiguredProblem } from '../provider/port.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import type { ExternalHandler } from './handler.ts'

/**
 * Throws 503 when a call needs a provider and there is none: before anything is written, and for dry runs alike.
 */
export const requireProviderFor = async (
  app: App,
  { queue }: ExternalHandler<unknown>,
  ctx: Context,
  input: unknown,
): Promise<void> => {
  if (isProviderConfigured(app.provider) || (await queue?.needsNoProvider(ctx, input))) return
  throw unconfiguredProblem()
}
