import { type Dispatcher, request } from 'undici'
import { invalidField, Problem } from './kernel/problem.ts'
import { type AllowList, parseAllowList } from './network/allow.ts'
import { createGuardedAgent } from './network/connect.ts'
import { type ResolveHost, resolveWithTimeout, resolveWithSystem } from './network/resolve.ts'
import {
  type UrlFault,
  describeException,
  findUrlFault,
  isExempt,
  parseIpLiteral,
  isConnectAllowed,
  PUBLIC_ADDRESS_FIX,
} from './network/rules.ts'

/** Checks where webhooks may be sent, and sends them. One per server. */
export type WebhookGuard = {
  readonly allow: AllowList
  readonly resolve: ResolveHost
  readonly agent: Dispatcher
}

/** `allow`: exceptions in the form of `WCRM_WEBHOOK_ALLOW`. */
export const createWebhookGuard = (allow = '', resolve: ResolveHost = resolveWithSystem): WebhookGuard => {
  const exceptions = parseAllowList(allow)
  return { allow: exceptions, resolve, agent: createGuardedAgent(exceptions, resolve) }
}

const MAX_URL_LENGTH = 2048

const toUrlProblem = ({ code, detail, fix }: UrlFault): Problem => invalidField('url', code, detail, { fix })

/**
 * Returns a URL in the form that is stored, and the addresses that it resolves to now. Throws 400 on the
 * field `url`, or 503 when no name server answers.
 */
export const checkWebhookUrl = async (
  text: string,
  guard: WebhookGuard,
): Promise<{ url: URL; addresses: string[] }> => {
  const url = URL.parse(text)
  if (!url || url.hostname === '' || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw toUrlProblem({ code: 'url_invalid', detail: 'is not an https URL', fix: PUBLIC_ADDRESS_FIX })
  if (url.username !== '' || url.password !== '')
    throw toUrlProblem({
      code: 'userinfo',
      detail: 'has a user name or password',
      fix: 'Put credentials into custom_headers.',
    })
  const fault = findUrlFault(url)
  // A fragment is never sent. With a trailing dot in the host name, certificates would not match.
  url.hash = ''
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  if (url.href.length > MAX_URL_LENGTH)
    throw toUrlProblem({
      code: 'too_long',
      detail: `must have at most ${MAX_URL_LENGTH} characters, written as ASCII`,
      fix: 'Send a shorter URL.',
    })
  // Without exceptions a faulty URL cannot be allowed, so no name server is queried.
  if (fault && guard.allow.isEmpty) throw toUrlProblem(fault)
  const addresses = await resolveHost(url, guard, fault)
  if (isConnectAllowed(url, addresses, guard.allow)) return { url, addresses }
  throw toUrlProblem(
    fault ?? {
      code: 'address_not_public',
      detail: 'resolves to an address that is not public',
      fix: describeException(url),
    },
  )
}

const resolveHost = async (
  url: URL,
  { allow, resolve }: WebhookGuard,
  fault: UrlFault | undefined,
): Promise<string[]> => {
  const literal = parseIpLiteral(url.hostname)
  if (literal !== undefined) return [literal]
  try {
    const addresses = await resolveWithTimeout(resolve, url.hostname)
    if (addresses.length > 0) return addresses
  } catch (error) {
    // The resolver rejects an invalid name with codes of its own.
    if ((error as { code?: string }).code === 'EAI_AGAIN' && (!fault || isExempt(url, allow))) {
      throw new Problem(
        'upstream_unavailable',
        'The URL cannot be checked: no DNS server responds to this server. Retry with backoff.',
        {},
        { 'Retry-After': '5' },
      )
    }
  }
  throw toUrlProblem(
    fault && !isExempt(url, allow)
      ? fault
      : {
          code: 'name_unknown',
          detail: 'has a name that does not resolve',
          fix: 'Check the name, or wait until its DNS record exists.',
        },
  )
}

export type WebhookResponse = {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The beginning of the body, at most 64 KB. */
  body: Buffer
}
export type WebhookRequest = {
  method?: 'POST' | 'GET'
  headers?: Record<string, string>
  body?: string | Buffer
  timeoutMs?: number
}

const MAX_RESPONSE_BYTES = 64 * 1024

/**
 * Sends a request over a connection to a checked address (else it rejects with the code `ADDRESS_REFUSED`).
 * No redirect is followed. Takes at most 15 seconds; rejects when no response has begun by then
 * (`TimeoutError`), or when the request cannot be sent. A response whose body breaks off counts: its status
 * is known.
 */
export const guardedFetch = async (
  url: string,
  { method = 'POST', headers = {}, body, timeoutMs = 15_000 }: WebhookRequest,
  guard: WebhookGuard,
): Promise<WebhookResponse> => {
  const response = await request(url, {
    dispatcher: guard.agent,
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(timeoutMs),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  return { status: response.statusCode, headers: response.headers, body: await readBeginning(response.body) }
}

const readBeginning = async (body: Dispatcher.ResponseData['body']): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      // Leaving the loop closes the connection: the rest is not read.
      if (length >= MAX_RESPONSE_BYTES) break
    }
  } catch {
    // The body broke off, or the time was over.
  }
  return Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES)
}
