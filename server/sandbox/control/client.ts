import { Problem } from '../../core/problem.ts'
import { isProviderHost } from '../../provider/adapter/media.ts'
import type { ProviderSettings } from '../../provider/settings.ts'

/** Client of the sandbox's own control surface, on this server or elsewhere. */
export type ControlClient = {
  /** The sandbox is built into this server, so both have one clock. */
  builtIn: boolean
  /**
   * Makes one request and returns its JSON. Throws the sandbox's error, or 503 when it cannot be reached.
   * `path`: below `control/`; empty for `control` itself.
   */
  request: <T>(method: string, path: string, body?: unknown) => Promise<T>
  /** Returns false when the provider is the real one; throws 503 when it cannot be reached. */
  isSandbox: () => Promise<boolean>
}

const TIMEOUT_MS = 10_000

type ErrorBody = { error?: { message?: string; error_data?: { details?: string } } }

const errorProblem = (status: number, text: string): Problem => {
  let message: string | undefined
  try {
    const { error } = JSON.parse(text) as ErrorBody
    message = error?.error_data?.details ?? error?.message
  } catch {
    /* Not JSON: a proxy's page, for example. */
  }
  if (message === undefined)
    return new Problem('upstream_error', `The sandbox sent an unexpected response with status ${status}.`)
  return new Problem(
    status === 404 ? 'not_found' : status < 500 && status !== 401 ? 'invalid_input' : 'upstream_error',
    message.slice(0, 500),
  )
}

export const createControlClient = ({
  baseUrl,
  token,
  builtIn,
}: Pick<ProviderSettings, 'baseUrl' | 'token' | 'builtIn'>): ControlClient => {
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
  // The provider itself is never asked.
  let known: boolean | undefined = builtIn ? true : isProviderHost(new URL(baseUrl)) ? false : undefined
  return {
    builtIn,
    request: async <T>(method: string, path: string, body?: unknown): Promise<T> => {
      const response = await call(method, path, body)
      const text = await response.text()
      if (!response.ok) throw errorProblem(response.status, text)
      return (text === '' ? {} : JSON.parse(text)) as T
    },
    isSandbox: async () => {
      if (known !== undefined) return known
      const response = await call('GET', '')
      const text = await response.text()
      // A gateway may respond in place of a sandbox that is still starting.
      if (response.status >= 500)
        throw new Problem('upstream_unavailable', 'The messaging provider cannot be reached.')
      return (known = response.ok && text.includes('"sandbox":true'))
    },
  }
}
