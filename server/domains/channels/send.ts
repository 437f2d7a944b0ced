import type { ChannelDelivery } from '../../../storage/channels/deliveries.ts'
import type { App } from '../../app.ts'
import { isObject } from '../../../catalog/values.ts'
import { explainFailure } from '../webhooks/failures.ts'
import { guardedFetch, type WebhookResponse } from '../../outbound-guard.ts'
import { parseRetryAfter } from '../webhooks/schedule.ts'
import { toResponseExcerpt } from '../webhooks/send.ts'
import { signatureHeaders } from '../../../catalog/webhooks/sign.ts'
import { computeChannelRetryDelay } from './schedule.ts'
import { unsealSigningSecrets } from './secrets.ts'

/** `attempts`: that failed before. */
type Attempted = ChannelDelivery & { attempts: number }

/** What came of an attempt. `reason`: why the bridge did not take the reply, for staff. */
export type ChannelAttempt =
  | { outcome: 'taken' }
  | { outcome: 'retry'; retryInSeconds: number; reason: string }
  | { outcome: 'failed'; reason: string }

const MAX_REASON_LENGTH = 300
/** Refusals that concern the moment, not the message. */
const TRANSIENT_STATUSES = new Set([408, 425, 429])

/** Makes one attempt. Never rejects: an error is a failed attempt. */
export const attemptChannelDelivery = async (app: App, delivery: Attempted): Promise<ChannelAttempt> => {
  if (delivery.expires_in <= 0 || delivery.url === null || delivery.signing_secrets === null)
    return { outcome: 'failed', reason: explainExpiry(delivery) }
  try {
    const { workspace_id, channel_id, signing_secrets, body } = delivery
    const secrets = unsealSigningSecrets(app, { workspace_id, channel_id, signing_secrets }, app.now())
    const response = await guardedFetch(
      delivery.url,
      {
        body,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'wcrm-channels/1',
          'wc-channel-id': channel_id,
          'wc-attempt': String(delivery.attempts + 1),
          ...signatureHeaders(secrets, delivery.message_id, Math.floor(Date.now() / 1000), body),
        },
      },
      app.webhookGuard,
    )
    return judgeResponse(delivery, response, secrets)
  } catch (error) {
    return retryOrFail(delivery, explainFailure(error).text, undefined)
  }
}

const explainExpiry = ({ error }: Attempted): string =>
  error === null
    ? 'The channel took no replies for 24 hours.'
    : `The bridge of the channel did not take it within 24 hours. ${error}`

const judgeResponse = (
  delivery: Attempted,
  response: WebhookResponse,
  secrets: readonly string[],
): ChannelAttempt => {
  const { status } = response
  if (status >= 200 && status < 300) return { outcome: 'taken' }
  const reason = `The bridge answered ${status}${explainBody(response, secrets)}`
  return status >= 400 && status < 500 && !TRANSIENT_STATUSES.has(status)
    ? { outcome: 'failed', reason }
    : retryOrFail(delivery, reason, parseRetryAfter(response.headers['retry-after']))
}

const retryOrFail = (
  { attempts }: Attempted,
  reason: string,
  retryAfter: number | undefined,
): ChannelAttempt => {
  const retryInSeconds = computeChannelRetryDelay(attempts + 1, retryAfter)
  return retryInSeconds === undefined
    ? { outcome: 'failed', reason: `${reason} It was tried ${attempts + 1} times.` }
    : { outcome: 'retry', retryInSeconds, reason }
}

/** What the bridge says about its refusal: the text of a problem or an error, else the text itself. */
const explainBody = (response: WebhookResponse, secrets: readonly string[]): string => {
  const found = findText(response.body.toString())
  const body = found === undefined ? response.body : Buffer.from(found)
  const text = (toResponseExcerpt({ ...response, body }, secrets) ?? '').replaceAll(/\s+/g, ' ').trim()
  if (text === '' || (found === undefined && /^[<{[]/.test(text))) return '.'
  const cut = text.length > MAX_REASON_LENGTH ? `${text.slice(0, MAX_REASON_LENGTH).toWellFormed()}…` : text
  return `: ${cut}`
}

const findText = (json: string): string | undefined => {
  try {
    const value: unknown = JSON.parse(json)
    if (!isObject(value)) return undefined
    return [value['detail'], value['error'], value['message']].find((one) => typeof one === 'string')
  } catch {
    return undefined
  }
}
