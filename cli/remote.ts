import { setTimeout as sleep } from 'node:timers/promises'
import { exitOf, type Fault, fault, type ProblemLike } from './fault.ts'
import type { Io } from './io.ts'

export type Connection = {
  readonly url: string
  readonly key: string | undefined
  readonly version: string
  readonly apiVersion?: string | undefined
}

export type Sent = { readonly idempotencyKey?: string | undefined; readonly confirm?: string | undefined }

/** A success: the body's text as it came, and what it says. */
export type Reply = {
  readonly status: number
  readonly body: string
  readonly value: Record<string, unknown>
}

/** Long enough for a submission to the provider; the server's own deadlines come first. */
const TIMEOUT_MS = 120_000

export const headersOf = ({ key, version, apiVersion }: Connection): Record<string, string> => ({
  'User-Agent': `wcrm-cli/${version}`,
  'Wcrm-Door': 'cli',
  ...(key ? { Authorization: `Bearer ${key}` } : {}),
  ...(apiVersion ? { 'Api-Version': apiVersion } : {}),
})

const causeOf = (error: unknown): string => {
  const { cause, message, name } = error as Error & { cause?: { code?: string; message?: string } }
  return name === 'TimeoutError'
    ? `no answer within ${TIMEOUT_MS / 1000} seconds`
    : (cause?.code ?? cause?.message ?? message)
}

/** No answer came: exit code 8, with the key under which a change may be sent again. */
export const unreachable = (url: string, error: unknown, key: string | undefined): Fault =>
  fault(8, {
    type: 'about:blank',
    title: 'Server not reached',
    status: 503,
    code: 'unreachable',
    detail: `${url}: ${causeOf(error)}.`,
    ...(key ? { idempotency_key: key } : {}),
  })

const post = async (
  io: Io,
  to: Connection,
  operation: string,
  input: object,
  sent: Sent,
): Promise<Response> =>
  (io.fetch ?? fetch)(`${to.url}/v1/ops/${operation}`, {
    method: 'POST',
    headers: {
      ...headersOf(to),
      'Content-Type': 'application/json',
      Accept: 'application/json',
      ...(sent.idempotencyKey ? { 'Idempotency-Key': sent.idempotencyKey } : {}),
      ...(sent.confirm ? { 'Api-Confirm': sent.confirm } : {}),
    },
    body: JSON.stringify(input),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })

/**
 * A connection cut off after it stood: the call may or may not have run, and its idempotency key makes
 * asking again safe.
 */
const isCut = (error: unknown): boolean =>
  ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(
    (error as { cause?: { code?: string } }).cause?.code ?? '',
  )

const problemOf = (text: string, response: Response): ProblemLike => {
  try {
    const value = JSON.parse(text) as ProblemLike
    if (typeof value.code === 'string' && typeof value.detail === 'string') return value
  } catch {
    /* Not ours: a proxy's page, for example. */
  }
  return {
    type: 'about:blank',
    title: 'Unexpected answer',
    status: response.status,
    code: 'unexpected',
    detail: `The server answered ${response.status} ${response.statusText}, and not as this service does.`,
  }
}

/** A success, or a fault with the exit code of the answer's status. */
export const replyOf = async (response: Response): Promise<Reply> => {
  const body = await response.text()
  if (response.ok) {
    try {
      return { status: response.status, body, value: JSON.parse(body) as Record<string, unknown> }
    } catch {
      throw fault(1, problemOf(body, response))
    }
  }
  const problem = problemOf(body, response)
  const seconds = Number(response.headers.get('retry-after'))
  const wait = Number.isFinite(seconds) && seconds > 0 ? { retryAfter: seconds } : {}
  throw Object.assign(
    fault(exitOf(response.status), problem, problem.code === 'unexpected' ? undefined : body),
    wait,
  )
}

/** Seconds that the server asked to wait, if it did. */
export const retryAfterOf = (error: unknown): number | undefined =>
  (error as { retryAfter?: number }).retryAfter

const isBrief = (response: Response, text: string): boolean =>
  response.status === 504 || (response.status === 503 && !text.includes('"service_unconfigured"'))

/**
 * One call of an operation. Sent once more, under the same key, when the connection is cut or the service
 * is briefly away.
 */
export const callOperation = async (
  io: Io,
  to: Connection,
  operation: string,
  input: object,
  sent: Sent = {},
): Promise<Reply> => {
  const attempt = async (last: boolean): Promise<Reply | undefined> => {
    let response: Response
    try {
      response = await post(io, to, operation, input, sent)
      if (!last && isBrief(response, await response.clone().text())) return undefined
      return await replyOf(response)
    } catch (error) {
      if (error instanceof Error && 'problem' in error) throw error
      if (!last && isCut(error)) return undefined
      throw unreachable(to.url, error, sent.idempotencyKey)
    }
  }
  const first = await attempt(false)
  if (first) return first
  await sleep(300)
  return (await attempt(true))!
}
