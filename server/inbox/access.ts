import { type ConversationState, lockConversation } from '../../storage/conversations.ts'
import type { Actor, Context } from '../core/context.ts'
import { notFound } from '../core/problem.ts'

/**
 * Whether a staff member may see and change the conversations of this channel. Conversations of a deleted
 * channel are visible only to staff with access to all channels.
 */
export const canUseChannel = ({ staff: { channelIds } }: Actor, channelId: string | null): boolean =>
  channelIds === null || (channelId !== null && channelIds.includes(channelId))

/**
 * Returns a conversation to change, locked. Throws 404 when this staff member may not see it, so that its
 * existence is not revealed.
 */
export const lockVisibleConversation = async (ctx: Context, id: string): Promise<ConversationState> => {
  const conversation = await lockConversation(ctx.tx, ctx.actor.workspace.id, id)
  if (!conversation || !canUseChannel(ctx.actor, conversation.channel_id)) throw notFound('conversation', id)
  return conversation
}
