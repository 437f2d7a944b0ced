import type { Handler, OutputOf } from '../../handler.ts'
import {
  listAttempts,
  type AttemptRow,
  type DeliveryRow,
  listDeliveryPage,
  findDelivery,
  findEndpointStatus,
} from '../../../storage/webhooks/log.ts'
import type { Actor } from '../../kernel/context.ts'
import { notFound } from '../../kernel/problem.ts'
import { showQuotingText } from '../../visibility/phones.ts'
import { canSeeManagerFields, hasHiddenPhones } from '../../visibility/policy.ts'
import { requireDeliveryLog } from './access.ts'
import { matchEventTypes } from './event-types.ts'

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
export const showAttempt = (
  actor: Actor,
  row: AttemptRow,
): OutputOf<'webhooks_get_delivery'>['attempt_history'][number] => {
  return {
    number: row.number,
    started_at: row.started_at,
    duration_ms: row.duration_ms,
    ...(row.response_status === null ? {} : { response_status: row.response_status }),
    // A receiver can echo whatever it was sent, phones and the names of manager-only fields included.
    ...(row.response_excerpt === null || !canSeeManagerFields(actor) || hasHiddenPhones(actor)
      ? {}
      : { response_excerpt: row.response_excerpt }),
    ...(row.error === null ? {} : { error: showQuotingText(actor, row.error) }),
    trigger: row.trigger,
  }
}

/** A type that this version does not know may have deliveries of an earlier one. */
const listFilterTypes = (name: string): string[] => {
  const matching = matchEventTypes(name)
  return matching.length > 0 ? matching : [name]
}

export const listDeliveries: Handler<'webhooks_list_deliveries'> = async (ctx, input) => {
  requireDeliveryLog(ctx)
  const { endpoint_id: id, status, event_type_id: type, from, to, limit } = input
  const position = ctx.cursors.open(input.cursor)
  if (!(await findEndpointStatus(ctx.tx, ctx.actor.workspace.id, id))) throw notFound('endpoint', id)
  const after = position && { createdAt: String(position[0]), id: String(position[1]) }
  const rows = await listDeliveryPage(
    ctx.tx,
    ctx.actor.workspace.id,
    id,
    { status, types: type === undefined ? undefined : listFilterTypes(type), from, to },
    after,
    limit + 1,
  )
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return {
    data: rows.slice(0, limit).map(showDelivery),
    next_cursor: last ? ctx.cursors.seal([last.created_at, last.id]) : null,
  }
}

export const getDelivery: Handler<'webhooks_get_delivery'> = async (ctx, { delivery_id: id }) => {
  requireDeliveryLog(ctx)
  const { tx, actor } = ctx
  const row = await findDelivery(tx, actor.workspace.id, id)
  if (!row) throw notFound('delivery', id)
  return {
    ...showDelivery(row),
    attempt_history: (await listAttempts(tx, actor.workspace.id, id)).map((attempt) =>
      showAttempt(actor, attempt),
    ),
  }
}
