import { createHmac, timingSafeEqual } from 'node:crypto'
import { type NewUpdate, storeUpdates } from '../../storage/provider-updates.ts'
import type { App } from '../app.ts'
import { kickUpdates } from './process.ts'
import { splitBody, updatesJson } from './split.ts'
import { newRequestId } from '../ids.ts'
import { Problem, problemDocument } from '../core/problem.ts'
import { isRetryable } from '../core/steps/deadline.ts'

/**
 * `appSecret` signs every body; `verifyToken` is what the provider says when it asks whether this is our
 * address.
 */
export type WebhookConfig = { appSecret: string; verifyToken: string }

/** What the provider sends at most (reference 2.6). */
const MAX_BYTES = 3 * 1024 * 1024
const ATTEMPTS = 3

/**
 * The provider's webhook: the handshake by GET, updates by POST. Updates are stored before they are
 * answered, and worked off after. It never throws.
 */
export const providerWebhook =
  (app: App, config: WebhookConfig) =>
  async (request: Request): Promise<Response> => {
    try {
      if (request.method === 'GET') return handshake(new URL(request.url).searchParams, config.verifyToken)
      if (request.method !== 'POST')
        throw new Problem(
          'method_not_allowed',
          'The provider verifies with GET and delivers with POST.',
          {},
          { Allow: 'GET, POST' },
        )
      const bytes = await bodyOf(request)
      requireSignature(bytes, request.headers.get('x-hub-signature-256'), config.appSecret)
      await store(app, bytes)
      kickUpdates(app)
      return new Response('', { status: 200 })
    } catch (error) {
      return refusal(app, error instanceof Problem ? error : unstored(app, error))
    }
  }

const isEqual = (a: string, b: string): boolean => {
  // Digests have one length whatever they are of, so that the time tells nothing of the secret's length
  // either.
  const [left, right] = [a, b].map((text) => createHmac('sha256', 'compare').update(text).digest())
  return timingSafeEqual(left!, right!)
}

const handshake = (query: URLSearchParams, verifyToken: string): Response => {
  if (query.get('hub.mode') !== 'subscribe' || !isEqual(query.get('hub.verify_token') ?? '', verifyToken))
    throw new Problem('forbidden', 'The verify token is not the one of this server.')
  return new Response(query.get('hub.challenge') ?? '', {
    status: 200,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
  })
}

/** The raw bytes: what is signed is not what a parser would write again. */
const bodyOf = async (request: Request): Promise<Buffer> => {
  const tooLarge = () =>
    new Problem('payload_too_large', `The body is larger than ${MAX_BYTES} bytes.`, {
      limit_bytes: MAX_BYTES,
    })
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BYTES) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength
      if (size > MAX_BYTES) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof Problem
      ? error
      : new Problem('invalid_input', 'The body could not be read to its end.')
  }
  return Buffer.concat(chunks)
}

const requireSignature = (bytes: Buffer, header: string | null, appSecret: string): void => {
  if (header === null) throw new Problem('unauthenticated', 'X-Hub-Signature-256 is missing.')
  const given = /^sha256=([0-9a-f]{64})$/i.exec(header)?.[1]
  const signature = createHmac('sha256', appSecret).update(bytes).digest()
  if (given === undefined || !timingSafeEqual(Buffer.from(given, 'hex'), signature))
    throw new Problem('forbidden', 'X-Hub-Signature-256 does not match the body.')
}

/** What is signed but not understood is taken too: the provider would only send it again. */
const store = async (app: App, bytes: Buffer): Promise<void> => {
  const split = splitBody(bytes.toString('utf8'))
  const unread = split?.unread ?? 1
  if (unread > 0)
    app.log.warn({ bytes: bytes.byteLength, parts: unread }, 'the provider sent what is not understood')
  const received = split?.updates ?? []
  const { stored, refused } = received.length > 0 ? await storeAll(app, received) : { stored: 0, refused: 0 }
  app.metrics.inbound.inc({ outcome: 'stored' }, stored)
  app.metrics.inbound.inc({ outcome: 'duplicate' }, received.length - stored - refused)
  app.metrics.inbound.inc({ outcome: 'not_understood' }, unread + refused)
}

/**
 * In one statement. Should the database refuse what is in one of them, each for itself, so that it takes no
 * other with it.
 */
const storeAll = async (
  app: App,
  updates: readonly NewUpdate[],
  attempt = 1,
): Promise<{ stored: number; refused: number }> => {
  try {
    return { stored: await storeUpdates(app.db, updatesJson(updates), app.now()), refused: 0 }
  } catch (error) {
    // Two bodies at once with the same updates in another order can wait for each other.
    if (isRetryable(error) && attempt < ATTEMPTS) return await storeAll(app, updates, attempt + 1)
    if (!isOfData(error)) throw error
    if (updates.length === 1) {
      app.log.warn(
        { code: (error as { code?: string }).code, kind: updates[0]!.kind },
        'the provider sent what cannot be stored',
      )
      return { stored: 0, refused: 1 }
    }
    const each = []
    for (const update of updates) each.push(await storeAll(app, [update]))
    return {
      stored: each.reduce((sum, one) => sum + one.stored, 0),
      refused: each.reduce((sum, one) => sum + one.refused, 0),
    }
  }
}

/** SQLSTATE classes 22 (data exception) and 54 (program limit exceeded): trying again would not help. */
const isOfData = (error: unknown): boolean => /^(?:22|54)/.test((error as { code?: string }).code ?? '')

/** The provider tries again what is not answered by 200. */
const unstored = (app: App, error: unknown): Problem => {
  app.log.error({ code: (error as { code?: string }).code }, 'updates of the provider could not be stored')
  return new Problem(
    'upstream_unavailable',
    'The updates could not be stored. Send them again.',
    {},
    { 'Retry-After': '5' },
  )
}

const refusal = (app: App, problem: Problem): Response => {
  const requestId = newRequestId()
  return new Response(JSON.stringify(problemDocument(problem, app.config.publicUrl, requestId)), {
    status: problem.status,
    headers: { ...problem.headers, 'Content-Type': 'application/problem+json', 'Request-Id': requestId },
  })
}
