import type { Handler } from '../../handler.ts'
import {
  hasPayload,
  findDelivery,
  findEndpointStatus,
  rescheduleDelivery,
} from '../../../storage/webhooks/log.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { requireDeliveryLog } from './access.ts'
import { showDelivery } from './deliveries.ts'
import { endpointDisabledProblem } from './require-enabled.ts'

/** Sends a delivery again. Its event keeps its id, so that a receiver can recognize it. */
export const replayDelivery: Handler<'webhooks_replay_delivery'> = async (ctx, { delivery_id: id }) => {
  requireDeliveryLog(ctx)
  const { tx, actor } = ctx
  const workspaceId = actor.workspace.id
  const delivery = await findDelivery(tx, workspaceId, id)
  if (!delivery) throw notFound('delivery', id)
  // Locked before the delivery, as in every other change.
  const endpoint = await findEndpointStatus(tx, workspaceId, delivery.endpoint_id, true)
  if (!endpoint || endpoint.deleted)
    throw new Problem(
      'conflict',
      `The endpoint ${delivery.endpoint_id} was deleted; its deliveries can be read, but no longer sent.`,
      { reason: 'endpoint_deleted' },
    )
  if (endpoint.status === 'disabled') throw endpointDisabledProblem(delivery.endpoint_id)
  // Its retention period may end meanwhile.
  if (!(await findDelivery(tx, workspaceId, id, true))) throw notFound('delivery', id)
  if (!(await hasPayload(tx, workspaceId, id)))
    throw new Problem(
      'conflict',
      `The event ${delivery.event_id} is older than the retention of events and cannot be sent again.`,
      { reason: 'event_gone' },
    )
  return { delivery: showDelivery(await rescheduleDelivery(tx, workspaceId, id)) }
}
