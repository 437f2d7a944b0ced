import type { EventPosition } from '../../storage/events.ts'
import { recoverDeliveries, findEventLogSpan } from '../../storage/webhook-log.ts'
import type { Handler } from '../core/handler.ts'
import { invalidField, type Problem } from '../core/problem.ts'
import { requireDeliveryLog } from './access.ts'
import { requireEnabledEndpoint } from './require-enabled.ts'

const MAX_SPAN_MS = 14 * 86_400_000
/** Events that one statement scans. */
const EVENTS_PER_STEP = 5000
/** Deliveries that one call makes due, and events that it scans: one transaction, which has a deadline of 30 s. */
const MAX_RECOVERED = 100_000
const MAX_SCANNED = 1_000_000

const tooManyEvents = (detail: string): Problem =>
  invalidField('to', 'too_many_events', detail, {
    reason: 'too_many_events',
    fix: 'Recover a shorter span at a time.',
  })

export const recoverEndpoint: Handler<'webhooks_recover_endpoint'> = async (
  ctx,
  { endpoint_id: id, from, to },
) => {
  requireDeliveryLog(ctx)
  const length = Date.parse(to) - Date.parse(from)
  if (!(length > 0))
    throw invalidField('to', 'invalid_value', 'is not after from', { fix: 'Send a later time.' })
  if (length > MAX_SPAN_MS)
    throw invalidField('from', 'too_long', 'is more than 14 days before to', {
      fix: 'Recover 14 days at a time.',
    })
  await requireEnabledEndpoint(ctx, id)
  const workspaceId = ctx.actor.workspace.id
  const span = await findEventLogSpan(ctx.tx, workspaceId, from, to)
  let recovered = 0
  let position: EventPosition | undefined
  for (let scanned = 0; span; scanned += EVENTS_PER_STEP) {
    if (scanned >= MAX_SCANNED) throw tooManyEvents(`ends a span of more than ${MAX_SCANNED} events`)
    const step = await recoverDeliveries(
      ctx.tx,
      workspaceId,
      id,
      { ...span, from, to },
      position,
      ctx.now,
      EVENTS_PER_STEP,
    )
    recovered += step.recovered
    if (recovered > MAX_RECOVERED)
      throw tooManyEvents(`ends a span in which the endpoint missed more than ${MAX_RECOVERED} events`)
    if (!(position = step.reached)) break
  }
  return { endpoint_id: id, recovered }
}
