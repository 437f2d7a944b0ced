import type { StoredView } from '../../storage/idempotency.ts'
import type { Actor } from '../core/context.ts'
import { Problem } from '../core/problem.ts'
import { canSeeManagerFields, listVisibleChannels } from './policy.ts'

/** Returns what a staff member can see now, to be kept with an answer. */
export const toStoredView = (actor: Actor): StoredView => ({
  fields: canSeeManagerFields(actor),
  channels: listVisibleChannels(actor),
  ...(actor.key.agent ? { agent: actor.key.id } : {}),
})

/**
 * Throws 409 when an AI agent sends the idempotency key of a call that another key of its staff member made: whether
 * the requests are the same would tell what is in the other one, such as a hidden phone.
 */
export const requireOwnCall = (actor: Actor, stored: StoredView | null): void => {
  if (!actor.key.agent || stored?.agent === actor.key.id) return
  throw new Problem(
    'conflict',
    'This Idempotency-Key was used before with another API key. Send a new one.',
    { reason: 'idempotency_key_reused' },
  )
}

/**
 * Throws 409 `visibility_changed` when an answer was stored while the staff member could see more than now: it
 * may tell of that.
 */
export const requireSameView = (actor: Actor, stored: StoredView | null): void => {
  if (stored === null) return
  const channels = listVisibleChannels(actor)
  const seesChannels = channels === null || (stored.channels?.every((id) => channels.includes(id)) ?? false)
  if (seesChannels && (!stored.fields || canSeeManagerFields(actor))) return
  throw new Problem(
    'conflict',
    'This call was made before, when you could see more than now, so its answer is not given again; it is ' +
      'not run again either. Read the record to see what became of it.',
    { reason: 'visibility_changed' },
  )
}
