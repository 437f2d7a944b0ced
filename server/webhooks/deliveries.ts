import {
  listAttempts,
  type AttemptRow,
  type DeliveryRow,
  listDeliveryPage,
  findDelivery,
  findEndpointStatus,
} from '../../storage/webhook-log.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, hasHiddenPhones } from '../core/context.ts'
import type { Handler, OutputOf } from '../core/handler.ts'
import { notFound } from '../core/problem.ts'

export const showDelivery = (row: DeliveryRow): OutputOf<'webhooks_list_deliveries'>['data'][number] => ({
  id: row.id,
  endpoint_id: row.endpoint_id,
  event_id: row.event_id,
  event_type_id: row.event_type,
  status: row.status,
  attempts: row.attempts,
  // A finished delivery is not attempted again, even when its row still has a time.
  next_attempt_at: row.status === 'pending' || row.status === 'failed' ? row.next_attempt_at : null,
  last_response_status: row.last_response_status,
  created_at: row.created_at,
  delivered_at: row.delivered_at,
})

/** A receiver can echo what it was sent, phone numbers included. */
const showAttempt = (
  actor: Actor,
  row: AttemptRow,
): OutputOf<'webhooks_get_delivery'>['attempts_made'][number] => {
  const text = (value: string): string => (hasHiddenPhones(actor) ? maskDigits(value)! : value)
  return {
    number: row.number,
    started_at: row.started_at,
    duration_ms: row.duration_ms,
    ...(row.response_status === null ? {} : { response_status: row.response_status }),
    ...(row.response_excerpt === null ? {} : { response_excerpt: text(row.response_excerpt) }),
    ...(row.error === null ? {} : { error: text(row.error) }),
    trigger: row.trigger,
  }
}

export const listDeliveries: Handler<'webhooks_list_deliveries'> = async (ctx, input) => {
  const { endpoint_id: id, status, event_type_id: type, from, to, limit } = input
  const position = ctx.cursors.open(input.cursor)
  if (!(await findEndpointStatus(ctx.tx, ctx.actor.workspace.id, id))) throw notFound('endpoint', id)
  const after = position && { createdAt: String(position[0]), id: String(position[1]) }
  const rows = await listDeliveryPage(
    ctx.tx,
    ctx.actor.workspace.id,
    id,
    { status, type, from, to },
    after,
    limit + 1,
  )
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return {
    data: rows.slice(0, limit).map(showDelivery),
    next_cursor: last ? ctx.cursors.seal([last.created_at, last.id]) : null,
  }
}

export const getDelivery: Handler<'webhooks_get_delivery'> = async ({ tx, actor }, { delivery_id: id }) => {
  const row = await findDelivery(tx, actor.workspace.id, id)
  if (!row) throw notFound('delivery', id)
  return {
    ...showDelivery(row),
    attempts_made: (await listAttempts(tx, actor.workspace.id, id)).map((attempt) =>
      showAttempt(actor, attempt),
    ),
  }
}
