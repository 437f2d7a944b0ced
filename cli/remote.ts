import { setTimeout as sleep } from 'node:timers/promises'
import { type CliError, cliError, type CliProblem, exitCodeForStatus, isCliError } from './error.ts'
import type { Io } from './io.ts'

export type ServerConnection = {
  readonly url: string
  readonly key: string | undefined
  readonly version: string
  readonly apiVersion?: string | undefined
}

export type CallHeaders = {
  readonly idempotencyKey?: string | undefined
  readonly confirm?: string | undefined
}

/** The time zone of the workspace, and its time in milliseconds, which a sandbox may have moved. */
export type ServerClock = { readonly zone: string; readonly now: number }

/** A successful response: the body as text, and parsed. */
export type ApiResponse = {
  readonly status: number
  readonly body: string
  readonly value: Record<string, unknown>
  readonly clock?: ServerClock | undefined
}

/** Long enough for a submission to the provider; the server times out before this. */
const TIMEOUT_MS = 120_000
const RETRY_DELAY_MS = 300

export const requestHeaders = ({ key, version, apiVersion }: ServerConnection): Record<string, string> => ({
  'User-Agent': `wcrm-cli/${version}`,
  'Wcrm-Door': 'cli',
  ...(key ? { Authorization: `Bearer ${key}` } : {}),
  ...(apiVersion ? { 'Api-Version': apiVersion } : {}),
})

const describeNetworkError = (error: unknown): string => {
  const { cause, message, name } = error as Error & { cause?: { code?: string; message?: string } }
  return name === 'TimeoutError'
    ? `no response within ${TIMEOUT_MS / 1000} seconds`
    : (cause?.code ?? cause?.message ?? message)
}

/** Returns the error for a missing response: exit code 8, with the key under which a write can be retried. */
export const unreachableError = (url: string, error: unknown, key: string | undefined): CliError =>
  cliError(8, {
    type: 'about:blank',
    title: 'Server unreachable',
    status: 503,
    code: 'unreachable',
    detail: `${url}: ${describeNetworkError(error)}.`,
    ...(key ? { idempotency_key: key } : {}),
  })

const post = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: object,
  headers: CallHeaders,
): Promise<Response> =>
  (io.fetch ?? fetch)(`${to.url}/v1/ops/${operation}`, {
    method: 'POST',
    headers: {
      ...requestHeaders(to),
      'Content-Type': 'application/json',
      Accept: 'application/json',
      ...(headers.idempotencyKey ? { 'Idempotency-Key': headers.idempotencyKey } : {}),
      ...(headers.confirm ? { 'Api-Confirm': headers.confirm } : {}),
    },
    body: JSON.stringify(input),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })

/**
 * True when an established connection was reset: the call may or may not have run, and its idempotency key
 * makes a retry safe.
 */
const isConnectionReset = (error: unknown): boolean =>
  ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(
    (error as { cause?: { code?: string } }).cause?.code ?? '',
  )

const parseProblem = (text: string, response: Response): CliProblem => {
  try {
    const value = JSON.parse(text) as CliProblem
    if (typeof value.code === 'string' && typeof value.detail === 'string') return value
  } catch {
    /* Not a problem document: an error page of a proxy, for example. */
  }
  return {
    type: 'about:blank',
    title: 'Unexpected response',
    status: response.status,
    code: 'unexpected',
    detail: `The response ${response.status} ${response.statusText} does not come from a wcrm server.`,
  }
}

const readClock = (headers: Headers): ServerClock | undefined => {
  const zone = headers.get('workspace-time-zone')
  const now = Date.parse(headers.get('workspace-time') ?? '')
  return zone !== null && Number.isFinite(now) ? { zone, now } : undefined
}

/** Parses a response. Throws an error with the exit code of its status when it is not successful. */
export const parseResponse = async (response: Response): Promise<ApiResponse> => {
  const body = await response.text()
  if (response.ok) {
    try {
      const value = JSON.parse(body) as Record<string, unknown>
      return { status: response.status, body, value, clock: readClock(response.headers) }
    } catch {
      throw cliError(1, parseProblem(body, response))
    }
  }
  const problem = parseProblem(body, response)
  const seconds = Number(response.headers.get('retry-after'))
  const retry = Number.isFinite(seconds) && seconds > 0 ? { retryAfter: seconds } : {}
  throw Object.assign(
    cliError(exitCodeForStatus(response.status), problem, problem.code === 'unexpected' ? undefined : body),
    retry,
  )
}

/** Returns the seconds of the `Retry-After` header; undefined when there was none. */
export const retryAfterSeconds = (error: unknown): number | undefined =>
  (error as { retryAfter?: number }).retryAfter

/** True for a failure that an immediate retry may pass. A server that lacks its configuration stays so. */
const isTransientFailure = (response: Response, text: string): boolean =>
  response.status === 504 || (response.status === 503 && !text.includes('"service_unconfigured"'))

/**
 * Calls an operation. Retries once, under the same idempotency key, when the connection is reset or the
 * service is briefly unavailable.
 */
export const callOperation = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: object,
  headers: CallHeaders = {},
): Promise<ApiResponse> => {
  /** Returns undefined when the call should be retried. */
  const attempt = async (isLast: boolean): Promise<ApiResponse | undefined> => {
    let response: Response
    try {
      response = await post(io, to, operation, input, headers)
      if (!isLast && isTransientFailure(response, await response.clone().text())) return undefined
      return await parseResponse(response)
    } catch (error) {
      if (isCliError(error)) throw error
      if (!isLast && isConnectionReset(error)) return undefined
      throw unreachableError(to.url, error, headers.idempotencyKey)
    }
  }
  const first = await attempt(false)
  if (first) return first
  await sleep(RETRY_DELAY_MS)
  return (await attempt(true))!
}
