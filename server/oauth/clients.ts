import { isObject } from '../../catalog/values.ts'
import type { App } from '../app.ts'
import { guardedFetch } from '../outbound-guard.ts'

/*
 * What clients say of themselves: in a document at the address that is their id, or when they register. Both
 * are written by strangers.
 */

/** Addresses that gave no document are asked again after this time. */
const REFUSAL_TTL_MS = 60_000
const MAX_REFUSALS = 1000
const MAX_FETCHES = 8
const FETCH_TIMEOUT_MS = 2500
export const MAX_DOCUMENT_BYTES = 16 * 1024
const MAX_REDIRECT_URIS = 20
const MAX_TEXT = 500

const LOOPBACK = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?([/?]|$)/i

/**
 * Schemes of the network, and of programs that open any address, such as browsers and messengers: an answer that goes
 * there leaves the device, while the page says that it goes to a program on it.
 */
const DISALLOWED_SCHEMES = new RegExp(
  '^(?:ftps?|sftp|ssh|git|smb|nfs|dav|gopher|ldaps?|wss?|mailto|sms|smsto|tel|sips?|xmpp|ircs?|tg|whatsapp|' +
    'webcals?|feed|' +
    'intent|view-source|chrome|edge|brave|vivaldi|arc|firefox|ddgquicklink|shortcuts|steam|search|search-ms|' +
    'ms-(?:settings|search|help|appinstaller|officecmd)|' +
    '(?:googlechromes?|microsoft-edge|firefox|opera|touch|x-safari|safari|yandexbrowser)(?:-[a-z-]+)?):',
  'i',
)

/** Returns the first redirect URI whose scheme is not allowed; undefined where there is none. */
export const findDisallowedRedirectUri = (uris: unknown): string | undefined =>
  isStringArray(uris)
    ? uris.find((uri) => DISALLOWED_SCHEMES.test(URL.parse(uri)?.protocol ?? ''))
    : undefined

/** Whether an answer to this address reaches only a program on the device of the person. */
export const isLoopbackUri = (uri: string): boolean => LOOPBACK.test(uri)

const isStringArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/**
 * Keeps of a client's metadata what this server uses. A client with an address on its own machine, or of a
 * scheme of its own, is a native one whatever it says: only then may its port differ. Values of the wrong type
 * stay, for the library to refuse them.
 */
export const normalizeClient = (given: Record<string, unknown>): Record<string, unknown> => {
  const { redirect_uris: uris, grant_types: grants, client_name: name } = given
  const isNative = isStringArray(uris) && uris.some((uri) => !/^https:/i.test(uri) || LOOPBACK.test(uri))
  const known = isStringArray(grants)
    ? grants.filter((one) => one === 'authorization_code' || one === 'refresh_token')
    : []
  return {
    ...(given['client_id'] === undefined ? {} : { client_id: given['client_id'] }),
    ...(typeof name === 'string' && name.trim() !== ''
      ? { client_name: name.trim().slice(0, MAX_TEXT).toWellFormed() }
      : {}),
    redirect_uris: isStringArray(uris) && uris.length > MAX_REDIRECT_URIS ? [] : uris,
    grant_types: known.length > 0 ? known : ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: given['token_endpoint_auth_method'] ?? 'none',
    application_type: isNative ? 'native' : 'web',
    ...(given['client_secret'] === undefined ? {} : { client_secret: 'refused' }),
  }
}

const refusal = (status: number): Response => new Response('', { status })

const fetchDocument = async (app: App, url: string): Promise<Response> => {
  const response = await guardedFetch(
    url,
    { method: 'GET', headers: { Accept: 'application/json' }, timeoutMs: FETCH_TIMEOUT_MS },
    app.webhookGuard,
  )
  const type = String(response.headers['content-type'] ?? '')
  if (response.status !== 200) return refusal(502)
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type)) return refusal(415)
  if (response.body.byteLength > MAX_DOCUMENT_BYTES) return refusal(413)
  const document: unknown = JSON.parse(response.body.toString('utf8'))
  if (!isObject(document) || findDisallowedRedirectUri(document['redirect_uris']) !== undefined)
    return refusal(422)
  const cacheControl = response.headers['cache-control']
  return Response.json(normalizeClient(document), {
    headers: typeof cacheControl === 'string' ? { 'Cache-Control': cacheControl } : {},
  })
}

/**
 * Returns the function by which the library fetches the document of a client: over connections to public
 * addresses alone, https, without redirects, JSON, with limits of size and time. What failed is not tried
 * again for a minute. Its results are bounded here, and those that succeed in the library.
 */
export const createDocumentFetch = (app: App): ((url: string | URL) => Promise<Response>) => {
  const refusedUntil = new Map<string, number>()
  let running = 0
  return async (target) => {
    const url = String(target)
    if ((refusedUntil.get(url) ?? 0) > performance.now() || running >= MAX_FETCHES) return refusal(503)
    running++
    try {
      const response = await fetchDocument(app, url)
      if (response.ok) refusedUntil.delete(url)
      else refuse(refusedUntil, url)
      return response
    } catch (error) {
      refuse(refusedUntil, url)
      app.log.debug(
        { code: (error as { code?: string }).code },
        'Cannot fetch the document of an OAuth client',
      )
      return refusal(502)
    } finally {
      running--
    }
  }
}

const refuse = (refusedUntil: Map<string, number>, url: string): void => {
  if (refusedUntil.size >= MAX_REFUSALS) refusedUntil.delete(refusedUntil.keys().next().value!)
  refusedUntil.set(url, performance.now() + REFUSAL_TTL_MS)
}
