import { updateEndpointRow } from '../../storage/webhooks.ts'
import { canonicalJson } from '../core/cursors.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'
import { checkHeaders } from './headers.ts'
import { lockEndpoint, requireWholeSight, shownNow } from './access.ts'
import { sealHeaders, unsealHeaders } from './secrets.ts'
import { maskValue } from './view.ts'

/** Whoever sends back what was shown would replace a value by its mask. */
const refuseMasked = (given: Record<string, string>, present: Record<string, string>): void => {
  for (const [name, value] of Object.entries(given)) {
    const kept = present[name]
    if (kept !== undefined && kept !== value && maskValue(kept) === value) {
      throw invalidField('custom_headers', 'masked_value', `has the masked value of ${name}`, {
        path: [name],
        fix: 'Send the whole value: custom_headers replaces all of them.',
      })
    }
  }
}

export const updateEndpoint: Handler<
  InputOf<'webhooks_update_endpoint'>,
  OutputOf<'webhooks_update_endpoint'>
> = async (ctx, input) => {
  requireWholeSight(ctx)
  if (input.custom_headers) checkHeaders(input.custom_headers)
  // Before the lock: a name server may take its time.
  const url = input.url === undefined ? undefined : await ctx.checkWebhookUrl(input.url)
  const row = await lockEndpoint(ctx, input.endpoint_id)
  const headers = unsealHeaders(ctx, row)
  if (input.custom_headers) refuseMasked(input.custom_headers, headers)
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
  ctx.note(present, next)
  if (changed.length > 0)
    await updateEndpointRow(
      ctx.tx,
      row.workspace_id,
      row.id,
      { ...next, custom_headers: sealHeaders(ctx, row, next.custom_headers) },
      ctx.now,
    )
  return { endpoint: await shownNow(ctx, row.id), changed }
}
