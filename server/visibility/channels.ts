import type { Actor } from '../kernel/context.ts'
import { Problem } from '../kernel/problem.ts'
import { listVisibleChannels } from './policy.ts'

/**
 * Throws 403 `channels_limited` unless the actor may see all channels. For records of all channels that cannot
 * be told apart by channel. `what`: what they are, as the beginning of a sentence.
 */
export const requireAllChannels = (actor: Actor, what: string): void => {
  if (listVisibleChannels(actor) === null) return
  throw new Problem(
    'forbidden',
    `${what} of all channels; the key's owner has access to some of them only.`,
    {
      reason: 'channels_limited',
    },
  )
}
