import { readEvents } from './event-stream.ts'
import { WcrmError } from './problem.ts'
import { type FetchResponse, sendRequest, toConnectionError } from './request.ts'
import { getWaitMs, wait } from './retry.ts'
import { sendCall, type SendOptions } from './transport.ts'
import type { Event } from './types.ts'

export type StreamOptions = {
  /** Events after this one; `now`: from now on; all that are kept when absent. */
  readonly after?: string
  /** In place of `after`: events from this time on (RFC 3339). */
  readonly from?: string
  /**
   * Begin after the event that this consumer acknowledged last, instead of `after`, where there is one. Acknowledge
   * with `events.ack`.
   */
  readonly consumer?: string
  /** Only these types, with or without their version. */
  readonly types?: readonly string[]
  /** Ends the stream. */
  readonly signal?: AbortSignal
}

/** What the command line adds. */
export type StreamControl = {
  /** Hears when the connection is there, and when it was lost. */
  readonly onConnection?: (isConnected: boolean) => void
  /** A server that was never reached ends the stream: most likely it has another address. */
  readonly requiresFirst?: boolean
}

/** A connection that is silent for longer is cut: the server sends something every 15 seconds. */
const SILENCE_MS = 45_000

/** Returns what the work does; rejects when the signal does, whether or not the work heeds it. */
const until = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  let stop = (): void => {}
  const end = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
  return Promise.race([work, end]).finally(() => signal.removeEventListener('abort', stop))
}

/** The end of the log, looked up once: after a lost connection it would be another one. */
const findNewest = async (options: SendOptions, signal: AbortSignal): Promise<string | undefined> => {
  const call = { operation: 'events_list', input: { after: 'now' }, signal }
  const { body } = await sendCall({ ...options, retries: 0 }, call)
  return (body['next_cursor'] as string | null) ?? undefined
}

/** Opens a stream. Throws also when the answer is none. */
const open = async (
  options: SendOptions,
  { after, from, consumer, types = [] }: StreamOptions,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<NonNullable<FetchResponse['body']>> => {
  const query = new URLSearchParams([
    ...(after === undefined ? [] : [['after', after]]),
    ...(from === undefined ? [] : [['from', from]]),
    // Only where the first connection begins: what was yielded is not acknowledged yet.
    ...(consumer === undefined || lastId !== undefined ? [] : [['consumer', consumer]]),
    ...types.map((type) => ['types', type]),
  ] as [string, string][]).toString()
  const { status, headers, body } = await sendRequest(options, {
    path: `/v1/events${query === '' ? '' : `?${query}`}`,
    headers: {
      Accept: 'text/event-stream',
      ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
    },
    signal,
  })
  if (body && headers.get('content-type')?.startsWith('text/event-stream')) return body
  throw new WcrmError({
    status,
    code: 'unexpected_answer',
    message: `The answer is not a stream of events: ${status}`,
  })
}

/** What no later attempt answers otherwise: a key, a right or an event that is not there. */
const isFinal = (error: WcrmError): boolean =>
  error.status >= 400 && error.status < 500 && error.status !== 429

/** Whether the server did not answer as the service does. */
const isElsewhere = ({ code }: WcrmError): boolean =>
  code === 'connection_failed' || code === 'unexpected_answer'

/**
 * Yields events as they happen, each once and in their order. A connection that breaks is opened again, after the
 * last event, for as long as it takes; only the signal and an answer that is final end it.
 */
export async function* streamEvents(
  options: SendOptions,
  { signal, after: given, ...stream }: StreamOptions = {},
  { onConnection, requiresFirst = false }: StreamControl = {},
): AsyncGenerator<Event, void, undefined> {
  let after = given
  let lastId: string | undefined
  let isKnown = false
  const isOver = (): boolean => signal?.aborted === true

  async function* connect(): AsyncGenerator<Event, void, undefined> {
    const ends = new AbortController()
    const end = signal ? AbortSignal.any([signal, ends.signal]) : ends.signal
    const limit = async <T>(work: Promise<T>): Promise<T> => {
      const silent = new Error('The stream was silent for too long.')
      const timer = setTimeout(() => ends.abort(silent), SILENCE_MS)
      return await until(work, end).finally(() => clearTimeout(timer))
    }
    try {
      if (after === 'now') after = await limit(findNewest(options, end))
      const body = await limit(
        open(options, { ...stream, ...(after === undefined ? {} : { after }) }, lastId, end),
      )
      isKnown = true
      onConnection?.(true)
      for await (const { id, data } of readEvents(body, limit)) {
        if (data === '' || id === undefined || id === lastId) continue
        const event = JSON.parse(data) as Event
        lastId = id
        yield event
      }
    } finally {
      ends.abort()
    }
  }

  for (let failures = 0; !isOver();) {
    let retryAfter: number | undefined
    const openedAt = Date.now()
    try {
      for await (const event of connect()) {
        failures = 0
        yield event
      }
    } catch (cause) {
      if (isOver()) return
      const error = toConnectionError(cause)
      if (isFinal(error) || (requiresFirst && !isKnown && isElsewhere(error))) throw error
      retryAfter = error.retryAfterSeconds
    }
    if (isOver()) return
    onConnection?.(false)
    // A connection that lasted was a good one, whether or not something happened.
    if (Date.now() - openedAt > SILENCE_MS) failures = 0
    await wait(getWaitMs(failures++, retryAfter), signal).catch(() => {})
  }
}
