import { type EndpointRow, readEndpoint } from '../../storage/webhooks.ts'
import { type Context, phonesHidden } from '../core/context.ts'
import { notFound, Problem } from '../core/problem.ts'
import type { OutputOf } from '../core/handler.ts'
import { showEndpoint } from './view.ts'

/**
 * Endpoints get events whole. Whoever sees a part of the workspace alone may not settle where they go, nor
 * read their secret: it would be a way around the mask. Throws 403.
 */
export const requireWholeSight = ({ actor }: Context): void => {
  if (phonesHidden(actor))
    throw new Problem('forbidden', "Webhooks carry phone numbers, which are hidden from the key's owner.", {
      reason: 'phone_hidden',
    })
  if (actor.staff.channelIds !== null)
    throw new Problem(
      'forbidden',
      "Webhooks carry messages of every channel; the key's owner has access to some.",
      { reason: 'channels_limited' },
    )
}

/** An endpoint to be changed, locked. Throws 404. */
export const lockEndpoint = async ({ tx, actor }: Context, id: string): Promise<EndpointRow> => {
  const row = await readEndpoint(tx, actor.workspace.id, id, true)
  if (!row) throw notFound('webhook endpoint', id)
  return row
}

/** The endpoint as it is now. */
export const shownNow = async (ctx: Context, id: string): Promise<OutputOf<'webhooks_get_endpoint'>> => {
  const row = await readEndpoint(ctx.tx, ctx.actor.workspace.id, id)
  if (!row) throw notFound('webhook endpoint', id)
  return showEndpoint(ctx, row)
}
