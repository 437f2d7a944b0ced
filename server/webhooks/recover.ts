import { recoverDeliveries } from '../../storage/webhook-log.ts'
import type { Handler, InputOf, OutputOf } from '../operations.ts'
import { invalidField } from '../problem.ts'
import { requireEnabled } from './standing.ts'

const LONGEST_MS = 14 * 86_400_000
/** Deliveries that one statement makes due, and one call altogether: a transaction may last half a minute. */
const STEP = 5000
const MOST = 100_000

export const recoverEndpoint: Handler<InputOf<'webhooks_recover_endpoint'>, OutputOf<'webhooks_recover_endpoint'>> = async (ctx, { endpoint_id: id, from, to }) => {
  const span = Date.parse(to) - Date.parse(from)
  if (!(span > 0)) throw invalidField('to', 'invalid_value', 'is not after from', { fix: 'Send a later time.' })
  if (span > LONGEST_MS) throw invalidField('from', 'too_long', 'is more than 14 days before to', { fix: 'Recover 14 days at a time.' })
  await requireEnabled(ctx, id)
  let recovered = 0
  for (let step = STEP; step === STEP;) {
    step = await recoverDeliveries(ctx.tx, ctx.actor.workspace.id, id, from, to, ctx.now, STEP)
    recovered += step
    if (recovered > MOST) {
      throw invalidField('to', 'too_many_events', `ends a span in which the endpoint missed more than ${MOST} events`, { reason: 'too_many_events', fix: 'Recover a shorter span at a time.' })
    }
  }
  return { endpoint_id: id, recovered }
}
