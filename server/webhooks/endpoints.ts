import {
  deleteEndpointRow,
  disableEndpointRow,
  enableEndpointRow,
  insertEndpoint,
  pageOfEndpoints,
  replaceSubscriptions,
} from '../../storage/webhooks.ts'
import { ulid } from '../ids.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { checkHeaders } from './headers.ts'
import { lockEndpoint, requireWholeSight, shownNow } from './access.ts'
import { newSecret, sealHeaders, sealSecret } from './secrets.ts'
import { checkEventTypes } from './subscriptions.ts'
import { showEndpoint } from './view.ts'

export const listEndpoints: Handler<
  InputOf<'webhooks_list_endpoints'>,
  OutputOf<'webhooks_list_endpoints'>
> = async (ctx, { status, url_contains: urlContains, limit, cursor }) => {
  const position = ctx.cursors.open(cursor)
  const after = position && { createdAt: String(position[0]), id: String(position[1]) }
  const rows = await pageOfEndpoints(
    ctx.tx,
    ctx.actor.workspace.id,
    { status, urlContains },
    after,
    limit + 1,
  )
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return {
    data: rows.slice(0, limit).map((row) => showEndpoint(ctx, row)),
    next_cursor: last ? ctx.cursors.seal([last.created_at, last.id]) : null,
  }
}

export const getEndpoint: Handler<InputOf<'webhooks_get_endpoint'>, OutputOf<'webhooks_get_endpoint'>> = (
  ctx,
  { endpoint_id: id },
) => shownNow(ctx, id)

export const createEndpoint: Handler<
  InputOf<'webhooks_create_endpoint'>,
  OutputOf<'webhooks_create_endpoint'>
> = async (ctx, input) => {
  requireWholeSight(ctx)
  const { custom_headers: headers = {}, event_types: given = [], description = null, payload_format } = input
  checkHeaders(headers)
  const types = checkEventTypes(given)
  const url = await ctx.checkWebhookUrl(input.url)
  const place = { workspace_id: ctx.actor.workspace.id, id: `ep_${ulid()}` }
  const secret = newSecret()
  await insertEndpoint(
    ctx.tx,
    place.workspace_id,
    place.id,
    {
      url,
      description,
      payload_format,
      custom_headers: sealHeaders(ctx, place, headers),
      signing_secret: sealSecret(ctx, place, secret),
    },
    ctx.now,
  )
  if (types.length > 0) await replaceSubscriptions(ctx.tx, place.workspace_id, place.id, types, ctx.now)
  const endpoint = await shownNow(ctx, place.id)
  // A rehearsal makes a secret that nobody will have.
  return ctx.dryRun
    ? { endpoint: { ...endpoint, id: null, signing_secret: 'whsec_****' }, signing_secret: null }
    : { endpoint, signing_secret: secret }
}

export const deleteEndpoint: Handler<
  InputOf<'webhooks_delete_endpoint'>,
  OutputOf<'webhooks_delete_endpoint'>
> = async (ctx, { endpoint_id: id }) => {
  const { workspace_id: workspaceId, url, description, status } = await lockEndpoint(ctx, id)
  ctx.note({ url, description, status }, null)
  await deleteEndpointRow(ctx.tx, workspaceId, id, ctx.now)
  return { id, deleted: true }
}

export const disableEndpoint: Handler<
  InputOf<'webhooks_disable_endpoint'>,
  OutputOf<'webhooks_disable_endpoint'>
> = async (ctx, { endpoint_id: id }) => {
  const { workspace_id: workspaceId, status, url, consecutive_failures } = await lockEndpoint(ctx, id)
  const changed = status !== 'disabled'
  ctx.note({ status }, { status: 'disabled' })
  if (changed) {
    await disableEndpointRow(ctx.tx, workspaceId, id, 'manual', ctx.now)
    ctx.emit('webhook.endpoint_disabled/1', { endpoint: { id, url, consecutive_failures }, reason: 'manual' })
  }
  return { endpoint: await shownNow(ctx, id), changed }
}

export const enableEndpoint: Handler<
  InputOf<'webhooks_enable_endpoint'>,
  OutputOf<'webhooks_enable_endpoint'>
> = async (ctx, { endpoint_id: id }) => {
  requireWholeSight(ctx)
  const { workspace_id: workspaceId, status } = await lockEndpoint(ctx, id)
  const changed = status !== 'active'
  ctx.note({ status }, { status: 'active' })
  if (changed) await enableEndpointRow(ctx.tx, workspaceId, id, ctx.now)
  return { endpoint: await shownNow(ctx, id), changed }
}
