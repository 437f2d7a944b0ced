import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { isWcrmError, WcrmError } from './problem.ts'
import { getWaitMs, type TransportOptions, wait } from './transport.ts'
import type { Event } from './types.ts'

export type StreamOptions = {
  /** Events after this one; `now`: from now on; all that are kept when absent. */
  readonly after?: string
  /** Only these types, with or without their version. */
  readonly types?: readonly string[]
  /** Ends the stream. */
  readonly signal?: AbortSignal
}

/** A connection that is silent for longer is cut: the server sends something every 15 seconds. */
const SILENCE_MS = 60_000

/** Reads the chunks of a body; rejects when none comes for too long. */
async function* readChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader()
  try {
    for (;;) {
      let timer: ReturnType<typeof setTimeout> | undefined
      const silence = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error('The stream was silent for too long.')), SILENCE_MS)
      })
      const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const open = async (
  { url, apiKey, apiVersion, fetch: given }: TransportOptions,
  { types, signal }: StreamOptions,
  after: string | undefined,
): Promise<Response> => {
  const query = new URLSearchParams([
    ...(after === undefined ? [] : [['after', after]]),
    ...(types ?? []).map((type) => ['types', type]),
  ] as [string, string][])
  const send = given ?? ((address: string, init: RequestInit) => fetch(address, init))
  const response = await send(`${url.replace(/\/+$/, '')}/v1/events?${query.toString()}`, {
    headers: {
      Authorization: `Bearer ${apiKey}`,
      Accept: 'text/event-stream',
      ...(apiVersion === undefined ? {} : { 'Api-Version': apiVersion }),
    },
    redirect: 'error',
    ...(signal ? { signal } : {}),
  })
  if (response.ok && response.headers.get('content-type')?.startsWith('text/event-stream')) return response
  const problem = (await response.json().catch(() => ({}))) as Record<string, unknown>
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  throw new WcrmError({
    status: response.status,
    code: (problem['code'] as WcrmError['code'] | undefined) ?? 'unexpected_answer',
    message: String(problem['detail'] ?? `The server answered ${response.status}.`),
    problem,
    requestId: response.headers.get('request-id') ?? undefined,
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
  })
}

/** What no later attempt answers otherwise: a key, a right or an event that is not there. */
const isFinal = (error: unknown): boolean =>
  isWcrmError(error) && error.status >= 400 && error.status < 500 && error.status !== 429

/**
 * Yields events as they happen, each once and in their order. A connection that breaks is opened again, after the
 * last event, for as long as it takes; only the signal and an answer that is final end it.
 */
export async function* streamEvents(
  options: TransportOptions,
  stream: StreamOptions = {},
): AsyncGenerator<Event, void, undefined> {
  const { signal } = stream
  let after = stream.after
  const isOver = (): boolean => signal?.aborted === true
  for (let failures = 0; !isOver();) {
    let retryAfter: number | undefined
    try {
      const response = await open(options, stream, after)
      const received: EventSourceMessage[] = []
      const parser = createParser({ onEvent: (message) => void received.push(message) })
      const decoder = new TextDecoder()
      for await (const chunk of readChunks(response.body!)) {
        parser.feed(decoder.decode(chunk, { stream: true }))
        failures = 0
        for (const { id, data } of received.splice(0)) {
          // Not an event of the log; it tells where to go on.
          if (data === '' || id === undefined || id === after) continue
          after = id
          yield JSON.parse(data) as Event
        }
      }
    } catch (error) {
      if (isOver()) return
      if (isFinal(error)) throw error
      retryAfter = isWcrmError(error) ? error.retryAfterSeconds : undefined
    }
    await wait(getWaitMs(Math.min(failures++, 6), retryAfter), signal).catch(() => {})
  }
}
