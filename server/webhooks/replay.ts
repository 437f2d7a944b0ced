import { isPayloadKept, readDelivery, readEndpointState, repeatDelivery } from '../../storage/webhook-log.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { notFound, Problem } from '../core/problem.ts'
import { showDelivery } from './deliveries.ts'
import { disabled } from './delivery-access.ts'

/** Sends a delivery once more; its event keeps its id, so that a receiver knows it again. */
export const replayDelivery: Handler<
  InputOf<'webhooks_replay_delivery'>,
  OutputOf<'webhooks_replay_delivery'>
> = async ({ tx, actor }, { delivery_id: id }) => {
  const workspaceId = actor.workspace.id
  const delivery = await readDelivery(tx, workspaceId, id)
  if (!delivery) throw notFound('delivery', id)
  // Locked before the delivery, as every other change does.
  const endpoint = await readEndpointState(tx, workspaceId, delivery.endpoint_id, true)
  if (!endpoint || endpoint.deleted)
    throw new Problem(
      'conflict',
      `The endpoint ${delivery.endpoint_id} was deleted; its deliveries can be read, and no longer sent.`,
      { reason: 'endpoint_deleted' },
    )
  if (endpoint.status === 'disabled') throw disabled(delivery.endpoint_id)
  if ((await readDelivery(tx, workspaceId, id, true))?.status === 'skipped')
    throw new Problem('conflict', `The delivery ${id} was dropped with its endpoint and cannot be sent.`, {
      reason: 'delivery_skipped',
    })
  if (!(await isPayloadKept(tx, workspaceId, id)))
    throw new Problem(
      'conflict',
      `The event ${delivery.event_id} is older than the server keeps events, so that it cannot be sent again.`,
      { reason: 'event_gone' },
    )
  return { delivery: showDelivery(await repeatDelivery(tx, workspaceId, id)) }
}
