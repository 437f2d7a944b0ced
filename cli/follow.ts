import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { picked } from './answer.ts'
import { isFault } from './fault.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { type Connection, headersOf, replyOf, retryAfterOf, unreachable } from './remote.ts'
import { tsv } from './text.ts'

type Event = Readonly<Record<string, unknown>>
type Look = { readonly json: boolean; readonly picks?: readonly string[] | undefined }

/** The server says something every 15 seconds; a connection that is silent for longer is dead. */
const SILENT_MS = 45_000
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000

/** The messages of a stream of server-sent events (HTML, "Server-sent events"): those with data. */
async function* messagesOf(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ id?: string; data: string } | undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
    rest = blocks.pop()!
    // Also a sign of life that says nothing is one.
    yield undefined
    for (const block of blocks) {
      const of = (name: string): string[] =>
        block
          .split('\n')
          .flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []))
      const [id, data] = [of('id').at(-1), of('data')]
      if (data.length > 0) yield { ...(id === undefined ? {} : { id }), data: data.join('\n') }
    }
  }
}

const addressOf = (to: Connection, input: Event): string => {
  const query = new URLSearchParams()
  for (const name of ['after', 'types'])
    for (const value of [input[name] ?? []].flat()) query.append(name, String(value))
  return `${to.url}/v1/events${query.size > 0 ? `?${query}` : ''}`
}

/** Ends with Ctrl-C, or when whoever runs this process asks. */
const untilAsked = (): { signal: AbortSignal; done: () => void } => {
  const stop = new AbortController()
  const ask = (): void => stop.abort()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, ask)
  return {
    signal: stop.signal,
    done: () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, ask)
    },
  }
}

/** Whether asking again can help: the server is away or busy. */
const isPassing = (error: unknown): boolean => !isFault(error) || error.exit === 7 || error.exit === 8

/**
 * Prints events as they happen, one a line, from the oldest kept or after `after`. A connection that breaks
 * is made anew after the last event that was printed, so that none is missed or printed twice. Gives the
 * exit code 0 on Ctrl-C; throws what asking again does not mend.
 */
export const followEvents = async (
  io: Io,
  to: Connection,
  spec: CommandSpec,
  input: Event,
  { json, picks }: Look,
): Promise<number> => {
  const { signal, done } = untilAsked()
  const line = (event: Event): string =>
    json
      ? `${JSON.stringify(picks ? (picked(spec, { data: [event] }, picks)['data'] as Event[])[0] : event)}\n`
      : tsv([event], [...spec.output.columns, 'data'])
  let last: string | undefined
  let wait = FIRST_WAIT_MS

  const connect = async (): Promise<void> => {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), SILENT_MS)
    try {
      const response = await (io.fetch ?? fetch)(addressOf(to, input), {
        headers: {
          ...headersOf(to),
          Accept: 'text/event-stream',
          ...(last === undefined ? {} : { 'Last-Event-ID': last }),
        },
        redirect: 'error',
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (!response.ok || response.body === null) return void (await replyOf(response))
      for await (const message of messagesOf(response.body)) {
        timer.refresh()
        if (!message) continue
        if (!io.stdout.write(line(JSON.parse(message.data) as Event))) await once(io.stdout, 'drain')
        last = message.id ?? last
        wait = FIRST_WAIT_MS
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
        if (!isPassing(error)) throw error
        // A server that was never there is most likely a wrong address.
        if (!isFault(error) && last === undefined && wait === FIRST_WAIT_MS)
          throw unreachable(to.url, error, undefined)
        seconds = retryAfterOf(error)
      }
      if (signal.aborted) return 0
      await sleep(seconds === undefined ? wait * (0.75 + Math.random() / 2) : seconds * 1000, undefined, {
        signal,
      }).catch(() => {})
      if (signal.aborted) return 0
      wait = Math.min(LONGEST_WAIT_MS, wait * 2)
    }
  } finally {
    done()
  }
}
