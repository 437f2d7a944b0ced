import { Problem } from '../kernel/problem.ts'
import type { Metrics } from '../metrics.ts'
import { providerChannel } from '../diagnostics-channels.ts'
import { isProviderConfigured, type Provider } from './port.ts'

type Call = (...given: unknown[]) => Promise<unknown>

/** Returns the provider with the duration and the outcome of each of its calls in the metrics. */
export const measureProvider = (provider: Provider, metrics: Metrics): Provider => {
  if (!isProviderConfigured(provider)) return provider
  const measure =
    (name: string, call: Call): Call =>
    async (...given) => {
      const end = metrics.providerCalls.startTimer({ call: name })
      try {
        const answer = await providerChannel.tracePromise(() => call(...given), { call: name })
        end({ outcome: 'ok' })
        return answer
      } catch (error) {
        end({ outcome: error instanceof Problem ? String(error.extras.reason ?? error.code) : 'failed' })
        throw error
      }
    }
  const calls = Object.entries(provider).map(([name, call]) => [name, measure(name, call as Call)])
  return Object.fromEntries(calls) as Provider
}
