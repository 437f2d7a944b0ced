import type { StoredView } from '../../storage/access/idempotency.ts'
import type { Actor } from '../kernel/context.ts'
import { Problem } from '../kernel/problem.ts'
import { canSeeManagerFields, hasHiddenPhones, listVisibleChannels } from './policy.ts'

/** Returns what a staff member can see now, to be kept with an answer. */
export const toStoredView = (actor: Actor): StoredView => ({
  fields: canSeeManagerFields(actor),
  channels: listVisibleChannels(actor),
  phones: !hasHiddenPhones(actor),
  ...(actor.key.agent ? { agent: actor.key.familyId } : {}),
})

/** Returns whether this actor sees what the one could see for whom something was recorded, each by itself. */
export const compareViews = (
  actor: Actor,
  stored: StoredView,
): { channels: boolean; fields: boolean; phones: boolean } => {
  const channels = listVisibleChannels(actor)
  return {
    channels: channels === null || (stored.channels?.every((id) => channels.includes(id)) ?? false),
    fields: !stored.fields || canSeeManagerFields(actor),
    phones: stored.phones === false || !hasHiddenPhones(actor),
  }
}

/**
 * Throws 409 `visibility_changed` when an answer was stored while the staff member could see more than now: it
 * may tell of that. Phones are masked instead (`showStoredAnswer`).
 */
export const requireSameView = (actor: Actor, stored: StoredView | null): void => {
  if (stored === null) return
  const sees = compareViews(actor, stored)
  if (sees.channels && sees.fields) return
  throw new Problem(
    'conflict',
    'This call was made when you could see more than now, so its response is not returned again. It is ' +
      'not run again either. Read the record to see the outcome.',
    { reason: 'visibility_changed' },
  )
}
