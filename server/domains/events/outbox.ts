import type { Outbox } from '../../kernel/kernel.ts'
import type { Signals } from '../../signals.ts'
import { announceOnRetry, writeEvents } from '../messaging/announce.ts'
import { notifyEvents } from './signal.ts'

export const createOutbox = (signals: Signals): Outbox => {
  const notify: Outbox['notify'] = (workspaceId, needsDelivery) =>
    notifyEvents({ signals }, { workspaceId, needsDelivery })
  return {
    prepare: announceOnRetry,
    write: writeEvents,
    notify,
    notifyOf: ({ actor, op }, { needsDelivery = true }) => {
      // An operation on webhooks may add deliveries itself; where the result does not say, there may be some.
      const isOfWebhooks = op.scope === 'webhooks:write'
      if (isOfWebhooks || (op.emits?.length ?? 0) > 0)
        notify(actor.workspace.id, needsDelivery || isOfWebhooks)
    },
  }
}
