import { createHmac } from 'node:crypto'

/**
 * The three headers of Standard Webhooks 1.0. `secrets`: `whsec_` and base64 each; all sign, so that a
 * receiver can have the old one or the new one. `seconds`: the time of this attempt, in Unix seconds.
 */
export const signatureHeaders = (
  secrets: readonly string[],
  eventId: string,
  seconds: number,
  body: string,
): Record<string, string> => ({
  'webhook-id': eventId,
  'webhook-timestamp': String(seconds),
  'webhook-signature': secrets
    .map(
      (secret) =>
        `v1,${createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
          .update(`${eventId}.${seconds}.${body}`)
          .digest('base64')}`,
    )
    .join(' '),
})
