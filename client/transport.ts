import { type Answer, type Connection, readAnswer, sendRequest } from './request.ts'
import { retry, type RetryPolicy } from './retry.ts'

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

type CallSettings = {
  /** Longest time of one attempt in milliseconds; 60,000 when absent. */
  readonly timeoutMs?: number
  /** Is told of each attempt when it has ended. */
  readonly onAttempt?: (attempt: Attempt) => void
}

export type TransportOptions = Connection &
  Pick<RetryPolicy, 'retries' | 'maxWaitMs'> &
  CallSettings & {
    /** An API key: `wc_live_…`, or `wc_test_…`, which runs every change as a dry run. */
    readonly apiKey: string
  }

/** How the service is called by the library, the command line and the MCP bridge alike. */
export type SendOptions = Connection & RetryPolicy & CallSettings

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

const toHeaders = (call: Call): Record<string, string> => ({
  Accept: 'application/json',
  'Content-Type': 'application/json',
  ...(call.key === undefined ? {} : { 'Idempotency-Key': call.key }),
  ...(call.confirm === undefined ? {} : { 'Api-Confirm': call.confirm }),
  ...(call.reason === undefined
    ? {}
    : { 'Api-Reason': encodeURIComponent(String(call.reason).toWellFormed()) }),
  ...(call.plan === undefined ? {} : { 'Api-Plan': call.plan }),
})

/**
 * Sends a call until it is answered, at most `retries` times more than once, under one idempotency key. Throws a
 * `WcrmError`.
 */
export const sendCall = async (options: SendOptions, call: Call): Promise<Answer> => {
  const { timeoutMs = 60_000, onAttempt, onFailure } = options
  let began = 0
  const tell = (
    attempt: number,
    { status, requestId }: Pick<Attempt, 'status' | 'requestId'>,
    retryInMs?: number,
  ): void =>
    onAttempt?.({
      operation: call.operation,
      attempt,
      status,
      milliseconds: Date.now() - began,
      requestId,
      idempotencyKey: call.key,
      retryInMs,
    })
  const policy: RetryPolicy = {
    ...options,
    onFailure: (error, attempt, retryInMs) => {
      tell(attempt, error, retryInMs)
      onFailure?.(error, attempt, retryInMs)
    },
  }
  return await retry(policy, call.signal, async (attempt) => {
    began = Date.now()
    const response = await sendRequest(options, {
      path: `/v1/ops/${call.operation}`,
      method: 'POST',
      headers: toHeaders(call),
      body: JSON.stringify(call.input),
      key: call.key,
      signal: call.signal,
      timeoutMs,
    })
    const answer = await readAnswer(response, call.key)
    tell(attempt, { status: answer.status, requestId: answer.headers.get('request-id') ?? undefined })
    return answer
  })
}
