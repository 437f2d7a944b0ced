import { setTimeout as sleep } from 'node:timers/promises'
import { type CliError, cliError, type CliProblem, exitCodeForStatus, isCliError } from './error.ts'
import type { Io } from './io.ts'
import { type HttpResponse, sendRequest } from './transport.ts'

export type ServerConnection = {
  readonly url: string
  readonly key: string | undefined
  readonly version: string
  readonly apiVersion?: string | undefined
  /** How often a failed call is tried again (`--retry`); undefined: once, and at once. */
  readonly retries?: number | undefined
}

export type CallHeaders = {
  readonly idempotencyKey?: string | undefined
  readonly confirm?: string | undefined
  /** `show` asks a dry run for its plan; the token of a plan: the call does that, or is refused. */
  readonly plan?: string | undefined
  /** Why an AI agent makes the call. */
  readonly reason?: string | undefined
  /** Ends the call; its reason is thrown. */
  readonly signal?: AbortSignal | undefined
}

/** The time zone of the workspace, and its time in milliseconds, which a sandbox may have moved. */
export type ServerClock = { readonly zone: string; readonly now: number }

/** A successful response: the body as text, and parsed. */
export type ApiResponse = {
  readonly status: number
  readonly body: string
  readonly value: Record<string, unknown>
  readonly clock?: ServerClock | undefined
  /** A person decides on the call: the id of the request. */
  readonly approvalId?: string | undefined
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
  Object.assign(
    cliError(8, {
      type: 'about:blank',
      title: 'Server unreachable',
      status: 503,
      code: 'unreachable',
      detail: `${url}: ${describeNetworkError(error)}.`,
      ...(key ? { idempotency_key: key } : {}),
    }),
    { cause: error },
  )

const post = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: object,
  headers: CallHeaders,
): Promise<HttpResponse> =>
  sendRequest(io, `${to.url}/v1/ops/${operation}`, {
    method: 'POST',
    headers: {
      ...requestHeaders(to),
      'Content-Type': 'application/json',
      Accept: 'application/json',
      ...(headers.idempotencyKey ? { 'Idempotency-Key': headers.idempotencyKey } : {}),
      ...(headers.confirm ? { 'Api-Confirm': headers.confirm } : {}),
      ...(headers.plan ? { 'Api-Plan': headers.plan } : {}),
      ...(headers.reason ? { 'Api-Reason': encodeURIComponent(headers.reason) } : {}),
    },
    body: JSON.stringify(input),
    redirect: 'error',
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ...(headers.signal ? [headers.signal] : [])]),
  })

/**
 * True when an established connection was reset: the call may or may not have run, and its idempotency key
 * makes a retry safe.
 */
const isConnectionReset = (error: unknown): boolean =>
  ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(
    (error as { cause?: { code?: string } }).cause?.code ?? '',
  )

const parseProblem = (text: string, response: HttpResponse): CliProblem => {
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

const readClock = (headers: HttpResponse['headers']): ServerClock | undefined => {
  const zone = headers.get('workspace-time-zone')
  const now = Date.parse(headers.get('workspace-time') ?? '')
  return zone !== null && Number.isFinite(now) ? { zone, now } : undefined
}

/** Parses a response. Throws an error with the exit code of its status when it is not successful. */
export const parseResponse = async (response: HttpResponse): Promise<ApiResponse> => {
  const body = await response.text()
  if (response.ok) {
    try {
      const value = JSON.parse(body) as Record<string, unknown>
      const approvalId = response.headers.get('approval-id') ?? undefined
      return { status: response.status, body, value, clock: readClock(response.headers), approvalId }
    } catch {
      throw cliError(1, parseProblem(body, response))
    }
  }
  const problem = parseProblem(body, response)
  const seconds = Number(response.headers.get('retry-after'))
  const exitCode = exitCodeForStatus(response.status)
  if (!Number.isFinite(seconds) || seconds <= 0)
    throw cliError(exitCode, problem, problem.code === 'unexpected' ? undefined : body)
  throw Object.assign(cliError(exitCode, { ...problem, retry_after: seconds }), { retryAfter: seconds })
}

/** Returns the seconds of the `Retry-After` header; undefined when there was none. */
export const retryAfterSeconds = (error: unknown): number | undefined =>
  (error as { retryAfter?: number }).retryAfter

/** True for a failure that an immediate retry may pass. A server that lacks its configuration stays so. */
const isTransientFailure = ({ problem }: CliError): boolean =>
  problem.status === 504 || (problem.status === 503 && problem.code !== 'service_unconfigured')

/** True while a call with the same idempotency key runs: whether that succeeds is open. */
const isStillRunning = ({ problem }: CliError): boolean => problem['reason'] === 'still_running'

/** Longest wait that `--retry` accepts from a server, in seconds. */
const MAX_WAIT_SECONDS = 120

/**
 * Returns after how many milliseconds a failed call is tried again; undefined: not again. One retry, when the
 * connection was reset or the service is briefly unavailable, unless `retries` says how many, which then wait as
 * long as the server says, and longer each time, also when nothing answers or the rate limit refuses.
 */
const retryDelay = (error: CliError, tries: number, retries: number | undefined): number | undefined => {
  const reset = error.cause !== undefined && isConnectionReset(error.cause)
  if (retries === undefined)
    return tries === 1 && (reset || isTransientFailure(error)) ? RETRY_DELAY_MS : undefined
  const { code, status } = error.problem
  const passes =
    isTransientFailure(error) ||
    isStillRunning(error) ||
    code === 'unreachable' ||
    status === 429 ||
    status === 502
  const seconds = retryAfterSeconds(error) ?? 0
  if (tries > retries || !passes || seconds > MAX_WAIT_SECONDS) return undefined
  return Math.max(seconds * 1000, RETRY_DELAY_MS * 2 ** Math.min(tries - 1, 7))
}

/**
 * Adds the key of a change to a failure after which the change may have been made, so that it can be repeated:
 * a proxy in between does not know it.
 */
const withKey = (error: CliError, key: string | undefined): CliError => {
  const { status = 503, code, idempotency_key: known } = error.problem
  const isOpen = (status >= 500 && code !== 'service_unconfigured') || isStillRunning(error)
  if (key === undefined || known !== undefined || !isOpen) return error
  const { exitCode, problem } = error
  return cliError(exitCode, { ...problem, idempotency_key: key })
}

/**
 * Calls an operation, and again under the same idempotency key when that may help. Throws an error with the exit
 * code of the last failure.
 */
export const callOperation = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: object,
  headers: CallHeaders = {},
): Promise<ApiResponse> => {
  for (let tries = 1; ; tries++) {
    try {
      return await parseResponse(await post(io, to, operation, input, headers))
    } catch (error) {
      const failure = isCliError(error) ? error : unreachableError(to.url, error, headers.idempotencyKey)
      const delay = retryDelay(failure, tries, to.retries)
      if (delay === undefined) throw withKey(failure, headers.idempotencyKey)
      if (to.retries !== undefined)
        io.stderr.write(`${failure.problem.title}: trying again in ${Math.ceil(delay / 1000)} s.\n`)
      await sleep(delay, undefined, { signal: headers.signal }).catch(() => headers.signal?.throwIfAborted())
    }
  }
}
