import type { EndpointRow } from '../../storage/webhooks.ts'
import type { OutputOf } from '../core/handler.ts'
import type { Sealer } from '../secret.ts'
import { unsealHeaders, unsealSecrets } from './secrets.ts'

/** The last 4 characters; of a value that is no longer than that, none. */
export const maskValue = (value: string): string => `****${value.length > 4 ? value.slice(-4) : ''}`

/** An endpoint as it is shown: nobody is told a secret twice. */
export const showEndpoint = (
  opener: { readonly webhookSealer: Sealer },
  row: EndpointRow,
): OutputOf<'webhooks_get_endpoint'> => ({
  id: row.id,
  url: row.url,
  description: row.description,
  status: row.status,
  custom_headers: Object.fromEntries(
    Object.entries(unsealHeaders(opener, row)).map(([name, value]) => [name, maskValue(value)]),
  ),
  consecutive_failures: row.consecutive_failures,
  disabled_at: row.disabled_at,
  disabled_reason: row.disabled_reason,
  signing_secret: `whsec_${maskValue(unsealSecrets(opener, row)[0]!)}`,
  payload_format: row.payload_format,
  created_at: row.created_at,
  updated_at: row.updated_at,
  subscriptions: {
    count: row.subscriptions.length,
    all_active: row.subscriptions.every(({ active }) => active),
    event_types: row.subscriptions,
  },
})
