import type { Context, OutputOf } from '../../handler.ts'
import type { EndpointRow } from '../../../storage/webhooks/webhooks.ts'
import { unsealHeaders, unsealSecrets } from './secrets.ts'

/** Masks all but the last 4 characters; a value of at most 4 characters is masked entirely. */
export const maskValue = (value: string): string => `****${value.length > 4 ? value.slice(-4) : ''}`

/** An endpoint as clients see it: its secret was shown once, when it was created. */
export const showEndpoint = (
  { services, realNow }: Pick<Context, 'services' | 'realNow'>,
  row: EndpointRow,
): OutputOf<'webhooks_get_endpoint'> => ({
  id: row.id,
  url: row.url,
  description: row.description,
  status: row.status,
  custom_headers: Object.fromEntries(
    Object.entries(unsealHeaders(services, row)).map(([name, value]) => [name, maskValue(value)]),
  ),
  consecutive_failures: row.consecutive_failures,
  disabled_at: row.disabled_at,
  disabled_reason: row.disabled_reason,
  signing_secret: `whsec_${maskValue(unsealSecrets(services, row, realNow)[0]!)}`,
  payload_format: row.payload_format,
  created_at: row.created_at,
  updated_at: row.updated_at,
  subscriptions: {
    count: row.subscriptions.length,
    all_active: row.subscriptions.every(({ active }) => active),
    event_types: row.subscriptions,
  },
  version: String(row.version),
})
