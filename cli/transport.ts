import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex, Readable } from 'node:stream'

// All requests of the command line. `fetch` has an HTTP client of its own, which takes longer to load than most
// commands run; the one of `node:http` is there in a tenth of that. Proxies of the environment and certificates
// are those of Node, as for `fetch`.

export type HttpRequest = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** A redirection is an error, an answer like any other, or followed, which a GET alone can be. */
  readonly redirect: 'error' | 'manual' | 'follow'
  /** Ends the request and its answer. */
  readonly signal?: AbortSignal
}

/** An answer; the one of `fetch` fits. Its body has to be read, or the request to be ended, else Node does not exit. */
export type HttpResponse = {
  readonly status: number
  readonly statusText: string
  /** The status is 200 to 299. */
  readonly ok: boolean
  readonly headers: Iterable<[string, string]> & { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | null
  text(): Promise<string>
}

/** Sends a request. Rejects like `fetch`: with the reason of the signal, or with an error whose `cause` tells why. */
export type Send = (url: string, request: HttpRequest) => Promise<HttpResponse>

const CONNECT_TIMEOUT_MS = 10_000
/** Longest silence of a connection. */
const SILENCE_TIMEOUT_MS = 300_000
const MAX_REDIRECTS = 20
const REDIRECTIONS = [301, 302, 303, 307, 308]

const timeoutError = (message: string): Error => Object.assign(new Error(message), { code: 'ETIMEDOUT' })

const toNetworkError = (error: unknown, signal: AbortSignal | undefined): unknown =>
  signal?.aborted ? signal.reason : Object.assign(new TypeError('The request failed.'), { cause: error })

/** Ends a request whose connection is not there in time. */
const limitConnecting = (request: ClientRequest, secure: boolean): void => {
  request.once('socket', (socket) => {
    if (!socket.connecting) return
    const timer = setTimeout(
      () => request.destroy(timeoutError('The connection was not established in time.')),
      CONNECT_TIMEOUT_MS,
    )
    const stop = (): void => clearTimeout(timer)
    socket.once(secure ? 'secureConnect' : 'connect', stop).once('close', stop)
  })
}

/** Returns the body without its content coding. */
const decode = async (message: IncomingMessage): Promise<Readable> => {
  const codings = (message.headers['content-encoding'] ?? '').toLowerCase().split(',')
  let body: Readable = message
  for (const coding of codings.map((name) => name.trim()).reverse()) {
    if (coding === '' || coding === 'identity') continue
    const [zlib, { pipeline }] = await Promise.all([import('node:zlib'), import('node:stream')])
    // What has arrived is passed on, and a body that was cut is told by its connection.
    const flush = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH }
    const decoders: Readonly<Record<string, () => Duplex>> = {
      gzip: () => zlib.createGunzip(flush),
      'x-gzip': () => zlib.createGunzip(flush),
      deflate: () => zlib.createInflate(flush),
      br: () => zlib.createBrotliDecompress(),
    }
    if (!Object.hasOwn(decoders, coding)) return body
    body = pipeline(body, decoders[coding]!(), () => {})
  }
  return body
}

async function* readBody(body: Readable, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw toNetworkError(error, signal)
  }
}

/** Reads a body to its end. */
export const readBytes = async ({ body }: HttpResponse): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  if (body) for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const createHeaders = (message: IncomingMessage): HttpResponse['headers'] => {
  const entries = Object.entries(message.headers).flatMap(([name, value = '']) =>
    [value].flat().map((text): [string, string] => [name, text]),
  )
  return {
    get: (name) =>
      entries
        .filter(([known]) => known === name.toLowerCase())
        .map(([, text]) => text)
        .join(', ') || null,
    [Symbol.iterator]: () => entries.sort(([a], [b]) => (a < b ? -1 : 1))[Symbol.iterator](),
  }
}

const createResponse = async (
  message: IncomingMessage,
  signal: AbortSignal | undefined,
): Promise<HttpResponse> => {
  const { statusCode: status = 0, statusMessage: statusText = '' } = message
  const response: HttpResponse = {
    status,
    statusText,
    ok: status >= 200 && status < 300,
    headers: createHeaders(message),
    body: readBody(await decode(message), signal),
    text: async () => (await readBytes(response)).toString().replace(/^\ufeff/, ''),
  }
  return response
}

const exchange = async (url: URL, init: HttpRequest): Promise<IncomingMessage> => {
  const { method = 'GET', headers, body, signal } = init
  const secure = url.protocol === 'https:'
  const { request: open } = await (secure ? import('node:https') : import('node:http'))
  signal?.throwIfAborted()
  const request = open(url, {
    method,
    headers: { Accept: '*/*', 'Accept-Encoding': 'gzip, deflate', ...headers },
    timeout: SILENCE_TIMEOUT_MS,
    ...(signal ? { signal } : {}),
  })
  limitConnecting(request, secure)
  return await new Promise((resolve, reject) => {
    request
      .on('response', resolve)
      .on('error', (error) => reject(toNetworkError(error, signal) as Error))
      .on('timeout', () => request.destroy(timeoutError('The server was silent for too long.')))
      .end(body)
  })
}

const send: Send = async (given, init) => {
  let url = new URL(given)
  for (let redirections = 0; ; redirections++) {
    const message = await exchange(url, init)
    const { statusCode = 0, headers } = message
    const isFollowed = init.redirect === 'error' || headers.location !== undefined
    if (init.redirect === 'manual' || !REDIRECTIONS.includes(statusCode) || !isFollowed)
      return await createResponse(message, init.signal)
    message.destroy()
    if (init.redirect === 'error') throw toNetworkError(new Error('unexpected redirect'), undefined)
    if (redirections === MAX_REDIRECTS) throw toNetworkError(new Error('redirect count exceeded'), undefined)
    url = new URL(headers.location!, url)
  }
}

/** Sends a request of a command; `fetch` is what its caller gave in place of this transport. */
export const sendRequest = (
  { fetch: given = send }: { readonly fetch?: Send },
  url: string,
  request: HttpRequest,
): Promise<HttpResponse> => given(url, request)
