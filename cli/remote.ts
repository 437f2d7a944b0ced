import { currentVersion } from '../catalog/versions.ts'
import { isWcrmError, type WcrmError } from '../client/problem.ts'
import { type Answer, readAnswer } from '../client/request.ts'
import { mayPass, type RetryPolicy } from '../client/retry.ts'
import { sendCall, type SendOptions } from '../client/transport.ts'
import { type CliError, cliError, type CliProblem, exitCodeForStatus } from './error.ts'
import type { Io } from './io.ts'
import { type HttpResponse, sendRequest } from './transport.ts'

export type ServerConnection = {
  /** The command that calls: its settings, and where it says that it waits. */
  readonly io: Io
  readonly url: string
  readonly key: string | undefined
  readonly version: string
  /**
   * The API version to ask for; when absent, the one that the command line was made for, whose answers it knows.
   * Null: the one that the key is pinned to.
   */
  readonly apiVersion?: string | null | undefined
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
  /** When the call is tried again, where neither `--retry` nor its absence says it. */
  readonly policy?: RetryPolicy | undefined
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
/** Longest wait that a server may ask for: of a command that says what it waits for, and of one that does not. */
const MAX_WAIT_MS = 120_000
const MAX_SILENT_WAIT_MS = 1000
/** How often a call of a command that makes many may fail: for about a minute, so that a server can restart. */
export const BATCH_FAILURES = 13

/** Headers by which the server knows the command line. */
const doorHeaders = (version: string): Record<string, string> => ({
  'User-Agent': `wcrm-cli/${version}`,
  'Wcrm-Door': 'cli',
})

/** What headers say of who calls. */
type Caller = Pick<ServerConnection, 'key' | 'version' | 'apiVersion'>

const toApiVersion = ({ apiVersion }: Caller): string | undefined =>
  apiVersion === null ? undefined : apiVersion || currentVersion

export const requestHeaders = (to: Caller): Record<string, string> => {
  const version = toApiVersion(to)
  return {
    ...doorHeaders(to.version),
    ...(to.key ? { Authorization: `Bearer ${to.key}` } : {}),
    ...(version === undefined ? {} : { 'Api-Version': version }),
  }
}

/** Returns what the client library needs to call the server as the command line. */
export const toSendOptions = (to: ServerConnection): SendOptions => ({
  url: to.url,
  apiKey: to.key || undefined,
  apiVersion: toApiVersion(to),
  headers: doorHeaders(to.version),
  fetch: (address, options) => sendRequest(to.io, address, options),
  timeoutMs: TIMEOUT_MS,
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

/** The problem of an answer: what the server sent, unless something else answered, such as a proxy. */
const toProblem = ({ status, code, problem }: WcrmError): CliProblem =>
  code !== 'unexpected_answer' && typeof problem['detail'] === 'string'
    ? (problem as CliProblem)
    : {
        type: 'about:blank',
        title: 'Unexpected response',
        status,
        code: 'unexpected',
        detail: `The response ${status} does not come from a wcrm server.`,
      }

/** Returns the error of a command for one of the client library; others as they are. */
export const toCliError = (error: unknown, url: string): unknown => {
  if (!isWcrmError(error)) return error
  const { status, idempotencyKey: key, retryAfterSeconds: seconds = 0 } = error
  if (status === 0) return unreachableError(url, error.cause, key)
  const problem = toProblem(error)
  const exitCode = status < 400 ? 1 : exitCodeForStatus(status)
  const hasKey = error.mayHaveHappened && problem['idempotency_key'] === undefined
  if (seconds === 0 && !hasKey)
    return cliError(exitCode, problem, problem.code === 'unexpected' ? undefined : error.body)
  const failure = cliError(exitCode, {
    ...problem,
    ...(seconds > 0 ? { retry_after: seconds } : {}),
    ...(hasKey ? { idempotency_key: key } : {}),
  })
  return seconds > 0 ? Object.assign(failure, { retryAfter: seconds }) : failure
}

const readClock = (headers: Answer['headers']): ServerClock | undefined => {
  const zone = headers.get('workspace-time-zone')
  const now = Date.parse(headers.get('workspace-time') ?? '')
  return zone !== null && Number.isFinite(now) ? { zone, now } : undefined
}

const toApiResponse = ({ status, headers, text, body }: Answer): ApiResponse => ({
  status,
  body: text,
  value: body,
  clock: readClock(headers),
  approvalId: headers.get('approval-id') ?? undefined,
})

/** Parses a response. Throws an error with the exit code of its status when it is not successful. */
export const parseResponse = async (
  response: HttpResponse,
  url: string,
  idempotencyKey?: string,
): Promise<ApiResponse> => {
  try {
    return toApiResponse(await readAnswer(response, idempotencyKey))
  } catch (error) {
    throw toCliError(error, url)
  }
}

/** Returns the seconds of the `Retry-After` header; undefined when there was none. */
export const retryAfterSeconds = (error: unknown): number | undefined =>
  (error as { retryAfter?: number }).retryAfter

/**
 * True when an established connection was reset, or the service is briefly unavailable: a retry at once may succeed,
 * and the idempotency key makes it safe.
 */
const isBrief = (error: WcrmError): boolean =>
  error.status === 0
    ? ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(
        (error.cause as { cause?: { code?: string } } | undefined)?.cause?.code ?? '',
      )
    : (error.status === 503 || error.status === 504) && mayPass(error)

/** What is said while a command waits: why, and for how many seconds. */
type OnWait = (reason: string, seconds: number) => void

const reportWaits = (url: string, onWait: OnWait): Required<Pick<RetryPolicy, 'onFailure'>> => ({
  onFailure: (error, _attempts, waitMs) => {
    if (waitMs === undefined) return
    const { problem } = toCliError(error, url) as CliError
    onWait(error.status === 429 ? 'Rate limited' : problem.title, Math.ceil(waitMs / 1000))
  },
})

/** With `--retry`: that many times, after the wait that the server names. Without it: once, after a short wait. */
const toPolicy = ({ io, url, retries }: ServerConnection): RetryPolicy =>
  retries === undefined
    ? { retries: 1, maxWaitMs: MAX_SILENT_WAIT_MS, isRetried: isBrief }
    : {
        retries,
        maxWaitMs: MAX_WAIT_MS,
        ...reportWaits(url, (reason, s) => io.stderr.write(`${reason}: trying again in ${s} s.\n`)),
      }

/**
 * Returns the policy of a call of a command that makes many: it waits for the rate limit as often as that refuses, and
 * for what else may pass as often as its other calls, or `failures` times. For one call.
 */
export const createPatientPolicy = (
  to: ServerConnection,
  {
    onWait = (reason, seconds) => void to.io.stderr.write(`${reason}: continuing in ${seconds} s.\n`),
    failures,
    isStopped = () => false,
  }: { onWait?: OnWait; failures?: number; isStopped?: () => boolean } = {},
): RetryPolicy => {
  let limited = 0
  const { retries = 1 } = to
  const single = to.retries === undefined ? isBrief : mayPass
  const isPassing = (error: WcrmError): boolean =>
    failures === undefined ? single(error) : error.status === 500 || mayPass(error)
  return {
    retries: Infinity,
    maxWaitMs: MAX_WAIT_MS,
    isRetried: (error, attempts) => {
      if (isStopped()) return false
      if (error.status !== 429) return attempts - limited <= (failures ?? retries) && isPassing(error)
      limited += 1
      return error.retryAfterSeconds !== undefined
    },
    ...reportWaits(to.url, onWait),
  }
}

/**
 * Calls an operation, and again under the same idempotency key when that may help. Throws an error with the exit
 * code of the last failure.
 */
export const callOperation = async (
  to: ServerConnection,
  operation: string,
  input: object,
  { idempotencyKey: key, policy, ...headers }: CallHeaders = {},
): Promise<ApiResponse> => {
  try {
    return toApiResponse(
      await sendCall(
        { ...toSendOptions(to), ...(policy ?? toPolicy(to)) },
        { ...headers, operation, input, key },
      ),
    )
  } catch (error) {
    headers.signal?.throwIfAborted()
    throw toCliError(error, to.url)
  }
}
