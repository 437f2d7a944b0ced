import type { Settler, Handler, OutputOf } from '../../handler.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventTypes } from '../../../catalog/events.ts'
import { insertTestDelivery, listAttempts } from '../../../storage/webhooks/log.ts'
import { createEventId } from '../../ids.ts'
import { requireUnrestrictedAccess } from './access.ts'
import { showAttempt } from './deliveries.ts'
import { isEventType, unknownEventTypeProblem } from './event-types.ts'
import { requireEnabledEndpoint } from './require-enabled.ts'

type Answer = OutputOf<'webhooks_send_test'>

/**
 * Sends an endpoint an event that did not happen. It is not in the event log, and the endpoint need not be
 * subscribed to its type.
 */
export const sendTestEvent: Handler<'webhooks_send_test'> = async (ctx, input) => {
  const { endpoint_id: endpointId, event_type_id: type, payload } = input
  requireUnrestrictedAccess(ctx)
  if (!isEventType(type)) throw unknownEventTypeProblem('event_type_id', type)
  await requireEnabledEndpoint(ctx, endpointId)
  const eventId = createEventId()
  const deliveryId = await insertTestDelivery(
    ctx.tx,
    ctx.actor.workspace.id,
    { endpointId, eventId, type, payload: payload ?? eventTypes[type].sample },
    ctx.now,
  )
  return {
    event_id: ctx.dryRun ? null : eventId,
    endpoint_id: endpointId,
    event_type_id: type,
    delivery_id: ctx.dryRun ? null : deliveryId,
    outcome: ctx.dryRun ? null : { status: 'pending' },
  }
}

/** The first looks are close together: most receivers answer at once. */
const FIRST_WAIT_MS = 20
const MAX_WAIT_MS = 250

/** Waits until the first attempt was made, by whichever process delivers, and tells what came of it. */
export const settleTestEvent: Settler<'webhooks_send_test'> = async ({ db }, actor, input, answer) => {
  const until = performance.now() + input.wait_seconds * 1000
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    const [first] = await listAttempts(db, actor.workspace.id, answer.delivery_id!)
    if (first) return { ...answer, outcome: toOutcome(showAttempt(actor, first)) }
    const left = until - performance.now()
    if (left <= 0) return answer
    await sleep(Math.min(wait, left))
  }
}

const toOutcome = (attempt: ReturnType<typeof showAttempt>): Answer['outcome'] => {
  const { number: _number, started_at: _startedAt, trigger: _trigger, ...shown } = attempt
  const status = shown.response_status ?? 0
  return { status: status >= 200 && status < 300 ? 'delivered' : 'failed', ...shown }
}
