import type { IncomingMessage, ServerResponse } from 'node:http'
import { NodeRequest, type NodeResponse, sendNodeResponse } from 'srvx/node'
import type { Logger } from 'pino'
import { logRefusal } from '../kernel/log-call.ts'
import { Problem } from '../kernel/problem.ts'
import { toProblemResult } from '../kernel/respond.ts'
import { createRequestId } from '../ids.ts'
import { requestChannel } from '../diagnostics-channels.ts'
import { MAX_BODY_BYTES } from './body.ts'
import { acceptsGzip, compress, isCompressible, isLongEnough } from './compress.ts'

type HandlerOptions = {
  /** Base of the URLs in problems. */
  publicUrl: string
  log: Pick<Logger, 'error' | 'info'>
}

/** A handler of node:http's requests. Never rejects; it resolves when the response has been handed over. */
export type NodeHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>

/** Names and values in turns, as node:http takes them; names are in lower case. */
type FlatHeaders = string[]

type Exchange = { req: IncomingMessage; res: ServerResponse }
type Head = { status: number; headers: FlatHeaders }

/**
 * The handler for node:http, and the last place that every response passes: it refuses what no route takes,
 * forbids caching where nothing else was said, compresses, and closes a connection whose body was not read.
 * A FastResponse with text goes out in one write, head and body together; srvx takes two, and waits for them.
 */
export const nodeHandler =
  (
    fetch: (request: Request) => Response | Promise<Response>,
    { publicUrl, log }: HandlerOptions,
  ): NodeHandler =>
  async (req, res) => {
    // Without a listener, a client that is gone while it is written to would end the process.
    res.on('error', () => {})
    const refuse = async (problem: Problem, requestId = createRequestId()): Promise<void> => {
      const { status, headers, body } = toProblemResult(problem, { publicUrl, requestId })
      logRefusal(log, requestId, problem)
      const flat = Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), value])
      await sendWhole({ req, res }, { status, headers: flat }, body)
    }
    try {
      const refusal = findRefusal(req)
      if (refusal) return await refuse(refusal)
      const request = new NodeRequest({ req, res, maxRequestBodySize: MAX_BODY_BYTES })
      const answer = () => fetch(request as unknown as Request)
      const response = requestChannel.hasSubscribers
        ? await requestChannel.tracePromise(async () => await answer(), { request: req })
        : await answer()
      await send({ req, res }, response, log)
    } catch (error) {
      const requestId = createRequestId()
      log.error({ request_id: requestId, stack: (error as Error).stack }, 'Cannot answer a request')
      if (res.headersSent || res.destroyed) res.destroy()
      else
        await refuse(
          new Problem('internal_error', 'The server failed unexpectedly; report the request_id.'),
          requestId,
        )
    }
  }

const headerProblem = (error: { header: string; code: string; detail: string; fix: string }): Problem =>
  new Problem('invalid_input', `The header ${error.header} ${error.detail}.`, { errors: [error] })

const countHeader = ({ rawHeaders }: IncomingMessage, name: string): number => {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]!.toLowerCase() === name) count++
  return count
}

/** A host, and a port: `uri-host [":" port]` (RFC 9112, section 3.2). */
const AUTHORITY = /^(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i

/** What is refused on every route, from the request line and the headers alone. */
const findRefusal = (req: IncomingMessage): Problem | undefined => {
  const { headers, httpVersionMinor } = req
  if (headers.host === undefined && httpVersionMinor > 0)
    return headerProblem({
      header: 'Host',
      code: 'required',
      detail: 'is required',
      fix: 'Send the name of the server.',
    })
  // node:http keeps the first; a proxy may have gone by another (RFC 9112, section 3.2).
  if (countHeader(req, 'host') > 1)
    return headerProblem({
      header: 'Host',
      code: 'duplicate_field',
      detail: 'is given more than once',
      fix: 'Send it once.',
    })
  if (!AUTHORITY.test(headers.host ?? ''))
    return headerProblem({
      header: 'Host',
      code: 'invalid_value',
      detail: 'is no name of a server',
      fix: 'Send its name, and its port if needed.',
    })
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect))
    return headerProblem({
      header: 'Expect',
      code: 'invalid_value',
      detail: 'can only be 100-continue',
      fix: 'Leave the header out.',
    })
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity')
    return new Problem(
      'unsupported_media_type',
      `Bodies with Content-Encoding "${encoding.slice(0, 40)}" are not read. Send the body as it is.`,
      { reason: 'content_encoding' },
      { 'Accept-Encoding': 'identity' },
    )
  return undefined
}

const isFast = (response: Response): response is NodeResponse => '_toNodeResponse' in response

const send = async (exchange: Exchange, response: Response, log: HandlerOptions['log']): Promise<void> => {
  if (isFast(response)) {
    const { status, headers, body } = response._toNodeResponse()
    addRequestId(headers as FlatHeaders, status, log)
    if (body === undefined || typeof body === 'string' || body instanceof Uint8Array)
      return await sendWhole(exchange, { status, headers: headers as FlatHeaders }, body ?? '')
    return await sendStream(exchange, { status, headers: headers as FlatHeaders }, body as ReadableStream)
  }
  // The sandbox returns a network error when a response is to be lost: the connection is closed.
  if (response.type === 'error') return void exchange.res.destroy()
  // Whether the connection is kept is for the client and node:http to say: the MCP SDK would keep every one.
  const headers = removeFlat([...response.headers].flat(), 'connection')
  const head = { status: response.status, headers }
  addRequestId(headers, response.status, log)
  if (response.body === null) return await sendWhole(exchange, head, '')
  if (isCompressible(response.headers.get('content-type') ?? undefined) && !isAttachment(response))
    return await sendWhole(exchange, head, Buffer.from(await response.arrayBuffer()))
  return await sendStream(exchange, head, response.body)
}

/** Files of any length, which stay streams. */
const isAttachment = ({ headers }: Response): boolean => headers.has('content-disposition')

const getFlat = (headers: FlatHeaders, name: string): string | undefined => {
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) return headers[i + 1]
  return undefined
}

const removeFlat = (headers: FlatHeaders, name: string): FlatHeaders =>
  headers.filter((_, i) => headers[i - (i % 2)] !== name)

/** Answers hold business data: no cache keeps them unless they say so, and no browser guesses their type. */
const addDefaults = (headers: FlatHeaders): void => {
  if (getFlat(headers, 'cache-control') === undefined) headers.push('cache-control', 'no-store')
  if (getFlat(headers, 'x-content-type-options') === undefined)
    headers.push('x-content-type-options', 'nosniff')
}

/** Every answer has an id. Who made one has logged it, or what it is of needs no line. */
const addRequestId = (headers: FlatHeaders, status: number, log: HandlerOptions['log']): void => {
  if (getFlat(headers, 'request-id') !== undefined) return
  const requestId = createRequestId()
  headers.push('request-id', requestId)
  if (status >= 400) logRefusal(log, requestId, { status })
}

const sendWhole = async (
  { req, res }: Exchange,
  { status, headers: given }: Head,
  whole: string | Uint8Array,
): Promise<void> => {
  let headers = given
  let body = whole
  addDefaults(headers)
  const isEncoded = getFlat(headers, 'content-encoding') !== undefined
  if (!isEncoded && isLongEnough(body) && isCompressible(getFlat(headers, 'content-type'))) {
    headers.push('vary', 'Accept-Encoding')
    if (acceptsGzip(req.headers['accept-encoding'])) {
      if (res.destroyed) return
      body = await compress(body)
      // The client may have gone meanwhile.
      if (res.destroyed) return
      headers = removeFlat(headers, 'content-length')
      headers.push('content-encoding', 'gzip', 'content-length', String(body.length))
    }
  }
  if (getFlat(headers, 'content-length') === undefined && req.method !== 'HEAD' && status !== 304)
    headers.push('content-length', String(Buffer.byteLength(body)))
  if (!isLeftUnread(req)) return void res.writeHead(status, headers).end(body)
  headers.push('connection', 'close')
  res.writeHead(status, headers).write(body)
  discardThenEnd(req, res)
}

const sendStream = async (
  { req, res }: Exchange,
  { status, headers }: Head,
  body: ReadableStream,
): Promise<void> => {
  addDefaults(headers)
  if (isLeftUnread(req)) {
    headers.push('connection', 'close')
    req.resume()
  }
  // Only a client that has gone closes its side of an event stream.
  if (getFlat(headers, 'content-type')?.startsWith('text/event-stream')) {
    const destroy = () => res.destroy()
    if (req.socket.readableEnded) destroy()
    else req.socket.once('end', destroy)
    // The connection may serve many streams, one after the other.
    res.once('close', () => req.socket.off('end', destroy))
  }
  if (!res.destroyed) res.writeHead(status, headers)
  await sendNodeResponse(res, new Response(body))
}

/** What node:http discards after a response; a connection with more to come is closed instead. */
const MAX_DISCARDED_BYTES = 65_536
/**
 * How long a client may go on sending a body that was refused, and how long it may pause: closing sooner loses the
 * response, since many clients and proxies read it only when they have sent everything.
 */
const LINGER_MS = { longest: 30_000, silent: 2_000 }

/** Whether a body is still to come that nobody read. */
const isLeftUnread = (req: IncomingMessage): boolean =>
  !req.complete &&
  (req.headers['transfer-encoding'] !== undefined ||
    Number(req.headers['content-length'] ?? 0) > MAX_DISCARDED_BYTES)

/** The client has the whole response; what it still sends is dropped for a while, then the connection ends. */
const discardThenEnd = (req: IncomingMessage, res: ServerResponse): void => {
  const end = (): void => {
    clearTimeout(silent)
    clearTimeout(longest)
    res.end()
  }
  let silent = setTimeout(end, LINGER_MS.silent)
  const longest = setTimeout(end, LINGER_MS.longest)
  req.on('data', () => {
    clearTimeout(silent)
    if (!res.writableEnded) silent = setTimeout(end, LINGER_MS.silent)
  })
  req.once('end', end).once('close', end).once('error', end)
  req.resume()
}
