import { checkWebhookUrl } from '../../outbound-guard.ts'
import type { Handler } from '../../handler.ts'
import {
  deleteEndpointRow,
  disableEndpointRow,
  enableEndpointRow,
  insertEndpoint,
  listEndpointPage,
  replaceSubscriptions,
} from '../../../storage/webhooks/webhooks.ts'
import { createUlid } from '../../ids.ts'
import { validateCustomHeaders } from './headers.ts'
import { lockEndpoint, recordAddressGiver, requireUnrestrictedAccess, showCurrentEndpoint } from './access.ts'
import { createSigningSecret, sealHeaders, sealSecret } from './secrets.ts'
import { validateEventTypes } from './subscriptions.ts'
import { showEndpoint } from './view.ts'

export const listEndpoints: Handler<'webhooks_list_endpoints'> = async (
  ctx,
  { status, url_contains: urlContains, limit, cursor },
) => {
  const position = ctx.cursors.open(cursor)
  const after = position && { createdAt: String(position[0]), id: String(position[1]) }
  const rows = await listEndpointPage(
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

export const getEndpoint: Handler<'webhooks_get_endpoint'> = (ctx, { endpoint_id: id }) =>
  showCurrentEndpoint(ctx, id)

export const createEndpoint: Handler<'webhooks_create_endpoint'> = async (ctx, input) => {
  requireUnrestrictedAccess(ctx)
  const { custom_headers: headers = {}, event_types: given = [], description = null, payload_format } = input
  validateCustomHeaders(headers)
  const types = validateEventTypes(given)
  const url = (await checkWebhookUrl(input.url, ctx.services.webhookGuard)).url.href
  const key = { workspace_id: ctx.actor.workspace.id, id: `ep_${createUlid()}` }
  const secret = createSigningSecret()
  await insertEndpoint(
    ctx.tx,
    key.workspace_id,
    key.id,
    {
      url,
      description,
      payload_format,
      custom_headers: sealHeaders(ctx.services, key, headers),
      signing_secret: sealSecret(ctx.services, key, secret),
    },
    ctx.now,
  )
  await recordAddressGiver(ctx, key.id)
  if (types.length > 0) await replaceSubscriptions(ctx.tx, key.workspace_id, key.id, types, ctx.now)
  const endpoint = await showCurrentEndpoint(ctx, key.id)
  // The secret of a dry run belongs to no endpoint.
  return ctx.dryRun
    ? { endpoint: { ...endpoint, id: null, signing_secret: 'whsec_****' }, signing_secret: null }
    : { endpoint, signing_secret: secret }
}

export const deleteEndpoint: Handler<'webhooks_delete_endpoint'> = async (ctx, { endpoint_id: id }) => {
  requireUnrestrictedAccess(ctx)
  const { workspace_id: workspaceId, url, description, status } = await lockEndpoint(ctx, id)
  ctx.auditChange({ url, description, status }, null)
  await deleteEndpointRow(ctx.tx, workspaceId, id, ctx.now)
  return { id, deleted: true }
}

export const disableEndpoint: Handler<'webhooks_disable_endpoint'> = async (ctx, { endpoint_id: id }) => {
  requireUnrestrictedAccess(ctx)
  const { workspace_id: workspaceId, status, url, consecutive_failures } = await lockEndpoint(ctx, id)
  const changed = status !== 'disabled'
  ctx.auditChange({ status }, { status: 'disabled' })
  if (changed) {
    await disableEndpointRow(ctx.tx, workspaceId, id, 'manual', ctx.now)
    ctx.emit('webhook.endpoint_disabled/1', { endpoint: { id, url, consecutive_failures }, reason: 'manual' })
  }
  return { endpoint: await showCurrentEndpoint(ctx, id), changed }
}

export const enableEndpoint: Handler<'webhooks_enable_endpoint'> = async (ctx, { endpoint_id: id }) => {
  requireUnrestrictedAccess(ctx)
  const { workspace_id: workspaceId, status } = await lockEndpoint(ctx, id)
  const changed = status !== 'active'
  ctx.auditChange({ status }, { status: 'active' })
  if (changed) await enableEndpointRow(ctx.tx, workspaceId, id, ctx.now)
  return { endpoint: await showCurrentEndpoint(ctx, id), changed }
}
