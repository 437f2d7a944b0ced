import type { Position } from '../../storage/events.ts'
import { recoverDeliveries, spanOf } from '../../storage/webhook-log.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'
import { requireEnabled } from './delivery-access.ts'

const LONGEST_MS = 14 * 86_400_000
/**
 * Events that one statement looks at, and deliveries that one call makes due: it is one transaction, which
 * may last half a minute.
 */
const STEP = 5000
const MOST = 100_000

export const recoverEndpoint: Handler<
  InputOf<'webhooks_recover_endpoint'>,
  OutputOf<'webhooks_recover_endpoint'>
> = async (ctx, { endpoint_id: id, from, to }) => {
  const length = Date.parse(to) - Date.parse(from)
  if (!(length > 0))
    throw invalidField('to', 'invalid_value', 'is not after from', { fix: 'Send a later time.' })
  if (length > LONGEST_MS)
    throw invalidField('from', 'too_long', 'is more than 14 days before to', {
      fix: 'Recover 14 days at a time.',
    })
  await requireEnabled(ctx, id)
  const workspaceId = ctx.actor.workspace.id
  const span = await spanOf(ctx.tx, workspaceId, from, to)
  let recovered = 0
  let position: Position | undefined
  while (span) {
    const step = await recoverDeliveries(
      ctx.tx,
      workspaceId,
      id,
      { ...span, from, to },
      position,
      ctx.now,
      STEP,
    )
    recovered += step.recovered
    if (recovered > MOST) {
      throw invalidField(
        'to',
        'too_many_events',
        `ends a span in which the endpoint missed more than ${MOST} events`,
        { reason: 'too_many_events', fix: 'Recover a shorter span at a time.' },
      )
    }
    if (!(position = step.reached)) break
  }
  return { endpoint_id: id, recovered }
}
