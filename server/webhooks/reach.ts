import { type EndpointRow, readEndpoint } from '../../storage/webhooks.ts'
import type { Context } from '../context.ts'
import { notFound } from '../problem.ts'
import type { OutputOf } from '../operations.ts'
import { showEndpoint } from './view.ts'

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
