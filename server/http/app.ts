import { isObject } from '../../catalog/values.ts'
import { H3, type H3Event } from 'h3'
import { FastResponse } from 'srvx/node'
import { currentVersion, type Operation } from '../../catalog/index.ts'
import { loadServerEncoding } from '../../storage/health.ts'
import type { App } from '../core/app.ts'
import type { Transport } from '../core/context.ts'
import { createRequestId } from '../ids.ts'
import { createMediaResponse, serveMedia } from '../media/media.ts'
import { type CallRequest, perform } from '../core/perform.ts'
import { type CallResponse, toProblemResponse } from '../core/respond.ts'
import { Problem } from '../core/problem.ts'
import { serveLinkPage } from '../short-links/serve-page.ts'
import { serveQr } from '../short-links/serve-qr.ts'
import { DEFAULT_MAX_BODY_BYTES, parseJson, readBody, tryParseJson } from './body.ts'
import { serveEventStream, acceptsEventStream } from './events.ts'
import { createOpenapi } from './openapi.ts'
import { renderPage } from './pages.ts'
import { createErrorLocator, parseRestInput, type RestRoute, createRestRoutes } from './rest.ts'

/**
 * Returns the HTTP application: REST, `/v1/ops`, documents and health. `mounts` are further handlers by path,
 * such as `/mcp`, the provider's webhook and the sandbox; `**` at the end of a path matches all paths below.
 */
export const createHttpApp = (
  app: App,
  mounts: Record<string, (request: Request) => Promise<Response>> = {},
): H3 => {
  // A path that cannot be decoded is an error of the validation step, in the order of steps, not before all.
  const http = new H3({ onError: (error, event) => serveError(app, error, event), allowMalformedURL: true })
  const document = JSON.stringify(createOpenapi(app.operations, { publicUrl: app.config.publicUrl }))
  const allowed = new Map<string, string[]>()

  for (const route of createRestRoutes(app.operations)) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    allowed.set(path, [...(allowed.get(path) ?? []), route.method])
    http.on(route.method, path, (event) => serveRest(app, route, event))
  }
  http.on('POST', '/v1/ops/:name', (event) => serveOps(app, event))
  allowed.set('/v1/ops/:name', ['POST'])
  for (const [path, methods] of allowed) {
    if (methods.includes('GET')) http.on('HEAD', path, (event) => serveHead(http, event))
    http.all(path, (event) =>
      serveMethodNotAllowed(app, methods.includes('GET') ? [...methods, 'HEAD'] : methods, event),
    )
  }
  for (const [path, serve] of Object.entries(mounts)) http.all(path, (event) => serve(event.req as Request))

  for (const path of [
    '/healthz',
    '/readyz',
    '/metrics',
    '/openapi.json',
    '/media/:token',
    '/qr/:file',
    '/message/:code',
  ])
    http.on('HEAD', path, (event) => serveHead(http, event))
  http.get('/healthz', () => jsonResponse(200, { status: 'ok' }))
  http.get('/readyz', () => serveReadiness(app))
  http.get(
    '/metrics',
    async () =>
      new Response(await app.metrics.registry.metrics(), {
        headers: { 'Content-Type': app.metrics.registry.contentType },
      }),
  )
  http.get('/openapi.json', () => new Response(document, { headers: { 'Content-Type': 'application/json' } }))
  http.get('/media/:token', (event) =>
    withProblems(app, () => serveMedia(app, event.context.params?.token ?? '')),
  )
  http.get('/qr/:file', (event) => withProblems(app, () => serveQr(app, event.context.params?.file ?? '')))
  http.get('/message/:code', (event) => serveLinkPage(app, event.context.params?.code ?? ''))
  http.all('/**', async (event) => {
    const path = event.url.pathname
    if (path.startsWith('/v1/') || path === '/v1') return await serveUnknownRoute(app, event)
    if (event.req.method !== 'GET' && event.req.method !== 'HEAD')
      return problemResponse(
        app,
        new Problem('method_not_allowed', 'Pages are served to GET only.', {}, { Allow: 'GET, HEAD' }),
      )
    return (
      (await renderPage(path, app)) ??
      problemResponse(app, new Problem('not_found', `There is no page ${path.slice(0, 200)}.`))
    )
  })
  return http
}

const jsonResponse = (status: number, value: unknown): Response =>
  new Response(JSON.stringify(value), { status, headers: { 'Content-Type': 'application/json' } })

/**
 * FastResponse is written as it is, in one piece with its head; a standard Response becomes a stream first
 * (measured: a quarter fewer calls per second).
 */
const toResponse = ({ status, headers, body }: CallResponse): Response =>
  new FastResponse(body, { status, headers })

const problemResponse = (app: App, problem: Problem): Response =>
  toProblemResponse(problem, {
    publicUrl: app.config.publicUrl,
    requestId: createRequestId(),
    headers: { 'Api-Version': currentVersion },
  })

/** HEAD is GET without a body. */
const serveHead = async (http: H3, event: H3Event): Promise<Response> => {
  const response = await http.fetch(new Request(event.req.url, { headers: event.req.headers }))
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) await response.body?.cancel()
  return new Response(null, { status: response.status, headers: response.headers })
}

const serveMethodNotAllowed = (app: App, methods: string[], event: H3Event): Response =>
  problemResponse(
    app,
    new Problem(
      'method_not_allowed',
      `${event.req.method} is not a method of ${event.url.pathname.slice(0, 200)}.`,
      { allowed: methods },
      { Allow: methods.join(', ') },
    ),
  )

const getHeader = (event: H3Event, name: string): string | undefined =>
  event.req.headers.get(name) ?? undefined

const toCallRequest = (
  event: H3Event,
  door: Transport,
  operation: Operation | undefined,
  input: CallRequest['input'],
  options: Partial<CallRequest> = {},
): CallRequest => ({
  transport: door === 'ops' && getHeader(event, 'wcrm-door') === 'cli' ? 'cli' : door,
  operation,
  input,
  requestId: createRequestId(),
  authorization: getHeader(event, 'authorization'),
  apiVersion: getHeader(event, 'api-version'),
  idempotencyKey: getHeader(event, 'idempotency-key'),
  confirm: getHeader(event, 'api-confirm'),
  client: getHeader(event, 'user-agent'),
  ...options,
})

const serveUnknownRoute = async (app: App, event: H3Event): Promise<Response> =>
  toResponse(
    await perform(
      app,
      toCallRequest(event, 'rest', undefined, undefined, {
        requestedName: `route ${event.req.method} ${event.url.pathname.slice(0, 200)}`,
      }),
    ),
  )

const serveRest = async (app: App, route: RestRoute, event: H3Event): Promise<Response> => {
  // The router ignores a slash at the end; but /v1/contacts/ is most likely a contact whose id is missing,
  // not a list.
  if (event.url.pathname.endsWith('/')) return await serveUnknownRoute(app, event)
  try {
    const text = await readBody(event, route.operation.maxBytes ?? DEFAULT_MAX_BODY_BYTES)
    const query = event.url.searchParams
    const path = Object.fromEntries(
      Object.entries(event.context.params ?? {}).map(([name, value]) => [name, decodeParameter(value)]),
    )
    const input = () => {
      const body = text === '' ? undefined : parseJson(text)
      if (route.onlyQuery && body !== undefined && !isEmptyObject(body)) {
        throw new Problem('invalid_input', 'This route takes no body.', {
          errors: [
            {
              pointer: '#',
              code: 'unexpected_body',
              detail: 'must be empty',
              fix: 'Send the fields in the path and the query.',
            },
          ],
        })
      }
      return parseRestInput(route, path, query, route.onlyQuery ? undefined : body)
    }
    const inQuery = new Set(query.keys())
    const call = toCallRequest(event, 'rest', route.operation, input, {
      locateError: createErrorLocator(route, inQuery),
    })
    if (route.operation.name === 'events_list' && acceptsEventStream(getHeader(event, 'accept'))) {
      const opened = await serveEventStream(app, call, getHeader(event, 'last-event-id'))
      return opened instanceof Response ? opened : toResponse(opened)
    }
    const response = await perform(app, call)
    return route.operation.bytes && response.status === 200 && !acceptsOnlyJson(event)
      ? await createMediaResponse(app, JSON.parse(response.body) as never, response.headers)
      : toResponse(response)
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error)
    throw error
  }
}

const acceptsOnlyJson = (event: H3Event): boolean =>
  /^application\/json\s*(?:;|$)/i.test(getHeader(event, 'accept') ?? '')

const withProblems = async (app: App, work: () => Promise<Response>): Promise<Response> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error)
    throw error
  }
}

/** Runs an operation with all fields, `idempotency_key` and `confirm` included, in the JSON body. */
const serveOps = async (app: App, event: H3Event): Promise<Response> => {
  if (event.url.pathname.endsWith('/')) return await serveUnknownRoute(app, event)
  try {
    const name = decodeParameter(event.context.params?.name ?? '')
    const operation = app.operations.find((op) => op.name === name)
    const text = await readBody(event, operation?.maxBytes ?? DEFAULT_MAX_BODY_BYTES)
    const call = toCallRequest(event, 'ops', operation, undefined, {
      requestedName: `operation ${name.slice(0, 100)}`,
    })
    const parsed = tryParseJson(text)
    if (parsed.ok && isObject(parsed.value)) {
      const { idempotency_key: key, confirm, ...fields } = parsed.value
      const isWrite = operation !== undefined && operation.scope !== 'mcp:read'
      if (
        !isWrite ||
        (key !== undefined && typeof key !== 'string') ||
        (confirm !== undefined && typeof confirm !== 'string')
      )
        call.input = parsed.value
      else {
        call.input = fields
        call.idempotencyKey ??= key as string | undefined
        call.confirm ??= confirm as string | undefined
      }
    } else call.input = parsed.ok ? parsed.value : () => parseJson(text)
    return toResponse(await perform(app, call))
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error)
    throw error
  }
}

const isEmptyObject = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0

/** Path parameters arrive encoded; one that cannot be decoded is left as it is for validation to reject. */
const decodeParameter = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const serveReadiness = async (app: App): Promise<Response> => {
  try {
    const encoding = await loadServerEncoding(app.db)
    if (encoding !== 'UTF8')
      return jsonResponse(503, {
        status: 'unready',
        detail: `the database is encoded in ${encoding}; create it with encoding UTF8`,
      })
    return jsonResponse(200, { status: 'ready' })
  } catch {
    return jsonResponse(503, { status: 'unready', detail: 'the database cannot be reached' })
  }
}

const serveError = (
  app: App,
  error: { status?: number; cause?: unknown; stack?: string | undefined },
  event: H3Event,
): Response => {
  if (error.status === 404)
    return problemResponse(
      app,
      new Problem('not_found', `There is no page ${event.url.pathname.slice(0, 200)}.`),
    )
  app.log.error({ stack: error.stack, path: event.url.pathname }, 'Request failed')
  return problemResponse(
    app,
    new Problem('internal_error', 'The server failed unexpectedly; report the request_id.'),
  )
}
