import { recordAssignment } from '../../storage/agent-sessions.ts'
import { findStaffAssignee, findTeamName, updateConversation } from '../../storage/conversation-changes.ts'
import type { ConversationState } from '../../storage/conversations.ts'
import type { Context } from '../core/context.ts'
import type { Handler } from '../core/handler.ts'
import { notFound, Problem } from '../core/problem.ts'
import { lockVisibleConversation } from './access.ts'
import { toEventConversation } from './lifecycle.ts'
import { showConversationSummary } from './summary.ts'

/** Returns the name of a staff member to whom conversations of this channel can be assigned. */
const requireStaffAssignee = async (ctx: Context, id: string, channelId: string | null): Promise<string> => {
  const staff = await findStaffAssignee(ctx.tx, ctx.actor.workspace.id, id)
  if (!staff) throw notFound('staff member', id)
  if (!staff.enabled)
    throw new Problem(
      'forbidden',
      `The staff member ${id} is disabled and cannot be assigned conversations. Choose another one.`,
      { reason: 'assignee_disabled' },
    )
  if (staff.channel_ids !== null && (channelId === null || !staff.channel_ids.includes(channelId))) {
    throw new Problem(
      'forbidden',
      `The staff member ${id} has no access to the channel of this conversation. Choose another one.`,
      { reason: 'no_channel_access' },
    )
  }
  return staff.name
}

const requireTeamName = async (ctx: Context, id: string): Promise<string> => {
  const name = await findTeamName(ctx.tx, ctx.actor.workspace.id, id)
  if (name === undefined) throw notFound('team', id)
  return name
}

const isAssigned = ({ assigned_staff_id, assigned_team_id }: ConversationState): boolean =>
  assigned_staff_id !== null || assigned_team_id !== null

/**
 * Locks the conversation before it reads its assignee, so that the first of concurrent claims wins.
 */
export const assignConversation: Handler<'inbox_assign_conversation'> = async (ctx, input) => {
  const { staff_id: staffId, team_id: teamId } = input
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const name =
    staffId === undefined
      ? await requireTeamName(ctx, teamId!)
      : await requireStaffAssignee(ctx, staffId, conversation.channel_id)
  if (input.only_if_unassigned && isAssigned(conversation)) {
    throw new Problem(
      'conflict',
      'The conversation is assigned already. Omit only_if_unassigned to take it over.',
      {
        reason: 'already_assigned',
        assignee_staff_id: conversation.assigned_staff_id,
        team_id: conversation.assigned_team_id,
      },
    )
  }
  // A staff member who takes a team's conversation leaves it with the team; a new team starts without one.
  const assignee =
    staffId === undefined
      ? { assigned_staff_id: null, assigned_team_id: teamId! }
      : { assigned_staff_id: staffId, assigned_team_id: conversation.assigned_team_id }
  if (
    assignee.assigned_staff_id !== conversation.assigned_staff_id ||
    assignee.assigned_team_id !== conversation.assigned_team_id
  ) {
    await updateConversation(
      ctx.tx,
      ctx.actor.workspace.id,
      conversation.id,
      { ...assignee, assigned_at: ctx.now },
      ctx.now,
    )
    if (conversation.state === 'open')
      await recordAssignment(
        ctx.tx,
        ctx.actor.workspace.id,
        {
          conversationId: conversation.id,
          episode: conversation.episode,
          keyId: ctx.actor.key.id,
          at: ctx.now,
        },
        staffId ?? null,
      )
    ctx.auditChange({ ...conversation }, assignee)
    Object.assign(conversation, assignee)
    ctx.emit('conversation.assigned/1', { conversation: toEventConversation(conversation) })
  }
  return { conversation: await showConversationSummary(ctx, conversation), assigned_to: name }
}

export const unassignConversation: Handler<'inbox_unassign_conversation'> = async (ctx, input) => {
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const changed = isAssigned(conversation)
  if (changed) {
    const none = { assigned_staff_id: null, assigned_team_id: null }
    await updateConversation(
      ctx.tx,
      ctx.actor.workspace.id,
      conversation.id,
      { ...none, assigned_at: null },
      ctx.now,
    )
    ctx.auditChange({ ...conversation }, none)
    Object.assign(conversation, none)
    ctx.emit('conversation.unassigned/1', { conversation: toEventConversation(conversation) })
  }
  return { conversation: await showConversationSummary(ctx, conversation), changed }
}
