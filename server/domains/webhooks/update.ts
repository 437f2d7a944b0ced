import { checkWebhookUrl } from '../../outbound-guard.ts'
import type { Handler } from '../../handler.ts'
import { updateEndpointRow } from '../../../storage/webhooks/webhooks.ts'
import { canonicalJson } from '../../kernel/cursors.ts'
import { invalidField } from '../../kernel/problem.ts'
import { validateCustomHeaders } from './headers.ts'
import { lockEndpoint, recordAddressGiver, requireUnrestrictedAccess, showCurrentEndpoint } from './access.ts'
import { sealHeaders, unsealHeaders } from './secrets.ts'
import { maskValue } from './view.ts'

/** A client that sends back what it was shown would replace a value by its mask. */
const rejectMaskedValues = (given: Record<string, string>, present: Record<string, string>): void => {
  for (const [name, value] of Object.entries(given)) {
    const kept = present[name]
    if (kept !== undefined && kept !== value && maskValue(kept) === value) {
      throw invalidField('custom_headers', 'masked_value', `has the masked value of ${name}`, {
        path: [name],
        fix: 'Send the full value: custom_headers replaces all headers.',
      })
    }
  }
}

export const updateEndpoint: Handler<'webhooks_update_endpoint'> = async (ctx, input) => {
  requireUnrestrictedAccess(ctx)
  if (input.custom_headers) validateCustomHeaders(input.custom_headers)
  // Before the lock: a name server can take long.
  const url =
    input.url === undefined
      ? undefined
      : (await checkWebhookUrl(input.url, ctx.services.webhookGuard)).url.href
  const row = await lockEndpoint(ctx, input.endpoint_id)
  const headers = unsealHeaders(ctx.services, row)
  if (input.custom_headers) rejectMaskedValues(input.custom_headers, headers)
  const present = {
    url: row.url,
    description: row.description,
    custom_headers: headers,
    payload_format: row.payload_format,
  }
  const next = {
    url: url ?? row.url,
    description: input.description === undefined ? row.description : input.description,
    custom_headers: input.custom_headers ?? headers,
    payload_format: input.payload_format ?? row.payload_format,
  }
  const changed = (Object.keys(present) as (keyof typeof present)[]).filter(
    (field) => canonicalJson(next[field]) !== canonicalJson(present[field]),
  )
  ctx.auditChange(present, next)
  if (changed.length > 0)
    await updateEndpointRow(
      ctx.tx,
      row.workspace_id,
      row.id,
      { ...next, custom_headers: sealHeaders(ctx.services, row, next.custom_headers) },
      ctx.now,
    )
  if (next.url !== row.url) await recordAddressGiver(ctx, row.id)
  return { endpoint: await showCurrentEndpoint(ctx, row.id), changed }
}
