import { H3, type H3Event } from 'h3'
import { FastResponse } from 'srvx/node'
import { currentVersion, type Operation } from '../../catalog/index.ts'
import { serverEncoding } from '../../storage/health.ts'
import type { App } from '../app.ts'
import type { Door } from '../core/context.ts'
import { newRequestId } from '../ids.ts'
import { bytesAnswer, serveMedia } from '../media/media.ts'
import { type Answer, type Call, perform } from '../core/perform.ts'
import { Problem, problemDocument } from '../core/problem.ts'
import { servePage } from '../short-links/page.ts'
import { serveQr } from '../short-links/qr.ts'
import { DEFAULT_MAX_BYTES, parseJson, readBody, tryJson } from './body.ts'
import { eventStream, wantsStream } from './events.ts'
import { openapi } from './openapi.ts'
import { pages } from './pages.ts'
import { locateIn, restInput, type RestRoute, restRoutes } from './rest.ts'

/**
 * The HTTP service without a process: REST, `/v1/ops`, documents and health. `/mcp`, the provider's webhook
 * and the sandbox are mounted by whoever composes the server; `**` at the end of a path stands for any
 * below it.
 */
export const createHttp = (
  app: App,
  mounts: Record<string, (request: Request) => Promise<Response>> = {},
): H3 => {
  // Paths that cannot be decoded are refused where the path is checked, in the order of checks, and not
  // before everything.
  const http = new H3({ onError: (error, event) => unforeseen(app, error, event), allowMalformedURL: true })
  const document = JSON.stringify(openapi(app.operations, { publicUrl: app.config.publicUrl }))
  const allowed = new Map<string, string[]>()

  for (const route of restRoutes(app.operations)) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    allowed.set(path, [...(allowed.get(path) ?? []), route.method])
    http.on(route.method, path, (event) => rest(app, route, event))
  }
  http.on('POST', '/v1/ops/:name', (event) => ops(app, event))
  allowed.set('/v1/ops/:name', ['POST'])
  for (const [path, methods] of allowed) {
    if (methods.includes('GET')) http.on('HEAD', path, (event) => head(http, event))
    http.all(path, (event) =>
      methodNotAllowed(app, methods.includes('GET') ? [...methods, 'HEAD'] : methods, event),
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
    http.on('HEAD', path, (event) => head(http, event))
  http.get('/healthz', () => json(200, { status: 'ok' }))
  http.get('/readyz', () => ready(app))
  http.get(
    '/metrics',
    async () =>
      new Response(await app.metrics.registry.metrics(), {
        headers: { 'Content-Type': app.metrics.registry.contentType },
      }),
  )
  http.get('/openapi.json', () => new Response(document, { headers: { 'Content-Type': 'application/json' } }))
  http.get('/media/:token', (event) =>
    orProblem(app, () => serveMedia(app, event.context.params?.token ?? '')),
  )
  http.get('/qr/:file', (event) => orProblem(app, () => serveQr(app, event.context.params?.file ?? '')))
  http.get('/message/:code', (event) => servePage(app, event.context.params?.code ?? ''))
  http.all('/**', async (event) => {
    const path = event.url.pathname
    if (path.startsWith('/v1/') || path === '/v1') return await noRoute(app, event)
    if (event.req.method !== 'GET' && event.req.method !== 'HEAD')
      return problemResponse(
        app,
        new Problem('method_not_allowed', 'Pages are read with GET.', {}, { Allow: 'GET, HEAD' }),
      )
    return (
      (await pages(path, app)) ??
      problemResponse(app, new Problem('not_found', `There is no page ${path.slice(0, 200)}.`))
    )
  })
  return http
}

const json = (status: number, value: unknown): Response =>
  new Response(JSON.stringify(value), { status, headers: { 'Content-Type': 'application/json' } })

/**
 * FastResponse is written out as it is, in one piece with its head; a Response of the platform is first
 * made a stream (measured: a quarter fewer calls a second).
 */
const send = ({ status, headers, body }: Answer): Response => new FastResponse(body, { status, headers })

const problemResponse = (app: App, problem: Problem): Response => {
  const requestId = newRequestId()
  return new Response(JSON.stringify(problemDocument(problem, app.config.publicUrl, requestId)), {
    status: problem.status,
    headers: {
      ...problem.headers,
      'Content-Type': 'application/problem+json',
      'Request-Id': requestId,
      'Api-Version': currentVersion,
    },
  })
}

/** HEAD is GET without a body. */
const head = async (http: H3, event: H3Event): Promise<Response> => {
  const answer = await http.fetch(new Request(event.req.url, { headers: event.req.headers }))
  if (answer.headers.get('content-type')?.startsWith('text/event-stream')) await answer.body?.cancel()
  return new Response(null, { status: answer.status, headers: answer.headers })
}

const methodNotAllowed = (app: App, methods: string[], event: H3Event): Response =>
  problemResponse(
    app,
    new Problem(
      'method_not_allowed',
      `${event.req.method} is not a method of ${event.url.pathname.slice(0, 200)}.`,
      { allowed: methods },
      { Allow: methods.join(', ') },
    ),
  )

const header = (event: H3Event, name: string): string | undefined => event.req.headers.get(name) ?? undefined

const callOf = (
  event: H3Event,
  door: Door,
  operation: Operation | undefined,
  input: Call['input'],
  more: Partial<Call> = {},
): Call => ({
  door: door === 'ops' && header(event, 'wcrm-door') === 'cli' ? 'cli' : door,
  operation,
  input,
  requestId: newRequestId(),
  authorization: header(event, 'authorization'),
  apiVersion: header(event, 'api-version'),
  idempotencyKey: header(event, 'idempotency-key'),
  confirm: header(event, 'api-confirm'),
  client: header(event, 'user-agent'),
  ...more,
})

const noRoute = async (app: App, event: H3Event): Promise<Response> =>
  send(
    await perform(
      app,
      callOf(event, 'rest', undefined, undefined, {
        asked: `route ${event.req.method} ${event.url.pathname.slice(0, 200)}`,
      }),
    ),
  )

const rest = async (app: App, route: RestRoute, event: H3Event): Promise<Response> => {
  // The router overlooks a slash at the end; but /v1/contacts/ is most likely a contact whose id went
  // missing, and no list was asked for.
  if (event.url.pathname.endsWith('/')) return await noRoute(app, event)
  try {
    const text = await readBody(event, route.operation.maxBytes ?? DEFAULT_MAX_BYTES)
    const query = event.url.searchParams
    const path = Object.fromEntries(
      Object.entries(event.context.params ?? {}).map(([name, value]) => [name, decoded(value)]),
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
      return restInput(route, path, query, route.onlyQuery ? undefined : body)
    }
    const inQuery = new Set(query.keys())
    const call = callOf(event, 'rest', route.operation, input, { locate: locateIn(route, inQuery) })
    if (route.operation.name === 'events_list' && wantsStream(header(event, 'accept'))) {
      const opened = await eventStream(app, call, header(event, 'last-event-id'))
      return opened instanceof Response ? opened : send(opened)
    }
    const answer = await perform(app, call)
    return route.operation.bytes && answer.status === 200 && !wantsJson(event)
      ? await bytesAnswer(app, JSON.parse(answer.body) as never, answer.headers)
      : send(answer)
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error)
    throw error
  }
}

const wantsJson = (event: H3Event): boolean =>
  /^application\/json\s*(?:;|$)/i.test(header(event, 'accept') ?? '')

const orProblem = async (app: App, work: () => Promise<Response>): Promise<Response> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error)
    throw error
  }
}

/**
 * Every operation with every field in the JSON body; `idempotency_key` and `confirm` are accepted there
 * too.
 */
const ops = async (app: App, event: H3Event): Promise<Response> => {
  if (event.url.pathname.endsWith('/')) return await noRoute(app, event)
  try {
    const name = decoded(event.context.params?.name ?? '')
    const operation = app.operations.find((op) => op.name === name)
    const text = await readBody(event, operation?.maxBytes ?? DEFAULT_MAX_BYTES)
    const call = callOf(event, 'ops', operation, undefined, { asked: `operation ${name.slice(0, 100)}` })
    const parsed = tryJson(text)
    if (parsed.ok && isObject(parsed.value)) {
      const { idempotency_key: key, confirm, ...fields } = parsed.value
      const changes = operation !== undefined && operation.scope !== 'mcp:read'
      if (
        !changes ||
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
    return send(await perform(app, call))
  } catch (error) {
    if (error instanceof Problem) return problemResponse(app, error)
    throw error
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
const isEmptyObject = (value: unknown): boolean => isObject(value) && Object.keys(value).length === 0

/** Path parameters arrive undecoded; what cannot be decoded is left for validation to refuse. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const ready = async (app: App): Promise<Response> => {
  try {
    const encoding = await serverEncoding(app.db)
    if (encoding !== 'UTF8')
      return json(503, {
        status: 'unready',
        detail: `the database is encoded in ${encoding}; create it with encoding UTF8`,
      })
    return json(200, { status: 'ready' })
  } catch {
    return json(503, { status: 'unready', detail: 'the database cannot be reached' })
  }
}

const unforeseen = (
  app: App,
  error: { status?: number; cause?: unknown; stack?: string | undefined },
  event: H3Event,
): Response => {
  if (error.status === 404)
    return problemResponse(
      app,
      new Problem('not_found', `There is no page ${event.url.pathname.slice(0, 200)}.`),
    )
  app.log.error({ stack: error.stack, path: event.url.pathname }, 'request failed')
  return problemResponse(
    app,
    new Problem('internal_error', 'The server failed in a way it did not foresee; report the request_id.'),
  )
}
