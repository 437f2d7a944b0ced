import type { Actor } from '../../kernel/context.ts'
import { listVisibleChannels } from '../../visibility/policy.ts'

/** Returns the note that a report is of some channels only; none when the reader may see all. */
export const formatChannelNotes = (actor: Actor): string[] => {
  const channels = listVisibleChannels(actor)
  if (channels === null) return []
  return [
    channels.length === 0
      ? 'You may see no channel, so messages, conversations and broadcasts are not counted.'
      : `Messages, conversations, broadcasts and service levels are those of the channels that you may see: ` +
        `${channels.join(', ')}. Contacts are all those of the workspace.`,
  ]
}
