import type { Context } from '../../handler.ts'
import { type ConversationState, lockConversation } from '../../../storage/conversations/conversations.ts'
import { notFound } from '../../kernel/problem.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

/**
 * Returns a conversation to change, locked. Throws 404 when this staff member may not see it, so that its
 * existence is not revealed.
 */
export const lockVisibleConversation = async (ctx: Context, id: string): Promise<ConversationState> => {
  const conversation = await lockConversation(ctx.tx, ctx.actor.workspace.id, id)
  if (!conversation || !canSeeChannel(ctx.actor, conversation.channel_id)) throw notFound('conversation', id)
  return conversation
}
