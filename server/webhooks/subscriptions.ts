import { eventTypes } from '../../catalog/events.ts'
import { replaceSubscriptions } from '../../storage/webhooks.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { invalidField } from '../core/problem.ts'
import { isEventType, unknownEventType } from './event-types.ts'
import { lockEndpoint, requireWholeSight, shownNow } from './access.ts'

const ALL = '*'

/** Event types once each. Throws 400 for one that there is not. */
export const checkEventTypes = (given: readonly string[]): string[] => {
  for (const [i, type] of given.entries())
    if (type !== ALL && !isEventType(type))
      throw unknownEventType('event_types', type, [i], [ALL, ...Object.keys(eventTypes)])
  const types = [...new Set(given)]
  if (types.includes(ALL) && types.length > 1)
    throw invalidField('event_types', 'not_alone', 'has * beside other types, which it stands for too', {
      fix: 'Send ["*"], or the types without it.',
    })
  return types
}

export const setSubscriptions: Handler<
  InputOf<'webhooks_set_subscriptions'>,
  OutputOf<'webhooks_set_subscriptions'>
> = async (ctx, { endpoint_id: id, event_types: given }) => {
  requireWholeSight(ctx)
  const types = checkEventTypes(given)
  const { workspace_id: workspaceId, subscriptions } = await lockEndpoint(ctx, id)
  const active = new Set(subscriptions.filter((one) => one.active).map((one) => one.id))
  const changed = subscriptions.length !== types.length || types.some((type) => !active.has(type))
  ctx.note({ event_types: [...active] }, { event_types: types })
  if (changed) await replaceSubscriptions(ctx.tx, workspaceId, id, types, ctx.now)
  return { endpoint: await shownNow(ctx, id), changed }
}
