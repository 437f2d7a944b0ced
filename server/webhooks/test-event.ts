import { eventTypes } from '../../catalog/events.ts'
import { insertTestDelivery } from '../../storage/webhook-log.ts'
import { newEventId } from '../ids.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { isEventType, unknownEventType } from './event-types.ts'
import { requireEnabled } from './delivery-access.ts'

/**
 * Owes an endpoint an event that did not happen. It is not in the event log, and the endpoint need not be
 * subscribed to its type.
 */
export const sendTestEvent: Handler<InputOf<'webhooks_send_test'>, OutputOf<'webhooks_send_test'>> = async (
  ctx,
  { endpoint_id: endpointId, event_type_id: type, payload },
) => {
  if (!isEventType(type)) throw unknownEventType('event_type_id', type)
  await requireEnabled(ctx, endpointId)
  const eventId = newEventId()
  await insertTestDelivery(
    ctx.tx,
    ctx.actor.workspace.id,
    { endpointId, eventId, type, payload: payload ?? eventTypes[type].sample },
    ctx.now,
  )
  return { event_id: ctx.dryRun ? null : eventId, endpoint_id: endpointId }
}
