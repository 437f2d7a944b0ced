import { currentVersion } from '../../../catalog/index.ts'
import type { ClaimedDelivery } from '../../../storage/webhooks/deliveries.ts'
import type { DeliveryResult } from '../../../storage/webhooks/results.ts'
import type { App } from '../../app.ts'
import { deliveryChannel, traceHeaders } from '../../diagnostics-channels.ts'
import { EVENT_DELETED, explainFailure, type Failure } from './failures.ts'
import { guardedFetch, type WebhookResponse } from '../../outbound-guard.ts'
import { computeRetryDelay, parseRetryAfter } from './schedule.ts'
import { unsealHeaders, unsealSecrets } from './secrets.ts'
import { signatureHeaders } from '../../../catalog/webhooks/sign.ts'

const USER_AGENT = 'wcrm-webhooks/1'
const GONE = 410
const MAX_EXCERPT_BYTES = 1024
/** Ends an excerpt that is not the whole body. */
const ELLIPSIS = '…'

/**
 * The result of an attempt. `gone`: the endpoint answered 410. `ours`: it failed through a fault of this installation,
 * and is retried as any other, but counts for nothing against its endpoint.
 */
export type DeliveryAttempt = { result: DeliveryResult; gone: boolean; ours: boolean }

/** The bytes that are sent and signed, the same on every attempt: a receiver may compare them. */
const buildBody = ({
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

/** Makes one attempt. Never rejects: an error is a failed attempt. */
export const attemptDelivery = (app: App, delivery: ClaimedDelivery): Promise<DeliveryAttempt> =>
  deliveryChannel.tracePromise(() => attempt(app, delivery), {
    id: delivery.id,
    eventId: delivery.event_id,
    eventType: delivery.event_type,
  })

const attempt = async (app: App, delivery: ClaimedDelivery): Promise<DeliveryAttempt> => {
  // Real time, as the retries are; the event's own time is business time.
  const startedAt = app.now()
  const startedMs = performance.now()
  const finish = (
    status: number | null,
    excerpt: string | null,
    failure: Failure | null,
    retryAfter?: number,
  ): DeliveryAttempt => {
    const delivered = status !== null && status >= 200 && status < 300
    const failures = delivered ? delivery.failures : delivery.failures + 1
    const delay = delivered ? undefined : computeRetryDelay(failures, retryAfter)
    const { workspace_id, id, endpoint_id, lease } = delivery
    return {
      gone: status === GONE,
      ours: failure?.ours ?? false,
      result: {
        workspace_id,
        id,
        endpoint_id,
        lease,
        status: delivered ? 'delivered' : delay === undefined ? 'dead' : 'failed',
        failures,
        retry_in: delay ?? null,
        started_at: startedAt,
        duration_ms: Math.round(performance.now() - startedMs),
        response_status: status,
        response_excerpt: excerpt,
        error: failure?.text ?? null,
      },
    }
  }
  if (delivery.data === null) return markDead(finish(null, null, EVENT_DELETED))
  try {
    const endpoint = { ...delivery, id: delivery.endpoint_id }
    const secrets = unsealSecrets(app, endpoint, app.now())
    const custom = unsealHeaders(app, endpoint)
    const body = buildBody(delivery)
    const response = await guardedFetch(
      delivery.url,
      {
        body,
        headers: {
          ...custom,
          'content-type': 'application/json',
          'user-agent': USER_AGENT,
          ...traceHeaders(),
          'wc-event-type': delivery.event_type,
          'wc-delivery-id': delivery.id,
          'wc-attempt': String(delivery.attempts + 1),
          ...signatureHeaders(secrets, delivery.event_id, Math.floor(Date.now() / 1000), body),
        },
      },
      app.webhookGuard,
    )
    return finish(
      response.status,
      toResponseExcerpt(response, [...secrets, ...Object.values(custom)]),
      null,
      parseRetryAfter(response.headers['retry-after']),
    )
  } catch (error) {
    return finish(null, null, explainFailure(error))
  }
}

const markDead = ({ result, ...rest }: DeliveryAttempt): DeliveryAttempt => ({
  ...rest,
  result: { ...result, status: 'dead', retry_in: null },
})

/** How a text can be spelt in a response: as it is, and as JSON escapes it. */
const listSpellings = (text: string): string[] => [text, JSON.stringify(text).slice(1, -1)]

/**
 * The beginning of a response body as text that the database can store. A receiver can echo what it was
 * sent: header values and secrets are masked.
 */
export const toResponseExcerpt = ({ body }: WebhookResponse, secrets: readonly string[]): string | null => {
  if (body.length === 0) return null
  let text = body.toString('utf8', 0, 8 * MAX_EXCERPT_BYTES)
  // The longest first: of one that begins with another the rest would stay.
  const spellings = secrets.flatMap(listSpellings).toSorted((a, b) => b.length - a.length)
  for (const spelling of spellings) if (spelling.length >= 4) text = text.replaceAll(spelling, '****')
  // oxlint-disable-next-line no-control-regex -- control characters are what must be replaced
  const clean = text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, ' ').toWellFormed()
  if (Buffer.byteLength(clean) <= MAX_EXCERPT_BYTES) return clean
  const kept = Buffer.from(clean).subarray(0, MAX_EXCERPT_BYTES - Buffer.byteLength(ELLIPSIS))
  return new TextDecoder().decode(kept).replace(/\ufffd+$/, '') + ELLIPSIS
}
