import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A repeatable series of random numbers below 1. */
const createRandom = (seed: number) => (): number => {
  seed = (seed * 1103515245 + 12345) % 2 ** 31
  return seed / 2 ** 31
}

export type FaultyProxy = {
  readonly url: string
  /** How often each fault was made. */
  readonly faults: Readonly<Record<Fault, number>>
  readonly close: () => Promise<void>
}

type Fault = 'request lost' | 429 | 503 | 'answer lost' | 502 | 'stream cut'

const pickFault = (random: number): Fault | undefined => {
  if (random < 0.04) return 'request lost'
  if (random < 0.2) return 429
  if (random < 0.3) return 503
  if (random < 0.34) return 'answer lost'
  return random < 0.42 ? 502 : undefined
}

/** Streams that are cut, each after two events; the second one is cut at once. */
const CUT_STREAMS = 3
const EVENTS_OF_CUT_STREAM = 2

/** Forwards a stream. Returns false when it has to be cut. */
const forwardStream = async (answer: Response, to: ServerResponse, isCut: boolean): Promise<boolean> => {
  let events = 0
  const decoder = new TextDecoder()
  to.writeHead(answer.status, { 'content-type': answer.headers.get('content-type')! }).flushHeaders()
  for await (const chunk of answer.body!) {
    to.write(chunk)
    if (isCut && decoder.decode(chunk).includes('data:') && ++events === EVENTS_OF_CUT_STREAM) return false
  }
  to.end()
  return true
}

/**
 * Starts a proxy before a server that loses requests and answers, answers for the server, also after it acted, and
 * cuts event streams. `serve` answers what is not forwarded; it returns true for that.
 */
export const startFaultyProxy = async (
  target: string,
  seed: number,
  serve: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<FaultyProxy> => {
  const random = createRandom(seed)
  const faults = { 'request lost': 0, 429: 0, 503: 0, 'answer lost': 0, 502: 0, 'stream cut': 0 }
  let streams = 0

  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const isStream = request.headers.accept === 'text/event-stream'
    const fault = isStream ? undefined : pickFault(random())
    const lose = (name: Fault): void => {
      faults[name] += 1
      request.socket.destroy()
    }
    const answerFor = (status: 429 | 502 | 503): void => {
      faults[status] += 1
      response.writeHead(status, { 'Retry-After': '0', 'Content-Type': 'text/html' }).end('<html>')
    }
    const body = await buffer(request)
    if (fault === 'request lost') return lose(fault)
    if (fault === 429 || fault === 503) return answerFor(fault)
    if (isStream && ++streams === 2) return lose('stream cut')
    const { host: _, connection: __, 'content-length': ___, ...headers } = request.headers
    const end = new AbortController()
    response.on('close', () => end.abort())
    const answer = await fetch(`${target}${request.url}`, {
      method: request.method!,
      headers: headers as Record<string, string>,
      ...(body.length === 0 ? {} : { body }),
      signal: end.signal,
    })
    if (isStream && answer.ok) {
      if (!(await forwardStream(answer, response, streams <= CUT_STREAMS))) lose('stream cut')
      return
    }
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (fault === 'answer lost') return lose(fault)
    if (fault === 502) return answerFor(fault)
    const {
      'content-encoding': ____,
      'transfer-encoding': _____,
      ...others
    } = Object.fromEntries(answer.headers)
    response.writeHead(answer.status, { ...others, 'content-length': bytes.length }).end(bytes)
  }

  const server = createServer((request, response) => {
    if (serve(request, response)) return
    forward(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
