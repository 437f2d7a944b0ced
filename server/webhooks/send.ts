import { currentVersion } from '../../catalog/index.ts'
import type { ClaimedDelivery, Result } from '../../storage/webhook-deliveries.ts'
import type { App } from '../app.ts'
import { guardedFetch, type Sent } from './guard.ts'
import { nextDelay, retryAfter } from './schedule.ts'
import { unsealHeaders, unsealSecrets } from './secrets.ts'
import { signatureHeaders } from './sign.ts'

const USER_AGENT = 'wcrm-webhooks/1'
const GONE = 410
const KEPT_BYTES = 1024

/** What an attempt came to: to be written, and for its endpoint. */
export type Attempted = { result: Result; gone: boolean }

/** The bytes that are sent and signed. The same on every attempt: a receiver may compare them. */
const bodyOf = ({
  payload_format: format,
  event_id: id,
  event_type: type,
  workspace_id: workspaceId,
  occurred_at: at,
  data,
}: ClaimedDelivery): string => {
  if (format === 'data') return data!
  const slash = type.lastIndexOf('/')
  const head = JSON.stringify({
    id,
    type: type.slice(0, slash),
    version: type.slice(slash + 1),
    api_version: currentVersion,
    occurred_at: at,
    company_id: workspaceId,
  })
  return `${head.slice(0, -1)},"data":${data}}`
}

/** Makes one attempt. Never rejects: what goes wrong is a failed attempt. */
export const attempt = async (app: App, delivery: ClaimedDelivery): Promise<Attempted> => {
  // Written times are business time, as those of the event; what is signed is real time.
  const startedAt = app.now()
  const begun = performance.now()
  const ended = (
    status: number | null,
    excerpt: string | null,
    error: string | null,
    wish?: number,
  ): Attempted => {
    const delivered = status !== null && status >= 200 && status < 300
    const failures = delivered ? delivery.failures : delivery.failures + 1
    const delay = delivered ? undefined : nextDelay(failures, wish)
    const { workspace_id, id, lease } = delivery
    return {
      gone: status === GONE,
      result: {
        workspace_id,
        id,
        lease,
        status: delivered ? 'delivered' : delay === undefined ? 'dead' : 'failed',
        failures,
        retry_in: delay ?? null,
        started_at: startedAt,
        duration_ms: Math.round(performance.now() - begun),
        response_status: status,
        response_excerpt: excerpt,
        error,
      },
    }
  }
  if (delivery.data === null) return dead(ended(null, null, 'The event is no longer kept.'))
  try {
    const place = { ...delivery, id: delivery.endpoint_id }
    const secrets = unsealSecrets(app, place)
    const custom = unsealHeaders(app, place)
    const body = bodyOf(delivery)
    const answer = await guardedFetch(
      delivery.url,
      {
        body,
        headers: {
          ...custom,
          'content-type': 'application/json',
          'user-agent': USER_AGENT,
          'wc-event-type': delivery.event_type,
          'wc-delivery-id': delivery.id,
          'wc-attempt': String(delivery.attempts + 1),
          ...signatureHeaders(secrets, delivery.event_id, Math.floor(Date.now() / 1000), body),
        },
      },
      app.webhookGuard,
    )
    return ended(
      answer.status,
      excerptOf(answer, [...secrets, ...Object.values(custom)]),
      null,
      retryAfter(answer.headers['retry-after']),
    )
  } catch (error) {
    return ended(null, null, reasonOf(error))
  }
}

const dead = ({ result, gone }: Attempted): Attempted => ({
  gone,
  result: { ...result, status: 'dead', retry_in: null },
})

/**
 * The beginning of an answer as text that the database takes. A receiver may send back what it was sent:
 * header values and secrets are blotted out.
 */
const excerptOf = ({ body }: Sent, hidden: readonly string[]): string | null => {
  if (body.length === 0) return null
  let text = body.toString('utf8', 0, 8 * KEPT_BYTES)
  for (const value of hidden) if (value.length >= 4) text = text.replaceAll(value, '****')
  // oxlint-disable-next-line no-control-regex -- the point of it
  const clean = text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, ' ').toWellFormed()
  return Buffer.byteLength(clean) <= KEPT_BYTES
    ? clean
    : new TextDecoder().decode(Buffer.from(clean).subarray(0, KEPT_BYTES)).replace(/\ufffd+$/, '')
}

const reasons: Readonly<Record<string, string>> = {
  ADDRESS_REFUSED: 'The address is not public.',
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was closed before an answer.',
  UND_ERR_SOCKET: 'The connection was closed before an answer.',
  EPIPE: 'The connection was closed before an answer.',
  ENOTFOUND: 'The name does not resolve.',
  EAI_AGAIN: 'The name could not be resolved.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The network cannot be reached.',
  ETIMEDOUT: 'The connection took too long.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection took too long.',
  UND_ERR_HEADERS_TIMEOUT: 'No answer came within 15 seconds.',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the answer are too long.',
}

/** Why no answer came, in our words: an error's own text may name addresses of this network. */
const reasonOf = (error: unknown): string => {
  const { name, code, message } = error as { name?: string; code?: string; message?: string }
  if (name === 'TimeoutError' || name === 'AbortError') return 'No answer came within 15 seconds.'
  if (message?.includes('WCRM_SECRET'))
    return 'The signing secret or the headers were sealed with another WCRM_SECRET.'
  return (
    (code !== undefined && reasons[code]) ||
    (code?.startsWith('HPE_') ? 'The answer is not HTTP.' : `It could not be sent (${code ?? 'unknown'}).`)
  )
}
