import { Problem } from '../../../server/kernel/problem.ts'
import type { ProviderSettings } from '../../../server/provider/settings.ts'

/** Client of the sandbox's own control surface, on this server or elsewhere. */
export type ControlClient = {
  /** The sandbox is built into this server, so both have one clock. */
  builtIn: boolean
  /** False when the provider is the true one, which is never sent anything from here. */
  isSandbox: boolean
  /**
   * Makes one request and returns its JSON. Throws the sandbox's error, 503 when it cannot be reached, and 404
   * `no_sandbox`, without a request, when the provider is no sandbox. `path`: below `control/`.
   */
  request: <T>(method: string, path: string, body?: unknown) => Promise<T>
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

export const noSandboxProblem = (): Problem =>
  new Problem('not_found', 'There is no sandbox: this server uses the real messaging provider.', {
    reason: 'no_sandbox',
  })

export const createControlClient = ({
  baseUrl,
  token,
  builtIn,
  sandbox: isSandbox,
}: Pick<ProviderSettings, 'baseUrl' | 'token' | 'builtIn' | 'sandbox'>): ControlClient => {
  const call = async (method: string, path: string, body?: unknown): Promise<Response> => {
    // The only place that reaches the controls: nothing goes to a true provider, whoever calls.
    if (!isSandbox) throw noSandboxProblem()
    try {
      return await fetch(`${baseUrl}/control/${path}`, {
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
  return {
    builtIn,
    isSandbox,
    request: async <T>(method: string, path: string, body?: unknown): Promise<T> => {
      const response = await call(method, path, body)
      const text = await response.text()
      if (!response.ok) throw errorProblem(response.status, text)
      return (text === '' ? {} : JSON.parse(text)) as T
    },
  }
}
