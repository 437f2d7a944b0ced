import type { Handler } from '../../handler.ts'
import { eventTypes } from '../../../catalog/events.ts'
import { replaceSubscriptions } from '../../../storage/webhooks/webhooks.ts'
import { invalidField } from '../../kernel/problem.ts'
import { isEventType, unknownEventTypeProblem } from './event-types.ts'
import { lockEndpoint, requireUnrestrictedAccess, showCurrentEndpoint } from './access.ts'

const ALL = '*'

/** Returns event types without duplicates. Throws 400 for one that does not exist. */
export const validateEventTypes = (given: readonly string[]): string[] => {
  for (const [i, type] of given.entries())
    if (type !== ALL && !isEventType(type))
      throw unknownEventTypeProblem('event_types', type, [i], [ALL, ...Object.keys(eventTypes)])
  const types = [...new Set(given)]
  if (types.includes(ALL) && types.length > 1)
    throw invalidField('event_types', 'not_alone', 'has other types beside *, which includes them', {
      fix: 'Send ["*"], or the types without it.',
    })
  return types
}

export const setSubscriptions: Handler<'webhooks_set_subscriptions'> = async (
  ctx,
  { endpoint_id: id, event_types: given },
) => {
  requireUnrestrictedAccess(ctx)
  const types = validateEventTypes(given)
  const { workspace_id: workspaceId, subscriptions } = await lockEndpoint(ctx, id)
  const active = new Set(subscriptions.filter((s) => s.active).map((s) => s.id))
  const changed = subscriptions.length !== types.length || types.some((type) => !active.has(type))
  ctx.auditChange({ event_types: [...active] }, { event_types: types })
  if (changed) await replaceSubscriptions(ctx.tx, workspaceId, id, types, ctx.now)
  return { endpoint: await showCurrentEndpoint(ctx, id), changed }
}
