import type { Context, OutputOf } from '../../handler.ts'
import { type EndpointRow, findEndpoint, setEndpointForAgents } from '../../../storage/webhooks/webhooks.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { showEndpoint } from './view.ts'
import { requireAllChannels } from '../../visibility/channels.ts'
import { withPhonesFix } from '../../visibility/phones.ts'
import { canSeeManagerFields, hasHiddenPhones } from '../../visibility/policy.ts'

/**
 * Endpoints receive events unmasked and of all channels. Staff who may see only a part of the workspace may
 * neither choose where events go nor read a secret, which would bypass the restriction, nor stop what they could
 * not start again. Throws 403.
 */
export const requireUnrestrictedAccess = ({ actor }: Context): void => {
  if (hasHiddenPhones(actor))
    throw new Problem(
      'forbidden',
      withPhonesFix(actor, 'Webhooks carry phone numbers, which are hidden from you.'),
      { reason: 'phone_hidden' },
    )
  requireAllChannels(actor, 'Webhooks carry messages')
}

/**
 * A delivery says that something happened, when, and what the receiver answered, on whatever channel. Throws
 * 403 `channels_limited`.
 */
export const requireDeliveryLog = ({ actor }: Context): void =>
  requireAllChannels(actor, 'The delivery log holds events')

/** Records who gave the address of an endpoint: an agent's is sent no names of manager-only fields. */
export const recordAddressGiver = async ({ tx, actor }: Context, id: string): Promise<void> =>
  setEndpointForAgents(tx, actor.workspace.id, id, !canSeeManagerFields(actor))

/** Locks an endpoint to change it. Throws 404. */
export const lockEndpoint = async ({ tx, actor }: Context, id: string): Promise<EndpointRow> => {
  const row = await findEndpoint(tx, actor.workspace.id, id, true)
  if (!row) throw notFound('webhook endpoint', id)
  return row
}

/** Reads the endpoint again, as the response shows it. Throws 404. */
export const showCurrentEndpoint = async (
  ctx: Context,
  id: string,
): Promise<OutputOf<'webhooks_get_endpoint'>> => {
  const row = await findEndpoint(ctx.tx, ctx.actor.workspace.id, id)
  if (!row) throw notFound('webhook endpoint', id)
  return showEndpoint(ctx, row)
}
