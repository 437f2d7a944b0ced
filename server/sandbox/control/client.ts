import { Problem } from '../../core/problem.ts'
import type { ProviderSettings } from '../../provider/settings.ts'

/** The sandbox's control surface, wherever it runs. */
export type Control = {
  /** The sandbox is this server's own: they have one clock. */
  builtIn: boolean
  /**
   * Throws what the sandbox said, or 503 when it cannot be reached. `path`: below `control/`, empty for
   * itself.
   */
  ask: <T>(method: string, path: string, body?: unknown) => Promise<T>
  /** False when the provider is the true one; throws 503 when it cannot be reached. */
  isSandbox: () => Promise<boolean>
}

const TIMEOUT_MS = 10_000

type Envelope = { error?: { message?: string; error_data?: { details?: string } } }

const refusal = (status: number, text: string): Problem => {
  let said: string | undefined
  try {
    const { error } = JSON.parse(text) as Envelope
    said = error?.error_data?.details ?? error?.message
  } catch {
    /* Not JSON: a proxy's page, for example. */
  }
  if (said === undefined)
    return new Problem('upstream_error', `The sandbox answered ${status}, and not as it should.`)
  return new Problem(
    status === 404 ? 'not_found' : status < 500 && status !== 401 ? 'invalid_input' : 'upstream_error',
    said.slice(0, 500),
  )
}

export const controlOf = ({
  baseUrl,
  token,
  builtIn,
}: Pick<ProviderSettings, 'baseUrl' | 'token' | 'builtIn'>): Control => {
  const call = async (method: string, path: string, body?: unknown): Promise<Response> => {
    try {
      return await fetch(`${baseUrl}/control${path === '' ? '' : `/${path}`}`, {
        method,
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          Authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    } catch {
      throw new Problem('upstream_unavailable', 'The sandbox cannot be reached. Is it running?')
    }
  }
  let known: boolean | undefined = builtIn ? true : undefined
  return {
    builtIn,
    ask: async <T>(method: string, path: string, body?: unknown): Promise<T> => {
      const response = await call(method, path, body)
      const text = await response.text()
      if (!response.ok) throw refusal(response.status, text)
      return (text === '' ? {} : JSON.parse(text)) as T
    },
    isSandbox: async () => {
      if (known !== undefined) return known
      const response = await call('GET', '')
      const text = await response.text()
      // A gateway that answers for a sandbox that is starting tells nothing about it.
      if (response.status >= 500)
        throw new Problem('upstream_unavailable', 'The messaging provider cannot be reached.')
      return (known = response.ok && text.includes('"sandbox":true'))
    },
  }
}
