import { setTimeout as sleep } from 'node:timers/promises'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { isCliError } from './error.ts'
import type { Io } from './io.ts'
import {
  callOperation,
  type ServerConnection,
  requestHeaders,
  parseResponse,
  retryAfterSeconds,
  unreachableError,
} from './remote.ts'
import { sendRequest } from './transport.ts'

export type StreamedEvent = Readonly<Record<string, unknown>>

/** The server sends a heartbeat every 15 seconds; a connection that is silent for longer is dead. */
const MAX_SILENCE_MS = 45_000
const MIN_RETRY_MS = 500
const MAX_RETRY_MS = 30_000

/** Yields the events of a `text/event-stream` body. `onChunk` hears every chunk, comments included. */
async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  onChunk: () => void,
): AsyncGenerator<EventSourceMessage> {
  const events: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => events.push(event) })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    onChunk()
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
  }
}

const buildStreamUrl = (to: ServerConnection, input: StreamedEvent): string => {
  const query = new URLSearchParams()
  for (const name of ['after', 'types'])
    for (const value of [input[name] ?? []].flat()) query.append(name, String(value))
  return `${to.url}/v1/events${query.size > 0 ? `?${query}` : ''}`
}

/** Whether a retry can help: the server is unreachable or busy. */
const isTransient = (error: unknown): boolean =>
  !isCliError(error) || error.exitCode === 7 || error.exitCode === 8

const findNewestEvent = async (io: Io, to: ServerConnection): Promise<unknown> =>
  (await callOperation(io, to, 'events_list', { after: 'now' })).value['next_cursor'] ?? undefined

type StreamOptions = {
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** Hears when the connection is there, and when it was lost. */
  readonly onConnection?: (isConnected: boolean) => void
}

/**
 * Yields events as they happen: from the oldest one, or after `input.after`. It reconnects after the last event
 * that was taken, so that none is missed or yielded twice. Ends when the signal is aborted; throws an error that a
 * retry does not fix, and when the first connection fails, since a server that never answered most likely has
 * another URL.
 */
export async function* streamEvents(
  io: Io,
  to: ServerConnection,
  input: StreamedEvent,
  { signal, onConnection = () => {} }: StreamOptions,
): AsyncGenerator<StreamedEvent> {
  // The end of the log is looked up once: after a lost connection, it would be another one.
  const after = input['after'] === 'now' ? await findNewestEvent(io, to) : input['after']
  let lastId: string | undefined
  let isKnown = false
  let retryMs = MIN_RETRY_MS

  async function* connect(): AsyncGenerator<StreamedEvent> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS)
    try {
      const response = await sendRequest(io, buildStreamUrl(to, { ...input, after }), {
        headers: {
          ...requestHeaders(to),
          Accept: 'text/event-stream',
          ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
        },
        redirect: 'error',
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (!response.ok || response.body === null) return void (await parseResponse(response))
      isKnown = true
      onConnection(true)
      for await (const message of readEvents(response.body, () => timer.refresh())) {
        yield JSON.parse(message.data) as StreamedEvent
        lastId = message.id ?? lastId
        retryMs = MIN_RETRY_MS
      }
    } finally {
      clearTimeout(timer)
    }
  }

  for (;;) {
    let seconds: number | undefined
    try {
      yield* connect()
    } catch (error) {
      if (signal.aborted) return
      if (!isTransient(error)) throw error
      if (!isCliError(error) && !isKnown) throw unreachableError(to.url, error, undefined)
      seconds = retryAfterSeconds(error)
    }
    if (signal.aborted) return
    onConnection(false)
    const delay = seconds === undefined ? retryMs * (0.75 + Math.random() / 2) : seconds * 1000
    await sleep(delay, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    retryMs = Math.min(MAX_RETRY_MS, retryMs * 2)
  }
}
