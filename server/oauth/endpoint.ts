import { fetchNodeHandler } from 'srvx/node'
import { isObject } from '../../catalog/values.ts'
import { countOauthRecords, type OauthKind } from '../../storage/access/oauth.ts'
import { toClientNetwork } from '../client-address.ts'
import type { App } from '../app.ts'
import { Problem } from '../kernel/problem.ts'
import { getClientAddress } from '../http/address.ts'
import { tryParseJson, withBody } from '../http/body.ts'
import { withProblems } from '../http/door.ts'
import { findDisallowedRedirectUri, isLoopbackUri, normalizeClient } from './clients.ts'
import { serveLoginCodes } from './issue-login-code.ts'
import {
  createResourceMetadata,
  createServerMetadata,
  grantableScopes,
  normalizeResource,
  OAUTH_PATHS,
} from './metadata.ts'
import { errorPageResponse, errorWithLinkResponse } from './pages.ts'
import { NETWORK_HEADER } from './provider.ts'

/*
 * OAuth as this server's other endpoints serve requests: sizes, methods and rates are checked here, then the
 * library answers. It is loaded by the first request that needs it.
 */

type Serve = (request: Request) => Promise<Response>

const MAX_BODY_BYTES = 32 * 1024
const MAX_URL_LENGTH = 8 * 1024

/** How much one client network may cause, and how much there may be of all: anybody can send these requests. */
const limits: Partial<
  Record<string, { kind: OauthKind; perNetwork: number; all: number; windowMs: number }>
> = {
  [OAUTH_PATHS.register]: { kind: 'Client', perNetwork: 20, all: 20_000, windowMs: 60 * 60_000 },
  [OAUTH_PATHS.authorize]: { kind: 'Interaction', perNetwork: 60, all: 50_000, windowMs: 10 * 60_000 },
}

/** Requests for tokens and revocations of one network, in a minute: each reads the database. */
const MAX_TOKEN_REQUESTS = 600
const MAX_NETWORKS = 10_000

/** Returns a count of requests by network, which says whether there are too many in this minute. */
const createTokenLimit = (): ((network: string) => boolean) => {
  const counts = new Map<string, number>()
  let minute = 0
  return (network) => {
    const now = Math.floor(performance.now() / 60_000)
    if (now !== minute || counts.size >= MAX_NETWORKS) counts.clear()
    minute = now
    const count = (counts.get(network) ?? 0) + 1
    counts.set(network, count)
    return count > MAX_TOKEN_REQUESTS
  }
}

const isLimited = async (app: App, path: string, network: string): Promise<boolean> => {
  const limit = limits[path]
  if (!limit) return false
  const since = new Date(Date.parse(app.now()) - limit.windowMs).toISOString()
  const count = await countOauthRecords(app.db, limit.kind, { network, since, limit: limit.all })
  return count.ofNetwork >= limit.perNetwork || count.all >= limit.all
}

const jsonResponse = (value: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers },
  })

/** A document that any web page may read: clients that run in a browser need it. */
const serveDocument =
  (create: () => unknown): Serve =>
  async ({ method }) => {
    const cors = { 'Access-Control-Allow-Origin': '*' }
    if (method === 'OPTIONS')
      return new Response(null, {
        status: 204,
        headers: { ...cors, 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' },
      })
    if (method !== 'GET' && method !== 'HEAD')
      return jsonResponse({ error: 'invalid_request' }, 405, { Allow: 'GET, HEAD' })
    const headers = { ...cors, 'Cache-Control': 'public, max-age=300' }
    return method === 'HEAD'
      ? new Response(null, { headers: { ...headers, 'Content-Type': 'application/json' } })
      : jsonResponse(create(), 200, headers)
  }

/** What the protocol answers to programs; people get a page. */
const refuse = (path: string, status: number, error: string, description: string): Response => {
  const headers: Record<string, string> = status === 429 ? { 'Retry-After': '60' } : {}
  return path === OAUTH_PATHS.authorize || path.startsWith(`${OAUTH_PATHS.signIn}/`)
    ? errorPageResponse(status, error, headers)
    : jsonResponse({ error, error_description: description }, status, headers)
}

/** Gives each parameter the form that the library expects; one that is there twice stays for it to refuse. */
const normalizeParameters = (
  parameters: URLSearchParams,
  publicUrl: string,
  isAuthorization: boolean,
): void => {
  const resources = parameters.getAll('resource')
  if (resources.length === 1) parameters.set('resource', normalizeResource(resources[0]!, publicUrl))
  const asked = parameters.getAll('scope')
  if (!isAuthorization || asked.length > 1) return
  // Answers go in the query alone: the other modes of the library need a script.
  parameters.delete('response_mode')
  // Without a scope, or with others alone: what a person may allow. The page lets them take away from it.
  const known = (asked[0] ?? '')
    .split(' ')
    .filter((scope) => (grantableScopes as readonly string[]).includes(scope))
  parameters.set('scope', (known.length > 0 ? known : grantableScopes).join(' '))
}

const forwardedHeaders = [
  'accept',
  'accept-language',
  'access-control-request-headers',
  'access-control-request-method',
  'authorization',
  'content-type',
  'cookie',
  'origin',
  'user-agent',
]

/** Returns the request to the library: with the headers it needs, and what this server knows of it. */
const toInnerRequest = async (app: App, request: Request, body: string | undefined): Promise<Request> => {
  const url = new URL(request.url)
  const { publicUrl } = app.config
  const headers = new Headers({
    // The library builds addresses from them.
    host: new URL(publicUrl).host,
    'x-forwarded-proto': 'https',
    [NETWORK_HEADER]: toClientNetwork(getClientAddress(app, request)),
  })
  for (const name of forwardedHeaders) {
    const value = request.headers.get(name)
    if (value !== null) headers.set(name, value)
  }
  if (url.pathname === OAUTH_PATHS.authorize) normalizeParameters(url.searchParams, publicUrl, true)
  return new Request(`${publicUrl}${url.pathname}${url.search}`, {
    method: request.method,
    headers,
    ...(body === undefined ? {} : { body: adaptBody(body, url.pathname, publicUrl) }),
  })
}

const adaptBody = (text: string, path: string, publicUrl: string): string => {
  if (path === OAUTH_PATHS.token) {
    const parameters = new URLSearchParams(text)
    normalizeParameters(parameters, publicUrl, false)
    return parameters.toString()
  }
  if (path === OAUTH_PATHS.register) {
    const metadata = tryParseJson(text)
    if (metadata.ok && isObject(metadata.value)) {
      const { client_id: _, client_secret: __, ...given } = metadata.value
      // Whatever it prefers, it gets no secret; the answer says so.
      return JSON.stringify(normalizeClient({ ...given, token_endpoint_auth_method: 'none' }))
    }
  }
  return text
}

/** Returns the redirect URI of a registration that this server refuses, where the library would not. */
const findRefusedUri = (text: string): string | undefined => {
  const metadata = tryParseJson(text)
  return metadata.ok && isObject(metadata.value)
    ? findDisallowedRedirectUri(metadata.value['redirect_uris'])?.slice(0, 100)
    : undefined
}

type NodeCallback = Parameters<typeof fetchNodeHandler>[0]

const createLibraryHandler = (app: App): Serve => {
  const load = async (): Promise<NodeCallback> => {
    const [{ createProvider }, { serveSignIn }] = await Promise.all([
      import('./provider.ts'),
      import('./sign-in.ts'),
    ])
    const provider = await createProvider(app)
    provider.use(serveSignIn(app, provider))
    return provider.callback() as NodeCallback
  }
  let loading: Promise<NodeCallback> | undefined
  const getLibrary = (): Promise<NodeCallback> =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    }))
  const isOverTokenLimit = createTokenLimit()
  return async (request) => {
    const path = new URL(request.url).pathname
    if (request.url.length > MAX_URL_LENGTH)
      return refuse(path, 414, 'invalid_request', 'The URL is too long.')
    const network = toClientNetwork(getClientAddress(app, request))
    const isTokenRequest = path === OAUTH_PATHS.token || path === OAUTH_PATHS.revoke
    if (isTokenRequest ? isOverTokenLimit(network) : await isLimited(app, path, network))
      return refuse(path, 429, 'too_many_requests', 'Too many requests from your network; try again later.')
    return await withBody(app, request, { maxBytes: MAX_BODY_BYTES, json: false }, async (body) => {
      const hasBody = request.method === 'POST'
      const text = hasBody ? (await body.bytes(`oauth ${network}`)).toString('utf8') : undefined
      const address = path === OAUTH_PATHS.register ? findRefusedUri(text ?? '') : undefined
      if (address !== undefined)
        return refuse(
          path,
          400,
          'invalid_redirect_uri',
          `redirect_uris has ${address}, whose scheme is not allowed.`,
        )
      const response = await fetchNodeHandler(await getLibrary(), await toInnerRequest(app, request, text))
      if (response.status === 404)
        return refuse(path, 404, 'not_found', 'There is no such endpoint, or it takes another method.')
      const leaving = path === OAUTH_PATHS.authorize ? findWayOut(app, response) : undefined
      return leaving === undefined ? hardenResponse(response) : errorWithLinkResponse(leaving)
    })
  }
}

/**
 * Returns where the answer to a request of authorization sends the browser, when that is neither this server nor a
 * program on the device. Nobody has signed in yet, so it is an error: anybody can register an address and make a link
 * to this server whose errors lead there, which a person follows only knowingly (RFC 9700, 4.11.2).
 */
const findWayOut = ({ config: { publicUrl } }: App, { headers }: Response): URL | undefined => {
  const location = headers.get('location')
  const url = location === null ? null : URL.parse(location, publicUrl)
  return url && url.origin !== new URL(publicUrl).origin && !isLoopbackUri(url.href) ? url : undefined
}

/** The library's answers are for one client alone, and its session is not kept. */
const hardenResponse = (response: Response): Response => {
  const headers = new Headers(response.headers)
  headers.set('Cache-Control', 'no-store')
  // RFC 6749, 5.1.
  headers.set('Pragma', 'no-cache')
  headers.set('Referrer-Policy', 'no-referrer')
  headers.set('X-Content-Type-Options', 'nosniff')
  headers.delete('set-cookie')
  for (const cookie of response.headers.getSetCookie())
    if (!cookie.startsWith('wcrm_sign_in_session')) headers.append('set-cookie', cookie)
  return new Response(response.body, { status: response.status, headers })
}

/** The handlers of OAuth by path; login codes alone where it is off. */
export const createOauthMounts = (app: App): Record<string, Serve> => {
  const { oauth, publicUrl } = app.config
  // The pages on which people approve calls take login codes too.
  const loginCodes = {
    [OAUTH_PATHS.loginCodes]: (request: Request) => withProblems(app, () => serveLoginCodes(app, request)),
  }
  if (!oauth) return loginCodes
  const resource = serveDocument(() => createResourceMetadata(publicUrl))
  const library = createLibraryHandler(app)
  return {
    [OAUTH_PATHS.resourceMetadata]: resource,
    [`${OAUTH_PATHS.resourceMetadata}/mcp`]: resource,
    [OAUTH_PATHS.serverMetadata]: serveDocument(() => createServerMetadata(publicUrl)),
    ...loginCodes,
    '/oauth/**': (request) =>
      library(request).catch((error: unknown) => {
        if (!(error instanceof Problem)) throw error
        return refuse(new URL(request.url).pathname, error.status, 'invalid_request', error.message)
      }),
  }
}
