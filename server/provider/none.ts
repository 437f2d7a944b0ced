import { Problem } from '../core/problem.ts'
import type { Provider } from './port.ts'

const unconfigured = async (): Promise<never> => {
  throw new Problem(
    'service_unconfigured',
    'This server has no messaging provider. Start it with WCRM_PROVIDER_URL, or with the sandbox.',
  )
}

/** Stands where no provider was given. */
export const noProvider = new Proxy({}, { get: () => unconfigured }) as Provider
