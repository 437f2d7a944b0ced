import { WcrmError } from './problem.ts'
import type { Approval, ErrorCode } from './types.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** One attempt of a call, for a log. `status`: 0 without an answer. Neither input nor answer is in it. */
export type Attempt = {
  readonly operation: string
  readonly attempt: number
  readonly status: number
  readonly milliseconds: number
  readonly requestId: string | undefined
  readonly idempotencyKey: string | undefined
  /** Milliseconds until the next attempt; undefined for the last. */
  readonly retryInMs: number | undefined
}

export type TransportOptions = {
  /** The address of the server, such as `https://crm.example.com`. */
  readonly url: string
  /** An API key: `wc_live_…`, or `wc_test_…`, which runs every change as a dry run. */
  readonly apiKey: string
  /** In place of the global `fetch`. */
  readonly fetch?: Fetch
  /** Attempts after the first, of reads and changes alike; 4 when absent. */
  readonly retries?: number
  /** Longest time of one attempt in milliseconds; 60,000 when absent. */
  readonly timeoutMs?: number
  /** The API version of all calls; that of the key when absent. */
  readonly apiVersion?: string
  /** Is told of each attempt when it has ended. */
  readonly onAttempt?: (attempt: Attempt) => void
}

export type CallOptions = {
  /** Ends the call. What it was doing may have happened: the error has the idempotency key. */
  readonly signal?: AbortSignal
}

/** A call as it is sent. `key`: the idempotency key of a change, the same for all attempts. */
export type Call = {
  readonly operation: string
  readonly input: object
  readonly key?: string | undefined
  readonly confirm?: string | undefined
  readonly reason?: string | undefined
  readonly plan?: string | undefined
  readonly signal?: AbortSignal | undefined
}

const RETRIED_STATUS = [429, 502, 503, 504]
const MAX_WAIT_MS = 60_000
const FIRST_WAIT_MS = 200
const LONGEST_BACKOFF_MS = 10_000

const joinUrl = (url: string, path: string): string => `${url.replace(/\/+$/, '')}${path}`

/** Waits; rejects when the signal does. */
export const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal!.reason as Error)
    }
    if (signal?.aborted) return reject(signal.reason as Error)
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })

const readRetryAfter = (headers: Headers): number | undefined => {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}

/** What the server asks for, else longer each time with a random part, so that clients do not come together. */
export const getWaitMs = (attempt: number, retryAfterSeconds: number | undefined): number =>
  retryAfterSeconds === undefined
    ? Math.min(LONGEST_BACKOFF_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.5 + Math.random() / 2)
    : Math.min(MAX_WAIT_MS, retryAfterSeconds * 1000)

const isRetried = ({ status, reason }: WcrmError): boolean =>
  status === 0 ||
  reason === 'still_running' ||
  (RETRIED_STATUS.includes(status) && reason !== 'outcome_unknown')

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readAnswer = async (response: Response, { key }: Call): Promise<Record<string, unknown>> => {
  const text = await response.text()
  const body = parse(text)
  const details = {
    status: response.status,
    requestId: response.headers.get('request-id') ?? undefined,
    idempotencyKey: key,
    retryAfterSeconds: readRetryAfter(response.headers),
  }
  if (response.ok && isRecord(body)) {
    if (response.status !== 202 || !isRecord(body['approval'])) return body
    throw new WcrmError({
      ...details,
      code: 'approval_required',
      message: String(body['next'] ?? 'A person decides on this call.'),
      approval: body['approval'] as unknown as Approval,
    })
  }
  if (isRecord(body) && typeof body['code'] === 'string')
    throw new WcrmError({
      ...details,
      code: body['code'] as ErrorCode,
      message: String(body['detail'] ?? body['title'] ?? body['code']),
      problem: body,
    })
  throw new WcrmError({
    ...details,
    code: 'unexpected_answer',
    message: `The answer is not one of the service: ${response.status} ${text.slice(0, 200)}`,
  })
}

const toHeaders = ({ apiKey, apiVersion }: TransportOptions, call: Call): Record<string, string> => ({
  Authorization: `Bearer ${apiKey}`,
  Accept: 'application/json',
  'Content-Type': 'application/json',
  ...(apiVersion === undefined ? {} : { 'Api-Version': apiVersion }),
  ...(call.key === undefined ? {} : { 'Idempotency-Key': call.key }),
  ...(call.confirm === undefined ? {} : { 'Api-Confirm': call.confirm }),
  ...(call.reason === undefined ? {} : { 'Api-Reason': encodeURIComponent(call.reason) }),
  ...(call.plan === undefined ? {} : { 'Api-Plan': call.plan }),
})

/** Sends a request with the signal of the call, and within the time of one attempt. */
const attempt = async (
  options: TransportOptions,
  call: Call,
): Promise<{ response: Response; answer: () => Promise<Record<string, unknown>> }> => {
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 60_000)
  const send = options.fetch ?? ((url, init) => fetch(url, init))
  const response = await send(joinUrl(options.url, `/v1/ops/${call.operation}`), {
    method: 'POST',
    headers: toHeaders(options, call),
    body: JSON.stringify(call.input),
    signal: call.signal ? AbortSignal.any([call.signal, timeout]) : timeout,
    redirect: 'error',
  })
  return { response, answer: () => readAnswer(response, call) }
}

const toError = (error: unknown, { key }: Call): WcrmError =>
  error instanceof WcrmError
    ? error
    : new WcrmError({
        status: 0,
        code: 'connection_failed',
        message: `No answer came: ${error instanceof Error ? error.message : String(error)}`,
        idempotencyKey: key,
        cause: error,
      })

/**
 * Sends a call until it is answered, at most `retries` times more than once, under one idempotency key. Throws a
 * `WcrmError`.
 */
export const sendCall = async (options: TransportOptions, call: Call): Promise<Record<string, unknown>> => {
  const { retries = 4, onAttempt } = options
  for (let n = 0; ; n++) {
    const began = Date.now()
    let status = 0
    let requestId: string | undefined
    const tell = (retryInMs?: number): void =>
      onAttempt?.({
        operation: call.operation,
        attempt: n + 1,
        status,
        milliseconds: Date.now() - began,
        requestId,
        idempotencyKey: call.key,
        retryInMs,
      })
    try {
      const { response, answer } = await attempt(options, call)
      status = response.status
      requestId = response.headers.get('request-id') ?? undefined
      const body = await answer()
      tell()
      return body
    } catch (cause) {
      const error = toError(cause, call)
      if (n >= retries || call.signal?.aborted || !isRetried(error)) {
        tell()
        throw error
      }
      const ms = getWaitMs(n, error.retryAfterSeconds)
      tell(ms)
      await wait(ms, call.signal).catch(() => {
        throw error
      })
    }
  }
}
