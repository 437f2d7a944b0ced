import { type Dispatcher, request } from 'undici'
import { invalidField, Problem } from '../core/problem.ts'
import { type Allow, readAllow } from './guard/allow.ts'
import { guardedAgent } from './guard/connect.ts'
import { type Resolve, resolveInTime, systemResolve } from './guard/resolve.ts'
import { type Fault, formFault, isExempt, literalOf, mayConnect } from './guard/rules.ts'

/** What decides where webhooks may be sent, and sends them. One per server. */
export type Guard = { readonly allow: Allow; readonly resolve: Resolve; readonly agent: Dispatcher }

/** `allow`: the exceptions, as `WCRM_WEBHOOK_ALLOW` writes them. */
export const createGuard = (allow = '', resolve: Resolve = systemResolve): Guard => {
  const exceptions = readAllow(allow)
  return { allow: exceptions, resolve, agent: guardedAgent(exceptions, resolve) }
}

const LONGEST = 2048
const FIX = 'Give a public https address, such as https://example.com/hooks.'

const refuse = ({ code, detail, fix }: Fault): Problem => invalidField('url', code, detail, { fix })

/**
 * An address as it is kept, and what it resolves to now. Throws 400 on the field `url`, or 503 when no name
 * server answers.
 */
export const checkUrl = async (text: string, guard: Guard): Promise<{ url: URL; addresses: string[] }> => {
  const url = URL.parse(text)
  if (!url || url.hostname === '' || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw refuse({ code: 'url_invalid', detail: 'is no https address', fix: FIX })
  if (url.username !== '' || url.password !== '')
    throw refuse({
      code: 'userinfo',
      detail: 'has a user name or password',
      fix: 'Put credentials into custom_headers.',
    })
  const fault = formFault(url)
  // Neither is ever sent; with the dot, certificates would not match.
  url.hash = ''
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  if (url.href.length > LONGEST)
    throw refuse({
      code: 'too_long',
      detail: `must have at most ${LONGEST} characters, written as ASCII`,
      fix: 'Send less.',
    })
  // Without exceptions nothing is asked of a name server that could not be allowed anyway.
  if (fault && guard.allow.none) throw refuse(fault)
  const addresses = await addressesOf(url, guard, fault)
  if (mayConnect(url, addresses, guard.allow)) return { url, addresses }
  throw refuse(
    fault ?? { code: 'address_not_public', detail: 'leads to an address that is not public', fix: FIX },
  )
}

const addressesOf = async (
  url: URL,
  { allow, resolve }: Guard,
  fault: Fault | undefined,
): Promise<string[]> => {
  const literal = literalOf(url.hostname)
  if (literal !== undefined) return [literal]
  try {
    const found = await resolveInTime(resolve, url.hostname)
    if (found.length > 0) return found
  } catch (error) {
    // What is no name at all is refused by the resolver with codes of its own.
    if ((error as { code?: string }).code === 'EAI_AGAIN' && (!fault || isExempt(url, allow))) {
      throw new Problem(
        'upstream_unavailable',
        'The address cannot be checked: no name server answers this server. Retry with backoff.',
        {},
        { 'Retry-After': '5' },
      )
    }
  }
  throw refuse(
    fault && !isExempt(url, allow)
      ? fault
      : {
          code: 'name_unknown',
          detail: 'has a name that does not resolve',
          fix: 'Check the name, or wait until it is known.',
        },
  )
}

export type Sent = {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The beginning of the answer, at most 64 KB. */
  body: Buffer
}
export type SendInit = {
  method?: 'POST' | 'GET'
  headers?: Record<string, string>
  body?: string | Buffer
  timeoutMs?: number
}

const MOST_READ = 64 * 1024

/**
 * Sends over a connection to an address that was checked (code `ADDRESS_REFUSED`). No redirect is followed.
 * The whole takes at most 15 seconds; rejects when no answer has begun by then (`TimeoutError`), or when it
 * cannot be sent. An answer that breaks off is one all the same: its status says what became of it.
 */
export const guardedFetch = async (
  url: string,
  { method = 'POST', headers = {}, body, timeoutMs = 15_000 }: SendInit,
  guard: Guard,
): Promise<Sent> => {
  const answer = await request(url, {
    dispatcher: guard.agent,
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(timeoutMs),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
  return { status: answer.statusCode, headers: answer.headers, body: await beginning(answer.body) }
}

const beginning = async (body: Dispatcher.ResponseData['body']): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      // Leaving the loop ends the connection: nobody reads the rest.
      if (length >= MOST_READ) break
    }
  } catch {
    // Broken off, or out of time.
  }
  return Buffer.concat(chunks).subarray(0, MOST_READ)
}
