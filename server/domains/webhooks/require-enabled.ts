import type { Context } from '../../handler.ts'
import { findEndpointStatus } from '../../../storage/webhooks/log.ts'
import { notFound, Problem } from '../../kernel/problem.ts'

/** Checks that something can be sent to an endpoint on request. Throws 404, or 409 when it is disabled. */
export const requireEnabledEndpoint = async (ctx: Context, id: string): Promise<void> => {
  const state = await findEndpointStatus(ctx.tx, ctx.actor.workspace.id, id, true)
  if (!state || state.deleted) throw notFound('endpoint', id)
  if (state.status === 'disabled') throw endpointDisabledProblem(id)
}

export const endpointDisabledProblem = (id: string): Problem =>
  new Problem('conflict', `The endpoint ${id} is disabled. Enable it first, with webhooks_enable_endpoint.`, {
    reason: 'endpoint_disabled',
  })
