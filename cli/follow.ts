import { setTimeout as sleep } from 'node:timers/promises'
import { fault, isFault, usage } from './fault.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import { type Connection, headersOf, replyOf } from './remote.ts'
import { tsv } from './text.ts'

const PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 30_000

/** The messages of an event stream (WHATWG HTML, "Server-sent events"): id and data; comments keep the line open. */
export const messagesOf = async function* (body: AsyncIterable<Uint8Array>): AsyncGenerator<{ id: string | undefined; data: string }> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).replaceAll('\r\n', '\n').split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const lines = block.split('\n')
      const field = (name: string): string[] => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ''))
      const data = field('data').join('\n')
      if (data !== '') yield { id: field('id').at(-1), data }
    }
  }
}

/** The stream's address: only what chooses events; a list is the parameter repeated. */
const addressOf = (to: Connection, input: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(input)) {
    if (name === 'limit' || value === undefined || value === null) continue
    for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item))
  }
  return `${to.url}/v1/events?${query}`
}

const open = async (io: Io, to: Connection, address: string, last: string | undefined): Promise<Response> => {
  try {
    const response = await (io.fetch ?? fetch)(address, {
      headers: { ...headersOf(to), Accept: 'text/event-stream', ...(last ? { 'Last-Event-ID': last } : {}) }, redirect: 'error',
    })
    if (!response.ok) await replyOf(response)
    return response
  } catch (error) {
    if (isFault(error)) throw error
    throw fault(8, { type: 'about:blank', title: 'Server not reached', status: 503, code: 'unreachable', detail: `${to.url}: ${(error as Error).message}.` })
  }
}

/** An error that time may mend: the service away, or the rate limit. */
const mayPass = (error: unknown): boolean => !isFault(error) || error.exit === 7 || error.exit === 8

/**
 * Prints events as they happen, until it is stopped. The log is stored, and a lost connection goes on after the last event printed,
 * so nothing is missed; the waits between attempts grow. The first connection must stand, or the command fails.
 */
export const follow = async (io: Io, to: Connection, spec: CommandSpec, input: Readonly<Record<string, unknown>>, json: boolean): Promise<number> => {
  if (io.stdin.isTTY) io.stderr.write('Following; stop with Ctrl-C.\n')
  const address = addressOf(to, input)
  let last: string | undefined
  let response: Response | undefined = await open(io, to, address, last)
  for (let pause = PAUSE_MS; ;) {
    try {
      response ??= await open(io, to, address, last)
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw usage('This server does not stream events.', '--follow')
      for await (const { id, data } of messagesOf(response.body!)) {
        io.stdout.write(json ? `${data}\n` : tsv([JSON.parse(data) as Record<string, unknown>], spec.output.columns))
        last = id ?? last
        pause = PAUSE_MS
      }
    } catch (error) {
      if (!mayPass(error)) throw error
    }
    response = undefined
    io.stderr.write(`Connection lost; going on after the last event in ${pause / 1000} s.\n`)
    await sleep(pause)
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
  }
}
