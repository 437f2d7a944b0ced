import { readEndpointState } from '../../storage/webhook-log.ts'
import type { Context } from '../core/context.ts'
import { notFound, Problem } from '../core/problem.ts'

/** An endpoint to which something is to be sent on request. Throws 404, or 409 while it is disabled. */
export const requireEnabled = async (ctx: Context, id: string): Promise<void> => {
  const state = await readEndpointState(ctx.tx, ctx.actor.workspace.id, id, true)
  if (!state || state.deleted) throw notFound('endpoint', id)
  if (state.status === 'disabled') throw disabled(id)
}

export const disabled = (id: string): Problem =>
  new Problem('conflict', `The endpoint ${id} is disabled. Enable it first, with webhooks_enable_endpoint.`, {
    reason: 'endpoint_disabled',
  })
