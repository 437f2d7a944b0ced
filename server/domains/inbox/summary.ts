import type { Context } from '../../handler.ts'
import { readConversationTags } from '../../../storage/conversations/changes.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'

/** Returns a conversation as its changes return it. */
export const showConversationSummary = async (
  ctx: Context,
  { id, state, assigned_staff_id, assigned_team_id }: ConversationState,
) => ({
  id,
  state,
  assignee_staff_id: assigned_staff_id,
  team_id: assigned_team_id,
  tags: await readConversationTags(ctx.tx, ctx.actor.workspace.id, id),
})
