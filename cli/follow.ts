import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { pickFields } from './output.ts'
import { isCliError } from './error.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import {
  type ServerConnection,
  requestHeaders,
  parseResponse,
  retryAfterSeconds,
  unreachableError,
} from './remote.ts'
import { formatTsv } from './text.ts'

type Event = Readonly<Record<string, unknown>>
type FollowOptions = { readonly json: boolean; readonly picks?: readonly string[] | undefined }

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

const buildStreamUrl = (to: ServerConnection, input: Event): string => {
  const query = new URLSearchParams()
  for (const name of ['after', 'types'])
    for (const value of [input[name] ?? []].flat()) query.append(name, String(value))
  return `${to.url}/v1/events${query.size > 0 ? `?${query}` : ''}`
}

/** A signal that is aborted on Ctrl-C and on SIGTERM. */
const abortOnStop = (): { signal: AbortSignal; unsubscribe: () => void } => {
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, abort)
  return {
    signal: stop.signal,
    unsubscribe: () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, abort)
    },
  }
}

/** Whether a retry can help: the server is unreachable or busy. */
const isTransient = (error: unknown): boolean =>
  !isCliError(error) || error.exitCode === 7 || error.exitCode === 8

/**
 * Prints events as they happen, one per line, from the oldest one or after `after`. It reconnects after the
 * last event that was printed, so that none is missed or printed twice. Returns the exit code 0 on Ctrl-C;
 * throws an error that a retry does not fix.
 */
export const followEvents = async (
  io: Io,
  to: ServerConnection,
  spec: CommandSpec,
  input: Event,
  { json, picks }: FollowOptions,
): Promise<number> => {
  const { signal, unsubscribe } = abortOnStop()
  const formatEvent = (event: Event): string => {
    if (!json) return formatTsv([event], [...spec.output.columns, 'data'])
    const shown = picks ? (pickFields(spec, { data: [event] }, picks)['data'] as Event[])[0] : event
    return `${JSON.stringify(shown)}\n`
  }
  let lastId: string | undefined
  let retryMs = MIN_RETRY_MS

  const connect = async (): Promise<void> => {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS)
    try {
      const response = await (io.fetch ?? fetch)(buildStreamUrl(to, input), {
        headers: {
          ...requestHeaders(to),
          Accept: 'text/event-stream',
          ...(lastId === undefined ? {} : { 'Last-Event-ID': lastId }),
        },
        redirect: 'error',
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (!response.ok || response.body === null) return void (await parseResponse(response))
      for await (const message of readEvents(response.body, () => timer.refresh())) {
        if (!io.stdout.write(formatEvent(JSON.parse(message.data) as Event))) await once(io.stdout, 'drain')
        lastId = message.id ?? lastId
        retryMs = MIN_RETRY_MS
      }
    } finally {
      clearTimeout(timer)
    }
  }

  try {
    for (;;) {
      let seconds: number | undefined
      try {
        await connect()
      } catch (error) {
        if (signal.aborted) return 0
        if (!isTransient(error)) throw error
        // A server that never answered most likely has another URL.
        if (!isCliError(error) && lastId === undefined && retryMs === MIN_RETRY_MS)
          throw unreachableError(to.url, error, undefined)
        seconds = retryAfterSeconds(error)
      }
      if (signal.aborted) return 0
      await sleep(seconds === undefined ? retryMs * (0.75 + Math.random() / 2) : seconds * 1000, undefined, {
        signal,
      }).catch(() => {})
      if (signal.aborted) return 0
      retryMs = Math.min(MAX_RETRY_MS, retryMs * 2)
    }
  } finally {
    unsubscribe()
  }
}
