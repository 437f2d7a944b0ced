import type { Context, Handler } from '../../handler.ts'
import type { EventPosition } from '../../../storage/events/events.ts'
import {
  countMissed,
  findEventLogSpan,
  hasMoreEvents,
  recoverDeliveries,
  type RecoverSpan,
  type RecoverStep,
} from '../../../storage/webhooks/log.ts'
import { invalidField, type Problem } from '../../kernel/problem.ts'
import { requireDeliveryLog } from './access.ts'
import { requireEnabledEndpoint } from './require-enabled.ts'

const MAX_SPAN_MS = 14 * 86_400_000
/** Events that one statement scans. */
const EVENTS_PER_STEP = 5000
/**
 * Deliveries that one call makes due, and events that it scans: one transaction, which has a deadline of 30 s. An
 * object, so that tests can reach them with few rows.
 */
export const recoverLimits = { deliveries: 100_000, events: 1_000_000 }

const tooManyEvents = (detail: string): Problem =>
  invalidField('to', 'too_many_events', detail, {
    reason: 'too_many_events',
    fix: 'Recover a shorter span at a time.',
  })

/**
 * Adds up the steps of a span. Throws 400 as soon as there are too many: also those that became dead after they were
 * counted.
 */
const addUp = async (
  takeStep: (position: EventPosition | undefined) => Promise<RecoverStep>,
): Promise<number> => {
  let sum = 0
  for (let position: EventPosition | undefined; ;) {
    const { recovered, reached } = await takeStep(position)
    sum += recovered
    if (sum > recoverLimits.deliveries)
      throw tooManyEvents(
        `ends a span in which the endpoint missed more than ${recoverLimits.deliveries} events`,
      )
    if (!reached) return sum
    position = reached
  }
}

/** Throws 400 before anything is written: writing a hundred thousand deliveries takes many seconds. */
const refuseTooMany = async ({ tx, actor }: Context, span: RecoverSpan): Promise<void> => {
  const workspaceId = actor.workspace.id
  if (await hasMoreEvents(tx, workspaceId, span, recoverLimits.events))
    throw tooManyEvents(`ends a span of more than ${recoverLimits.events} events`)
  await addUp((position) => countMissed(tx, workspaceId, span, position, EVENTS_PER_STEP))
}

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
  const log = await findEventLogSpan(ctx.tx, workspaceId, from, to)
  if (!log) return { endpoint_id: id, recovered: 0 }
  const span = { ...log, endpointId: id, from, to }
  await refuseTooMany(ctx, span)
  const recovered = await addUp((position) =>
    recoverDeliveries(ctx.tx, workspaceId, span, position, { now: ctx.now, limit: EVENTS_PER_STEP }),
  )
  return { endpoint_id: id, recovered }
}
