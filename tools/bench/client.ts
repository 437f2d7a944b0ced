import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { WrkRequest } from './wrk.ts'

/**
 * A small HTTP client for loads that wrk cannot make: shorter than a second, or with the latency of each kind
 * of request. It takes more processor time per request than wrk, which is not measured, and reaches fewer requests
 * per second on the same machine.
 */
export type LoadClient = {
  /** Sends requests over all connections until so many are sent or the time is over. Returns their number. */
  run: (limit: { requests?: number; milliseconds?: number }) => Promise<number>
  close: () => void
}

type ClientOptions = {
  connections: number
  /** Returns the next request; the same object each time it is the same request. */
  next: () => WrkRequest
  /** Called with each response. */
  onResponse?: (request: WrkRequest, milliseconds: number) => void
}

const serialize = (host: string, { method = 'GET', path, headers = {}, body }: WrkRequest): string =>
  [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
    '',
    body ?? '',
  ].join('\r\n')

/** Returns the length of the response whose head is complete; throws when it is no success. */
const responseLength = (received: Buffer): number | undefined => {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.toString('latin1', 0, end)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)
  if (!head.startsWith('HTTP/1.1 2') || !length)
    throw new Error(`a request failed:\n${received.toString('utf8', 0, 1000)}`)
  return end + 4 + Number(length[1])
}

/** Reads responses from a connection, one after the other. */
const createExchange = (socket: Socket) => {
  let parts: Buffer[] = []
  let size = 0
  let length: number | undefined
  let settle: { resolve: () => void; reject: (error: Error) => void } | undefined
  const fail = (error: Error): void => {
    settle?.reject(error)
    settle = undefined
  }
  socket.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    size += chunk.length
    try {
      length ??= responseLength(parts.length === 1 ? chunk : Buffer.concat(parts))
    } catch (error) {
      return fail(error as Error)
    }
    if (length === undefined || size < length) return
    parts = []
    size = 0
    length = undefined
    settle?.resolve()
    settle = undefined
  })
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed a connection')))
  return (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      settle = { resolve, reject }
      socket.write(text)
    })
}

export const openLoadClient = async (
  url: string,
  { connections, next, onResponse }: ClientOptions,
): Promise<LoadClient> => {
  const { hostname, port, host } = new URL(url)
  const texts = new WeakMap<WrkRequest, string>()
  const toText = (request: WrkRequest): string => {
    const known = texts.get(request)
    if (known !== undefined) return known
    const text = serialize(host, request)
    texts.set(request, text)
    return text
  }
  const sockets = Array.from({ length: connections }, () =>
    connect({ host: hostname, port: Number(port), noDelay: true }),
  )
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const exchanges = sockets.map(createExchange)
  return {
    run: async ({ requests = Infinity, milliseconds = Infinity }) => {
      const startedAt = performance.now()
      let sent = 0
      await Promise.all(
        exchanges.map(async (exchange) => {
          while (sent < requests && performance.now() - startedAt < milliseconds) {
            sent++
            const request = next()
            const sentAt = performance.now()
            await exchange(toText(request))
            onResponse?.(request, performance.now() - sentAt)
          }
        }),
      )
      return sent
    },
    close: () => {
      for (const socket of sockets) socket.removeAllListeners('close').destroy()
    },
  }
}
