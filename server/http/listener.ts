import type { Reason } from '../../catalog/reasons.ts'
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { BlockList, Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { logRefusal } from '../kernel/log-call.ts'
import { Problem } from '../kernel/problem.ts'
import { toProblemResponse, toProblemResult } from '../kernel/respond.ts'
import { createRequestId } from '../ids.ts'
import { containsAddress } from '../network/addresses.ts'
import { isAdmitted, parseAddress } from './address.ts'
import { nodeHandler, type NodeHandler } from './node.ts'

type ListenerOptions = {
  /** Base of the URLs in problems. */
  publicUrl: string
  log: Pick<Logger, 'error' | 'info'>
  maxConnections?: number
  /** Proxies, whose connections are those of many clients. */
  trustedProxies?: BlockList | undefined
}

/** A server of node:http whose requests are answered by `handle`, and which can be stopped. */
export type Listener = {
  /** Sets what answers requests. Before, and once `drain` has begun, they get a 503. */
  serve: (handle: NodeHandler) => void
  /**
   * Accepts no new connections, waits for the requests in flight, even those whose client has gone, and ends
   * what is left after a while. With `isStillServed`, requests to these paths are answered while the others
   * are waited for.
   */
  drain: (isStillServed?: (path: string) => boolean) => Promise<void>
}

/** A client whose request line and headers take longer is taken to be hostile or gone. */
const HEADERS_TIMEOUT_MS = 15_000
/** How often node:http looks for requests that took too long; it takes that when the server is created. */
export const serverOptions = { connectionsCheckingInterval: 1_000 }
/** A whole request: 24 MiB at 2 Mbit/s. */
const REQUEST_TIMEOUT_MS = 100_000
/** Longer than the 60 seconds after which common proxies close idle connections themselves. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000
/** A connection without a byte in either direction; event streams send a heartbeat more often. */
const SILENCE_TIMEOUT_MS = 120_000
const MAX_HEADERS = 200
export const DEFAULT_MAX_CONNECTIONS = 2_000
/** The part of all connections that one address may have. */
const ADDRESS_SHARE = 0.25
const DRAIN_TIMEOUT_MS = 15_000
/** For handlers whose connection was closed. */
const ABORT_TIMEOUT_MS = 2_000
/** How long a client may go on sending after a refusal. */
const LINGER_MS = 1_000

/**
 * Makes a server of node:http, created with `serverOptions`, which listens already, ready for hostile clients: every
 * wait has an end, connections are capped, and what is not HTTP is answered with a problem where an answer can be sent.
 * Nothing here throws in an event.
 */
export const createListener = (
  server: Server,
  { publicUrl, log, maxConnections = DEFAULT_MAX_CONNECTIONS, trustedProxies }: ListenerOptions,
): Listener => {
  const state: ListenerState = {
    publicUrl,
    log,
    handle: undefined,
    refuse: nodeHandler(() => refuseForNow(publicUrl, log), { publicUrl, log }),
    isStillServed: () => true,
    inFlight: 0,
    responses: new WeakMap(),
    refused: new WeakSet(),
  }
  setTimeouts(server)
  const onRequest = (req: IncomingMessage, res: ServerResponse): void => serveRequest(state, req, res)
  server.on('request', onRequest)
  // `100 Continue` is sent when the body is read; the handler refuses other expectations.
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('connect', (_req, socket) => refuse(state, socket as Socket, noTunnels))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    refuseBrokenRequest(state, socket as Socket, describeBrokenRequest(error.code)),
  )
  server.on('connection', (socket: Socket) =>
    watchHalfClosed(socket, () => state.responses.get(socket)?.values().next().value),
  )
  capConnections(server, { maxConnections, trustedProxies }, (socket, max) =>
    refuseBrokenRequest(state, socket, createTooManyConnections(max)),
  )
  // A connection that cannot be accepted ends no server.
  server.on('error', (error) => log.error({ error }, 'Cannot accept a connection'))
  return {
    serve: (handle) => {
      state.handle = handle
    },
    drain: (isStillServed) => drain(server, state, isStillServed),
  }
}

type ListenerState = {
  /** Base of the URLs in problems. */
  readonly publicUrl: string
  readonly log: ListenerOptions['log']
  handle: NodeHandler | undefined
  /** Answers what `handle` does not get. */
  readonly refuse: NodeHandler
  isStillServed: (path: string) => boolean
  /** Number of handlers at work, also for clients that have gone. */
  inFlight: number
  /** The responses of each connection that are not complete. */
  readonly responses: WeakMap<Socket, Set<ServerResponse>>
  /** Connections that got a refusal; what still arrives on them is dropped. */
  readonly refused: WeakSet<Socket>
}

const setTimeouts = (server: Server): void => {
  server.headersTimeout = HEADERS_TIMEOUT_MS
  server.requestTimeout = REQUEST_TIMEOUT_MS
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  server.timeout = SILENCE_TIMEOUT_MS
  server.maxHeadersCount = MAX_HEADERS
  // A client that closes its side after a request still gets the response. The Host header is the handler's.
  Object.assign(server, { httpAllowHalfOpen: true, requireHostHeader: false })
}

const serveRequest = (state: ListenerState, req: IncomingMessage, res: ServerResponse): void => {
  if (state.refused.has(req.socket)) return
  const handle = state.isStillServed(req.url ?? '') ? state.handle : undefined
  // A client that connects again may reach a server that is ready.
  if (!handle) res.shouldKeepAlive = false
  const responses = state.responses.get(req.socket) ?? new Set()
  if (responses.size >= MAX_PIPELINED) {
    refuseBrokenRequest(state, req.socket, tooManyPipelined)
    return
  }
  state.responses.set(req.socket, responses.add(res))
  res.once('close', () => responses.delete(res))
  state.inFlight++
  void (handle ?? state.refuse)(req, res).finally(() => {
    state.inFlight--
  })
}

const notServing = new Problem(
  'upstream_unavailable',
  'The server is starting or stopping. Nothing was done: send the request again in a moment.',
  {},
  { 'Retry-After': '1' },
)

const refuseForNow = (publicUrl: string, log: ListenerOptions['log']): Response => {
  const requestId = createRequestId()
  logRefusal(log, requestId, notServing)
  return toProblemResponse(notServing, { publicUrl, requestId })
}

/** Requests of one connection that may be answered at a time; browsers and proxies send one after the other. */
const MAX_PIPELINED = 32

const tooManyPipelined: Refusal = {
  problem: new Problem(
    'rate_limited',
    `At most ${MAX_PIPELINED} requests may wait on one connection. Read the responses before you send more.`,
    { reason: 'too_many_pipelined', violated_policies: ['pipelining'] },
    { 'Retry-After': '1' },
  ),
  status: 429,
}

/** An error of the connection as the client reads it. 408 and 431 say more than the code's own status. */
type Refusal = { problem: Problem; status: number }

const noTunnels: Refusal = {
  problem: new Problem('method_not_allowed', 'This server is no proxy: there is no CONNECT.'),
  status: 405,
}

const createTooManyConnections = (max: number): Refusal => ({
  problem: new Problem(
    'rate_limited',
    `Your address has ${max} connections open, which is the maximum. Close some, or use them again.`,
    { reason: 'too_many_connections', violated_policies: ['connections'] },
    { 'Retry-After': '5' },
  ),
  status: 429,
})

const INVALID_URL =
  'The URL contains a space, a letter outside ASCII or a control character. Percent-encode it: Müller is M%C3%BCller.'
const INVALID_HEADER =
  'A header has an invalid name, or its value contains a line break or another control character. ' +
  'An API key that was read from a file may end with one.'

/** What clients send by mistake, by the code of the HTTP parser. */
const syntaxErrors: Readonly<Record<string, string>> = {
  HPE_INVALID_URL: INVALID_URL,
  HPE_INVALID_CONSTANT: INVALID_URL,
  HPE_INVALID_HEADER_TOKEN: INVALID_HEADER,
  HPE_CR_EXPECTED: INVALID_HEADER,
  HPE_LF_EXPECTED: INVALID_HEADER,
  HPE_INVALID_CONTENT_LENGTH:
    'Content-Length is not the number of bytes in the body, or Transfer-Encoding was sent too.',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'Content-Length was sent twice, or together with Transfer-Encoding.',
}

const describeBrokenRequest = (code: string | undefined): Refusal => {
  const refusal = (status: number, reason: Reason, detail: string): Refusal => ({
    problem: new Problem('invalid_input', detail, { reason }),
    status,
  })
  if (code === 'HPE_HEADER_OVERFLOW')
    return refusal(431, 'headers_too_large', 'The request line and headers are too large; send shorter ones.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return refusal(408, 'request_timeout', 'The request took too long to arrive; send it again.')
  return refusal(
    400,
    'malformed_request',
    syntaxErrors[code ?? ''] ?? 'This is not a request of HTTP/1.1, or it ended early.',
  )
}

/**
 * Answers what could not be parsed, after the responses to complete requests before it: the client would take
 * it for one of them.
 */
const refuseBrokenRequest = (state: ListenerState, socket: Socket, refusal: Refusal): void => {
  if (state.refused.has(socket)) return
  state.refused.add(socket)
  const open = [...(state.responses.get(socket) ?? [])]
  if (open.some((res) => !res.req.complete && res.headersSent)) return void socket.destroy()
  const before = open.findLast((res) => res.req.complete)
  if (before) before.once('close', () => refuse(state, socket, refusal))
  else refuse(state, socket, refusal)
}

/** Sends a refusal to a connection that has no request for it, and closes it. */
const refuse = (state: ListenerState, socket: Socket, { problem, status }: Refusal): void => {
  state.refused.add(socket)
  socket.on('error', () => {})
  if (!socket.writable) return void socket.destroy()
  const requestId = createRequestId()
  logRefusal(state.log, requestId, { code: problem.code, extras: problem.extras, status })
  const { headers, problem: document } = toProblemResult(problem, {
    publicUrl: state.publicUrl,
    requestId,
    headers: {
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      Connection: 'close',
    },
  })
  const body = JSON.stringify({ ...document, status })
  const lines = Object.entries({ ...headers, 'Content-Length': Buffer.byteLength(body) })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      `${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  )
  // Closing while the client still sends could lose the answer.
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** Takes the oldest connection on which no valid key arrived: the new one, if all others had one. */
const takeOldest = (sockets: Set<Socket>, newest: Socket): Socket => {
  for (const socket of sockets) {
    if (socket !== newest && isAdmitted(socket)) continue
    sockets.delete(socket)
    return socket
  }
  return newest
}

/** Closes a connection for each new one above the share of its address (refused with that maximum) and above all. */
const capConnections = (
  server: Server,
  { maxConnections, trustedProxies }: { maxConnections: number; trustedProxies: BlockList | undefined },
  refuseConnection: (socket: Socket, max: number) => void,
): void => {
  const maxOfAddress = Math.ceil(maxConnections * ADDRESS_SHARE)
  const all = new Set<Socket>()
  const byAddress = new Map<string, Set<Socket>>()
  const limitAddress = (socket: Socket): void => {
    const address = parseAddress(socket.remoteAddress ?? '')
    if (address === undefined || (trustedProxies && containsAddress(trustedProxies, address))) return
    const sockets = (byAddress.get(address) ?? new Set()).add(socket)
    byAddress.set(address, sockets)
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0 && byAddress.get(address) === sockets) byAddress.delete(address)
    })
    if (sockets.size > maxOfAddress) refuseConnection(takeOldest(sockets, socket), maxOfAddress)
  }
  server.on('connection', (socket: Socket) => {
    all.add(socket)
    socket.once('close', () => all.delete(socket))
    limitAddress(socket)
    if (all.size > maxConnections) takeOldest(all, socket).destroy()
  })
}

const POLL_MS = 20

const drain = async (
  server: Server,
  state: ListenerState,
  isStillServed?: (path: string) => boolean,
): Promise<void> => {
  const deadline = performance.now() + DRAIN_TIMEOUT_MS
  const waitUntil = async (isDone: () => boolean, until: number): Promise<void> => {
    while (!isDone() && performance.now() < until) {
      // A connection becomes idle with the end of its response.
      if (!server.listening) server.closeIdleConnections()
      await pause(POLL_MS)
    }
  }
  state.isStillServed = isStillServed ?? (() => false)
  // Requests in flight may call this server themselves, so it listens until they have ended.
  if (isStillServed) await waitUntil(() => state.inFlight === 0, deadline)
  let closed = false
  server.close(() => {
    closed = true
  })
  await waitUntil(() => closed && state.inFlight === 0, deadline)
  server.closeAllConnections()
  await waitUntil(() => state.inFlight === 0, performance.now() + ABORT_TIMEOUT_MS)
}

/** When a client that closed its side is probed first, and the longest interval between probes. */
const PROBE_MS = { first: 25, max: 5_000 }

/**
 * A client that closes its connection looks, until something is written to it, like one that only closed its side and
 * waits for the response. So an interim response, which clients of HTTP/1.1 skip, is written while the response is not
 * there: the system of a client that is gone refuses it, and the next write then finds the connection broken. HTTP/1.0
 * has no interim responses: its clients count as there.
 */
const watchHalfClosed = (socket: Socket, findResponse: () => ServerResponse | undefined): void => {
  const probeAfter = (ms: number): void => {
    setTimeout(() => {
      const response = findResponse()
      if (socket.destroyed || !response || response.headersSent || !takesInterim(response)) return
      if (isRead(response.req)) response.writeContinue()
      probeAfter(Math.min(2 * ms, PROBE_MS.max))
    }, ms).unref()
  }
  socket.once('end', () => probeAfter(PROBE_MS.first))
}

const takesInterim = ({ req }: ServerResponse): boolean =>
  req.httpVersionMajor === 1 && req.httpVersionMinor >= 1

/** Whether nothing of a request is still to be read: that would be lost with the connection, and a change with it. */
const isRead = (req: IncomingMessage): boolean =>
  req.complete &&
  (req.readableEnded ||
    (req.headers['transfer-encoding'] === undefined && !Number(req.headers['content-length'])))
