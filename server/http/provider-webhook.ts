import { createHmac, timingSafeEqual } from 'node:crypto'
import { type NewProviderUpdate, insertProviderUpdates } from '../../storage/channels/provider-updates.ts'
import type { App } from '../app.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import { parseUpdates, serializeUpdates } from '../domains/inbound/parse-updates.ts'
import {
  findSigner,
  listOwnVerifyTokens,
  selectOfSigner,
  type Signer,
  signatureProblem,
} from '../domains/inbound/signers.ts'
import { Problem } from '../kernel/problem.ts'
import { problemResponse } from './door.ts'
import { withRetries } from '../kernel/retry.ts'
import { countFailure } from '../kernel/throttle.ts'
import { getClientAddress } from './address.ts'
import { withBody } from './body.ts'

/**
 * `appSecret` signs the bodies of accounts without a secret of their own; `verifyToken` is what the provider
 * sends to verify this address. With a sandbox there are no other secrets.
 */
export type ProviderWebhookConfig = { appSecret: string; verifyToken: string; sandbox: boolean }

/**
 * The provider's maximum of a body. Only the whole body shows whether it is signed, so that an address may
 * have no more than a few of them in flight.
 */
const BODY_RULES = { maxBytes: 3 * 1024 * 1024, maxBytesInFlight: 12 * 1024 * 1024, json: false }
const MAX_INSERT_ATTEMPTS = 3

/**
 * The provider's webhook: the handshake by GET, updates by POST. Updates are stored before the response,
 * and applied by a job after it. Never rejects.
 */
export const createProviderWebhook =
  (app: App, config: ProviderWebhookConfig) =>
  async (request: Request): Promise<Response> => {
    try {
      if (request.method === 'GET')
        return await answerHandshake(app, new URL(request.url).searchParams, config)
      if (request.method !== 'POST')
        throw new Problem(
          'method_not_allowed',
          'The provider verifies this address with GET and delivers updates with POST.',
          {},
          { Allow: 'GET, POST' },
        )
      // Before the body is read: unsigned requests cost next to nothing.
      const signature = parseSignature(request.headers.get('x-hub-signature-256'))
      await withBody(app, request, BODY_RULES, async (body) => {
        // The raw bytes: the signature is over them, and a parser would not reproduce them.
        const bytes = await body.bytes(`webhook ${getClientAddress(app, request)}`)
        const signer = await findSigner(app, bytes, signature, config)
        await storeBody(app, bytes, signer, config.sandbox)
      })
      app.jobs.job('provider-updates').wake()
      return new Response('', { status: 200 })
    } catch (error) {
      return problemResponse(
        app,
        error instanceof Problem ? limitRefusals(app, request, error) : toStorageProblem(app, error),
      )
    }
  }

const isEqual = (a: string, b: string): boolean => {
  // Digests have the same length, so that the time does not depend on the length of the secret.
  const [left, right] = [a, b].map((text) => createHmac('sha256', 'compare').update(text).digest())
  return timingSafeEqual(left!, right!)
}

/** Counts a request that did not prove to come from the provider. Returns the problem to answer with. */
const limitRefusals = (app: App, request: Request, problem: Problem): Problem => {
  if (problem.code !== 'unauthenticated' && problem.code !== 'forbidden') return problem
  try {
    countFailure(app, getClientAddress(app, request), 'provider_webhook')
    return problem
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

const answerHandshake = async (
  app: App,
  query: URLSearchParams,
  config: ProviderWebhookConfig,
): Promise<Response> => {
  const given = query.get('hub.verify_token') ?? ''
  const known = [config.verifyToken, ...(await listOwnVerifyTokens(app, config))]
  // All are compared, so that the time does not tell which one it was.
  if (query.get('hub.mode') !== 'subscribe' || !known.map((token) => isEqual(given, token)).includes(true))
    throw new Problem('forbidden', 'The verify token is not the one of this server.')
  return new Response(query.get('hub.challenge') ?? '', {
    status: 200,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
  })
}

/** Reads the header `X-Hub-Signature-256`. Throws 401 without one, 403 when it cannot be a signature. */
const parseSignature = (header: string | null): Buffer => {
  if (header === null) throw new Problem('unauthenticated', 'X-Hub-Signature-256 is missing.')
  const digits = /^sha256=([0-9a-f]{64})$/i.exec(header)?.[1]
  if (digits === undefined) throw signatureProblem()
  return Buffer.from(digits, 'hex')
}

/** A signed body of unknown form is accepted too: the provider would only send it again. */
const storeBody = async (app: App, bytes: Buffer, signer: Signer, sandbox: boolean): Promise<void> => {
  const body = parseUpdates(bytes.toString('utf8'))
  const unknownParts = body?.unknownParts ?? 1
  if (unknownParts > 0)
    app.log.warn(
      { bytes: bytes.byteLength, parts: unknownParts },
      'Ignored parts of unknown form in a body of the provider',
    )
  const received = await selectOfSigner(app, body?.updates ?? [], signer, sandbox)
  const { stored, refused } = received.length > 0 ? await insertAll(app, received) : { stored: 0, refused: 0 }
  app.metrics.inbound.inc({ outcome: 'stored' }, stored)
  app.metrics.inbound.inc({ outcome: 'duplicate' }, received.length - stored - refused)
  app.metrics.inbound.inc({ outcome: 'not_understood' }, unknownParts + refused)
}

/** Inserts all in one statement; when the database rejects the data of one, each in its own statement. */
const insertAll = async (
  app: App,
  updates: readonly NewProviderUpdate[],
): Promise<{ stored: number; refused: number }> => {
  try {
    // Two bodies with the same updates in another order can deadlock.
    const stored = await withRetries(
      () => insertProviderUpdates(app.db, serializeUpdates(updates), app.now()),
      MAX_INSERT_ATTEMPTS,
    )
    return { stored, refused: 0 }
  } catch (error) {
    if (!isDataError(error)) throw error
    if (updates.length === 1) {
      app.log.warn(
        { code: (error as { code?: string }).code, kind: updates[0]!.kind },
        'Cannot store an update of the provider; ignored',
      )
      return { stored: 0, refused: 1 }
    }
    const each = []
    for (const update of updates) each.push(await insertAll(app, [update]))
    return {
      stored: each.reduce((sum, one) => sum + one.stored, 0),
      refused: each.reduce((sum, one) => sum + one.refused, 0),
    }
  }
}

/** SQLSTATE classes 22 (data exception) and 54 (program limit exceeded): a retry would not help. */
const isDataError = (error: unknown): boolean => /^(?:22|54)/.test((error as { code?: string }).code ?? '')

/** The provider repeats a request that is not answered by 200. */
const toStorageProblem = (app: App, error: unknown): Problem => {
  app.log.error(errorLogDetails(error), 'Cannot store updates of the provider')
  return new Problem(
    'upstream_unavailable',
    'The updates could not be stored. Send them again.',
    {},
    { 'Retry-After': '5' },
  )
}
