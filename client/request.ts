import { WcrmError } from './problem.ts'
import type { ErrorCode } from './types.ts'

/** What is used of the options of `fetch`. */
export type FetchOptions = {
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** A redirection is an error: the key is for this server. */
  readonly redirect: 'error'
  readonly signal?: AbortSignal
}

/** What is used of a `Response`. */
export type FetchResponse = {
  readonly status: number
  /** The status is 200 to 299. */
  readonly ok: boolean
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | null
  text(): Promise<string>
}

/** A `fetch`; the global one of Node, Deno, Bun and browsers fits, and so does a smaller one. */
export type Fetch = (url: string, options: FetchOptions) => Promise<FetchResponse>

/** A server, and how requests reach it. */
export type Connection = {
  /** The address of the server, such as `https://crm.example.com`. */
  readonly url: string
  readonly apiKey?: string | undefined
  /** In place of the global `fetch`. */
  readonly fetch?: Fetch | undefined
  /** The API version of all calls; the one whose types the library has when absent. */
  readonly apiVersion?: string | undefined
  /** Headers of all requests, beside those of the client. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request of a path of the server. `key`: the idempotency key of a change, which its errors have. */
type Request = {
  readonly path: string
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly key?: string | undefined
  readonly signal?: AbortSignal | undefined
  /** Longest time until the answer was read, in milliseconds. */
  readonly timeoutMs?: number | undefined
}

/** An answer that is no failure. */
export type Answer = {
  readonly status: number
  readonly headers: FetchResponse['headers']
  /** The body as it was received. */
  readonly text: string
  readonly body: Record<string, unknown>
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The service says seconds; a proxy may say a date (RFC 9110). One in the past is of another clock. */
const readRetryAfter = (headers: FetchResponse['headers']): number | undefined => {
  const text = headers.get('retry-after')?.trim() ?? ''
  const seconds = text.endsWith('GMT')
    ? Math.ceil((Date.parse(text) - Date.now()) / 1000) || Number.NaN
    : Number(text || Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}

/**
 * A key with other characters than a header holds is wrong, and the server says so; `fetch` would only fail, as if no
 * server was there.
 */
const toHeaderValue = (value: string): string =>
  String(value)
    .trim()
    .toWellFormed()
    .replace(/[^\t\x20-\x7e\x80-\xff]/gu, (character) => encodeURIComponent(character))

/** Why no answer came. The `fetch` of Node says so in the cause alone, and of several addresses in its code alone. */
const describe = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const { message, code } = isRecord(error.cause) ? error.cause : {}
  const cause = [message, code].find((text) => typeof text === 'string' && text !== '')
  return cause === undefined || error.message.includes(cause as string)
    ? error.message
    : `${error.message}: ${cause as string}`
}

/** Returns the error for an answer that did not come. */
export const toConnectionError = (error: unknown, key?: string): WcrmError =>
  error instanceof WcrmError
    ? error
    : new WcrmError({
        status: 0,
        code: 'connection_failed',
        message: `No response: ${describe(error)}`,
        idempotencyKey: key,
        cause: error,
      })

/**
 * Reads an answer to its end. Throws a `WcrmError` when it is a failure, is not one of the service, or is cut.
 */
export const readAnswer = async (response: FetchResponse, key?: string): Promise<Answer> => {
  const { status, headers } = response
  const text = await response.text().catch((error: unknown) => {
    throw toConnectionError(error, key)
  })
  const body = parse(text)
  if (response.ok && isRecord(body)) return { status, headers, text, body }
  const details = {
    status,
    body: text,
    requestId: headers.get('request-id') ?? undefined,
    idempotencyKey: key,
    retryAfterSeconds: readRetryAfter(headers),
  }
  if (!response.ok && isRecord(body) && typeof body['code'] === 'string')
    throw new WcrmError({
      ...details,
      code: body['code'] as ErrorCode,
      message: String(body['detail'] ?? body['title'] ?? body['code']),
      problem: body,
    })
  throw new WcrmError({
    ...details,
    code: 'unexpected_answer',
    message: `The answer is not one of the service: ${status} ${text.slice(0, 200)}`,
  })
}

/** Sends a request once. Returns its answer unread; throws a `WcrmError` when that is a failure or none came. */
export const sendRequest = async (connection: Connection, request: Request): Promise<FetchResponse> => {
  const { url, apiKey, apiVersion, fetch: given, headers: others } = connection
  const { path, method, headers, body, key, signal, timeoutMs } = request
  const send: Fetch = given ?? ((address, options) => fetch(address, options))
  const ends = [
    ...(signal ? [signal] : []),
    ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)]),
  ]
  const own = Object.fromEntries(
    Object.entries({
      ...(apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }),
      ...(apiVersion === undefined ? {} : { 'Api-Version': apiVersion }),
      ...headers,
    }).map(([name, value]) => [name, toHeaderValue(value)]),
  )
  const response = await send(`${url.replace(/\/+$/, '')}${path}`, {
    ...(method === undefined ? {} : { method }),
    headers: { ...others, ...own },
    ...(body === undefined ? {} : { body }),
    redirect: 'error',
    ...(ends.length === 0 ? {} : { signal: ends.length === 1 ? ends[0]! : AbortSignal.any(ends) }),
  }).catch((error: unknown) => {
    throw toConnectionError(error, key)
  })
  // A failure throws.
  if (!response.ok) await readAnswer(response, key)
  return response
}
