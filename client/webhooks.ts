import type { WebhookEvent } from './types.ts'

/** A request that is not one of the service, too old, or signed with another secret: answer it with 400. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

type GivenHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

export type WebhookRequest = {
  /** The signing secret of the endpoint, `whsec_…`; several while one takes the place of another. */
  readonly secret: string | readonly string[]
  readonly headers: GivenHeaders
  /** The body as it was received, before any parsing. */
  readonly body: string | Uint8Array
  /** How far its time may be from now, in seconds; 300 when absent. */
  readonly toleranceSeconds?: number
  /** Milliseconds since 1970 in place of the time of now. */
  readonly now?: number
}

const readHeader = (headers: GivenHeaders, name: string): string => {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1]
  if (typeof value !== 'string' || value === '')
    throw new WebhookVerificationError(`The header ${name} is missing, or there are several.`)
  return value
}

const fromBase64 = (text: string): Uint8Array<ArrayBuffer> | undefined => {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

const importKey = (secret: string): Promise<CryptoKey> => {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (!bytes || bytes.length === 0) throw new TypeError('The secret of a webhook is whsec_ and base64.')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/**
 * Verifies a webhook (Standard Webhooks 1.0) and returns its event; `type` tells its data apart. Delivery is at least
 * once: ignore an `id` that you have seen. Throws a `WebhookVerificationError`. For endpoints with the payload format
 * `envelope`.
 */
export const verifyWebhook = async ({
  secret,
  headers,
  body,
  toleranceSeconds = 300,
  now = Date.now(),
}: WebhookRequest): Promise<WebhookEvent> => {
  const id = readHeader(headers, 'webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  const given = readHeader(headers, 'webhook-signature')
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > toleranceSeconds)
    throw new WebhookVerificationError('The webhook was sent too long ago, or in the future.')
  const encoder = new TextEncoder()
  const bytes = typeof body === 'string' ? encoder.encode(body) : body
  const prefix = encoder.encode(`${id}.${timestamp}.`)
  const signed = new Uint8Array(prefix.length + bytes.length)
  signed.set(prefix)
  signed.set(bytes, prefix.length)
  const signatures = given
    .split(' ')
    .flatMap((part) => (part.startsWith('v1,') ? (fromBase64(part.slice(3)) ?? []) : []))
  for (const one of [secret].flat()) {
    const key = await importKey(one)
    for (const signature of signatures) {
      if (!(await crypto.subtle.verify('HMAC', key, signature, signed))) continue
      return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent
    }
  }
  throw new WebhookVerificationError('No signature is of this secret.')
}
