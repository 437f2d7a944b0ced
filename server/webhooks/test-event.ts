import { eventTypes } from '../../catalog/events.ts'
import { requireUnrestrictedAccess } from './access.ts'
import { insertTestDelivery } from '../../storage/webhook-log.ts'
import { createEventId } from '../ids.ts'
import type { Handler } from '../core/handler.ts'
import { isEventType, unknownEventTypeProblem } from './event-types.ts'
import { requireEnabledEndpoint } from './require-enabled.ts'

/**
 * Sends an endpoint an event that did not happen. It is not in the event log, and the endpoint need not be
 * subscribed to its type.
 */
export const sendTestEvent: Handler<'webhooks_send_test'> = async (
  ctx,
  { endpoint_id: endpointId, event_type_id: type, payload },
) => {
  requireUnrestrictedAccess(ctx)
  if (!isEventType(type)) throw unknownEventTypeProblem('event_type_id', type)
  await requireEnabledEndpoint(ctx, endpointId)
  const eventId = createEventId()
  await insertTestDelivery(
    ctx.tx,
    ctx.actor.workspace.id,
    { endpointId, eventId, type, payload: payload ?? eventTypes[type].sample },
    ctx.now,
  )
  return { event_id: ctx.dryRun ? null : eventId, endpoint_id: endpointId }
}
