import type { CallRequest } from '../kernel/call.ts'
import { H3, type H3Event } from 'h3'
import { FastResponse } from 'srvx/node'
import { currentVersion } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import type { App } from '../app.ts'
import { perform } from '../kernel/perform.ts'
import { Problem } from '../kernel/problem.ts'
import { toDatabaseProblem } from '../kernel/deadline.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import { serveExport } from './export-download.ts'
import { createMediaResponse, serveMedia } from '../domains/media/media.ts'
import { createRequestId } from '../ids.ts'
import { lazy } from '../lazy.ts'
import { serveLinkPage } from './short-links/page.ts'
import { serveQr } from './short-links/qr.ts'
import { getClientAddress, getIncoming } from './address.ts'
import { DEFAULT_MAX_BODY_BYTES, parseJson, withBody } from './body.ts'
import {
  type DoorEvent,
  decodeParameter,
  getHeader,
  problemResponse,
  serveUnknownRoute,
  toCallRequest,
  toResponse,
  withProblems,
} from './door.ts'
import { createSite } from './docs/site.ts'
import { readIfMatch, refuseIfNoneMatch, withEtag } from './etag.ts'
import { serveHealth, serveReadiness } from './health.ts'
import { serveMetrics } from './metrics.ts'
import { createOpenapi } from './openapi.ts'
import { serveOps } from './ops.ts'
import { renderPage } from './pages.ts'
import { requireDecodableQuery } from './query.ts'
import { createErrorLocator, parseRestInput, type RestRoute, createRestRoutes } from './rest.ts'
import { createStaticDocument } from './static-document.ts'
import { addRoute, createRouter, findRoute } from 'rou3'
import { EventId } from '../../catalog/webhooks/subscriptions.ts'
import { openStream } from './event-stream.ts'
import type { CallResponse } from '../kernel/respond.ts'
import { parseWeights } from './accept.ts'

/** Answers a request; never rejects. */
export type HttpApp = { fetch: (request: Request) => Response | Promise<Response> }

/**
 * Returns the HTTP application: REST, `/v1/ops`, documents and health. `mounts` are further handlers by path,
 * such as `/mcp`, the provider's webhook and the sandbox; `**` at the end of a path matches all paths below.
 */
export const createHttpApp = (
  app: App,
  mounts: Record<string, (request: Request) => Promise<Response>> = {},
): HttpApp => {
  // A path that cannot be decoded is an error of the validation step, in the order of steps, not before all.
  const http = new H3({ onError: (error, event) => serveError(app, error, event), allowMalformedURL: true })
  // Describing every operation takes longer than all else that a start does.
  const describeApi = (facade: boolean) =>
    lazy(() =>
      createStaticDocument(
        Buffer.from(
          JSON.stringify(createOpenapi(app.operations, { publicUrl: app.config.publicUrl, facade })),
        ),
        { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache' },
      ),
    )
  const [routes, facade] = [describeApi(false), describeApi(true)]
  const apiDocuments = ['', `-${currentVersion}`].flatMap((suffix) => [
    { path: `/openapi${suffix}.json`, document: routes },
    { path: `/openapi-ops${suffix}.json`, document: facade },
  ])
  const serveSite = createSite(app)
  const direct = routeOperations(app, http)
  for (const [path, serve] of Object.entries(mounts)) http.all(path, (event) => serve(event.req as Request))

  const reads: Read[] = [
    ['/healthz', serveHealth],
    ['/readyz', () => serveReadiness(app)],
    ['/metrics', (event) => withProblems(app, () => serveMetrics(app, event.req as Request))],
    ...apiDocuments.map(({ path, document }): Read => [
      path,
      (event) => document().serve(event.req as Request),
    ]),
    ['/media/:token', (event) => serveMediaFile(app, event)],
    ['/qr/:file', (event) => withProblems(app, () => serveQr(app, event.context.params?.['file'] ?? ''))],
    ['/message/:code', (event) => serveLinkPage(app, event.context.params?.['code'] ?? '')],
  ]
  for (const [path, serve] of reads) {
    http.get(path, serve)
    http.on('HEAD', path, (event) => serveHead(http, event))
  }
  // A download is recorded: its HEAD is no GET whose body is dropped.
  for (const method of ['GET', 'HEAD'] as const)
    http.on(method, '/exports/:token', (event) => serveExportFile(app, event))
  http.all('/**', async (event) => {
    const path = event.url.pathname
    if (path.startsWith('/v1/') || path === '/v1') return await serveUnknownRoute(app, event)
    if (event.req.method !== 'GET' && event.req.method !== 'HEAD')
      return problemResponse(
        app,
        new Problem('method_not_allowed', 'Pages are served to GET only.', {}, { Allow: 'GET, HEAD' }),
      )
    return (
      (await serveSite(path, event.req as Request)) ??
      renderPage(path, app) ??
      problemResponse(app, new Problem('not_found', `There is no page ${path.slice(0, 200)}.`))
    )
  })
  return {
    fetch: (request) => {
      const { method = '', url = '' } = getIncoming(request) ?? {}
      const found = direct.find(method, url)
      return found
        ? serveDirect(app, found.serve, { ...found.event, req: request as DoorEvent['req'] })
        : http.fetch(request)
    },
  }
}

/** A path, and what answers a GET of it. */
type Read = [path: string, serve: (event: DoorEvent) => Response | Promise<Response>]

/** A file of a message, which is read without a key, at a URL that expires. */
const serveMediaFile = (app: App, event: DoorEvent): Promise<Response> =>
  withProblems(app, () =>
    serveMedia(app, event.context.params?.['token'] ?? '', {
      address: getClientAddress(app, event.req as Request),
      range: getRange(event),
    }),
  )

/** The same for the file of an export. */
const serveExportFile = (app: App, event: DoorEvent): Promise<Response> => {
  const requestId = createRequestId()
  return withProblems(
    app,
    () =>
      serveExport(app, event.context.params?.['token'] ?? '', {
        address: getClientAddress(app, event.req as Request),
        headers: event.req.headers,
        isHead: event.req.method === 'HEAD',
        requestId,
      }),
    requestId,
  )
}

/** Adds the routes of operations to h3, with the answers to methods they do not take. Returns the direct ones. */
const routeOperations = (app: App, http: H3) => {
  const allowed = new Map<string, string[]>()
  const direct = createDirectRoutes()
  const add = (
    method: RestRoute['method'],
    path: string,
    serve: (event: DoorEvent) => Promise<Response>,
  ): void => {
    http.on(method, path, serve)
    direct.add(method, path, serve)
  }

  for (const route of createRestRoutes(app.operations)) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    allowed.set(path, [...(allowed.get(path) ?? []), route.method])
    add(route.method, path, (event) => serveRest(app, route, event))
  }
  add('POST', '/v1/ops/:name', (event) => serveOps(app, event))
  allowed.set('/v1/ops/:name', ['POST'])
  for (const [path, methods] of allowed) {
    if (methods.includes('GET')) http.on('HEAD', path, (event) => serveHead(http, event))
    http.all(path, (event) =>
      serveMethodNotAllowed(app, methods.includes('GET') ? [...methods, 'HEAD'] : methods, event),
    )
  }
  return direct
}

/** Errors become the same responses as in h3. */
const serveDirect = async (
  app: App,
  serve: (event: DoorEvent) => Promise<Response>,
  event: DoorEvent,
): Promise<Response> => {
  try {
    return await serve(event)
  } catch (error) {
    return serveError(app, error as Error, event)
  }
}

/** HEAD is GET without a body, and without ranges (RFC 9110, 14.2). */
const serveHead = async (http: H3, event: H3Event): Promise<Response> => {
  const request = new Request(event.req.url, { headers: event.req.headers })
  request.headers.delete('range')
  // The connection goes with it: the client's address counts as in a GET.
  const { runtime } = event.req
  const response = await http.fetch(Object.assign(request, { runtime }))
  // An event stream has no end, and a file is open in its store.
  await response.body?.cancel()
  return new FastResponse(null, { status: response.status, headers: response.headers })
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

const serveRest = async (app: App, route: RestRoute, event: DoorEvent): Promise<Response> => {
  // The router ignores a slash at the end; but /v1/contacts/ is most likely a contact whose id is missing,
  // not a list.
  if (event.url.pathname.endsWith('/')) return await serveUnknownRoute(app, event)
  const maxBytes = route.operation.maxBytes ?? DEFAULT_MAX_BODY_BYTES
  const requestId = createRequestId()
  const answer = () =>
    withBody(app, event.req as Request, { maxBytes }, async (body) => {
      const query = event.url.searchParams
      const call = toCallRequest(app, event, {
        transport: 'rest',
        operation: route.operation,
        requestId,
        locateError: (error) => createErrorLocator(route, query)(error),
        readInput: async (actor) => ({
          input: parseInput(route, event, await body.text(actor.key.id)),
        }),
      })
      if (route.operation.name === 'events_list' && acceptsEventStream(getHeader(event, 'accept'))) {
        const opened = await serveEventStream(app, call, getHeader(event, 'last-event-id'))
        return opened instanceof Response ? opened : toResponse(opened)
      }
      const response = await perform(app, call)
      return route.operation.bytes && response.status === 200 && !acceptsOnlyJson(event)
        ? await createMediaResponse(
            app,
            JSON.parse(response.body) as never,
            response.headers,
            getRange(event),
          )
        : toResponse(withEtag(route.operation, event.req as Request, response))
    })
  return await withProblems(app, answer, requestId)
}

const parseInput = (route: RestRoute, event: DoorEvent, text: string): unknown => {
  requireDecodableQuery(event)
  const path = Object.fromEntries(
    Object.entries(event.context.params ?? {}).map(([name, value]) => [name, decodeParameter(value)]),
  )
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
  const input = parseRestInput(route, path, event.url.searchParams, route.onlyQuery ? undefined : body)
  refuseIfNoneMatch(route.operation, getHeader(event, 'if-none-match'))
  const version = readIfMatch(route.operation, getHeader(event, 'if-match'))
  return version === undefined || !isObject(input) ? input : { ...input, if_version: version }
}

/** A file of a message has no validator that `If-Range` could match, so that the whole file is the answer. */
const getRange = (event: DoorEvent): string | undefined =>
  getHeader(event, 'if-range') === undefined ? getHeader(event, 'range') : undefined

const acceptsOnlyJson = (event: DoorEvent): boolean =>
  /^application\/json\s*(?:;|$)/i.test(getHeader(event, 'accept') ?? '')

const isEmptyObject = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0

const serveError = (
  app: App,
  error: { status?: number; cause?: unknown; stack?: string | undefined },
  event: DoorEvent,
): Response => {
  if (error.status === 404)
    return problemResponse(
      app,
      new Problem('not_found', `There is no page ${event.url.pathname.slice(0, 200)}.`),
    )
  const cause = error.cause ?? error
  const requestId = createRequestId()
  // Never the path itself: that of a file is all that anybody needs to read it.
  const { route } = event.context.matchedRoute ?? {}
  app.log.error({ request_id: requestId, ...errorLogDetails(cause), route }, 'Request failed')
  return problemResponse(
    app,
    toDatabaseProblem(cause) ??
      new Problem('internal_error', 'The server failed unexpectedly; report the request_id.'),
    requestId,
  )
}

type Serve = (event: DoorEvent) => Promise<Response>

/** The handler of a request, and what the path says of it. */
type Found = { serve: Serve; event: Omit<DoorEvent, 'req'> }

/** A path that needs no decoding, and nothing after it that is not a query. */
const PLAIN_PATH = /^((?:\/[\w-]+)+)(?:\?([^#]*))?$/

const NO_QUERY = new URLSearchParams()
const NO_PARAMS = {}

/**
 * The routes of operations a second time, in the router of h3, for requests that need nothing else of h3: a plain path
 * and a method that has a route. They skip its event and response (measured: a tenth of a read's time). All others
 * are h3's, which has every route.
 */
const createDirectRoutes = () => {
  const router = createRouter<{ serve: Serve; matchedRoute: { route: string } } | undefined>()
  return {
    /** `path`: with `:name` for parameters. */
    add: (method: string, path: string, serve: Serve): void => {
      addRoute(router, method, path, { serve, matchedRoute: { route: path } })
      // Its other methods are h3's, not those of a path with a parameter in this place.
      addRoute(router, '', path, undefined)
    },
    /** Returns the handler of a request; undefined when h3 has to route it. */
    find: (method: string, url: string): Found | undefined => {
      const plain = PLAIN_PATH.exec(url)
      const [, pathname = '', query] = plain ?? []
      const found = plain ? findRoute(router, method, pathname) : undefined
      if (!found?.data) return undefined
      const { serve, matchedRoute } = found.data
      const event = {
        url: { pathname, searchParams: query ? new URLSearchParams(query) : NO_QUERY },
        context: { params: found.params ?? NO_PARAMS, matchedRoute },
      }
      return { serve, event }
    },
  }
}

/**
 * True when the client names server-sent events and likes them as much as JSON; a weight of 0 means that it does not
 * accept them.
 */
const acceptsEventStream = (accept: string | undefined): boolean => {
  const weights = parseWeights(accept ?? '')
  const stream = weights.get('text/event-stream') ?? 0
  const json = weights.get('application/json') ?? weights.get('application/*') ?? weights.get('*/*') ?? 0
  return stream > 0 && stream >= json
}

const HEADER = 'Last-Event-ID'

/** Throws 400 for what is no id of an event, where the error of `after`, which stands for it, would not say where. */
const requireEventId = (id: string): void => {
  if (EventId.safeParse(id).success) return
  const at = { header: HEADER, code: 'invalid_value', detail: 'must be the id of an event' }
  throw new Problem('invalid_input', `${HEADER} ${at.detail}.`, {
    errors: [{ ...at, fix: 'Send the id of the last event that you received, or leave it out.' }],
  })
}

/**
 * Serves the event log as server-sent events. The call runs as any other first, so that all checks apply.
 * `Last-Event-ID`, which a client sends when it reconnects, overrides `after` and `from`. Throws 429 when the key has
 * too many open streams.
 */
const serveEventStream = async (
  app: App,
  call: CallRequest,
  lastEventId: string | undefined,
): Promise<Response | CallResponse> => {
  let input: Record<string, unknown> = {}
  const readInput: CallRequest['readInput'] = async (actor) => {
    if (lastEventId) requireEventId(lastEventId)
    const requested = (await call.readInput!(actor)).input as Record<string, unknown>
    return {
      input: (input = {
        limit: 1,
        ...requested,
        ...(lastEventId
          ? { after: lastEventId, consumer: undefined, cursor: undefined, from: undefined }
          : {}),
      }),
    }
  }
  const response = await perform(app, { ...call, readInput })
  if (response.status !== 200) return response
  const body = await openStream(app, call, input)
  return new Response(body, {
    // The last two stop proxies from buffering events.
    headers: {
      ...response.headers,
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    },
  })
}
