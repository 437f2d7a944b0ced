import type { Context, Handler } from '../../handler.ts'
import { recordAssignments } from '../../../storage/agents/sessions.ts'
import {
  type Assignment,
  findStaffAssignee,
  findTeamName,
  updateAssignments,
} from '../../../storage/conversations/changes.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { lockVisibleConversation } from './access.ts'
import { toEventConversation } from './lifecycle.ts'
import { showConversationSummary } from './summary.ts'

/** A staff member, or a team. `channels`: of which they may have conversations; null: of all. */
export type Assignee = {
  staffId: string | undefined
  teamId: string | undefined
  name: string
  channels: readonly string[] | null
}

/** Throws 404, and 403 for a staff member who is disabled. */
export const requireAssignee = async (
  ctx: Pick<Context, 'tx' | 'actor'>,
  { staff_id: staffId, team_id: teamId }: { staff_id?: string | undefined; team_id?: string | undefined },
): Promise<Assignee> => {
  const workspaceId = ctx.actor.workspace.id
  if (staffId === undefined) {
    const name = await findTeamName(ctx.tx, workspaceId, teamId!)
    if (name === undefined) throw notFound('team', teamId!)
    return { staffId, teamId, name, channels: null }
  }
  const staff = await findStaffAssignee(ctx.tx, workspaceId, staffId)
  if (!staff) throw notFound('staff member', staffId)
  if (!staff.enabled)
    throw new Problem(
      'forbidden',
      `The staff member ${staffId} is disabled and cannot be assigned conversations. Choose another one.`,
      { reason: 'assignee_disabled' },
    )
  return { staffId, teamId, name: staff.name, channels: staff.channel_ids }
}

/** Returns why a conversation cannot be assigned to them; undefined where it can. */
export const findAssignmentProblem = (
  conversation: ConversationState,
  { staffId, channels }: Assignee,
  onlyIfUnassigned: boolean,
): Problem | undefined => {
  const { channel_id: channelId } = conversation
  if (channels !== null && (channelId === null || !channels.includes(channelId)))
    return new Problem(
      'forbidden',
      `The staff member ${staffId} has no access to the channel of this conversation. Choose another one.`,
      { reason: 'no_channel_access' },
    )
  if (!onlyIfUnassigned || !isAssigned(conversation)) return undefined
  return new Problem(
    'conflict',
    'The conversation is assigned already. Omit only_if_unassigned to take it over.',
    {
      reason: 'already_assigned',
      assignee_staff_id: conversation.assigned_staff_id,
      team_id: conversation.assigned_team_id,
    },
  )
}

const isAssigned = ({ assigned_staff_id, assigned_team_id }: ConversationState): boolean =>
  assigned_staff_id !== null || assigned_team_id !== null

/** A staff member who takes a team's conversation leaves it with the team; a new team starts without one. */
export const toAssignment = (conversation: ConversationState, { staffId, teamId }: Assignee): Assignment =>
  staffId === undefined
    ? { assigned_staff_id: null, assigned_team_id: teamId! }
    : { assigned_staff_id: staffId, assigned_team_id: conversation.assigned_team_id }

export const isSameAssignment = (a: Assignment, b: Assignment): boolean =>
  a.assigned_staff_id === b.assigned_staff_id && a.assigned_team_id === b.assigned_team_id

export type NewAssignment = { conversation: ConversationState; assignment: Assignment }

/** Gives locked conversations to others. */
export const applyAssignments = async (
  ctx: Context<'conversation.assigned/1'>,
  changes: readonly NewAssignment[],
): Promise<void> => {
  const { workspace, key } = ctx.actor
  for (const { conversation, assignment } of changes) {
    Object.assign(conversation, assignment)
    ctx.emit('conversation.assigned/1', { conversation: toEventConversation(conversation) })
  }
  const assigned = changes.map(({ conversation }) => conversation)
  await updateAssignments(ctx.tx, workspace.id, assigned, ctx.now, ctx.now)
  const byStaff = Map.groupBy(
    assigned.filter(({ state }) => state === 'open'),
    ({ assigned_staff_id: staffId }) => staffId,
  )
  for (const [staffId, episodes] of byStaff)
    await recordAssignments(ctx.tx, workspace.id, { episodes, keyId: key.id, at: ctx.now }, staffId)
}

/** Takes locked conversations from whom they are assigned to. */
export const applyUnassignments = async (
  ctx: Context<'conversation.unassigned/1'>,
  conversations: readonly ConversationState[],
): Promise<void> => {
  for (const conversation of conversations) {
    Object.assign(conversation, { assigned_staff_id: null, assigned_team_id: null })
    ctx.emit('conversation.unassigned/1', { conversation: toEventConversation(conversation) })
  }
  await updateAssignments(ctx.tx, ctx.actor.workspace.id, conversations, null, ctx.now)
}

/**
 * Locks the conversation before it reads its assignee, so that the first of concurrent claims wins.
 */
export const assignConversation: Handler<'inbox_assign_conversation'> = async (ctx, input) => {
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const assignee = await requireAssignee(ctx, input)
  const problem = findAssignmentProblem(conversation, assignee, input.only_if_unassigned)
  if (problem) throw problem
  const assignment = toAssignment(conversation, assignee)
  if (!isSameAssignment(conversation, assignment)) {
    ctx.auditChange({ ...conversation }, assignment)
    await applyAssignments(ctx, [{ conversation, assignment }])
  }
  return { conversation: await showConversationSummary(ctx, conversation), assigned_to: assignee.name }
}

export const unassignConversation: Handler<'inbox_unassign_conversation'> = async (ctx, input) => {
  const conversation = await lockVisibleConversation(ctx, input.conversation_id)
  const changed = isAssigned(conversation)
  if (changed) {
    ctx.auditChange({ ...conversation }, { assigned_staff_id: null, assigned_team_id: null })
    await applyUnassignments(ctx, [conversation])
  }
  return { conversation: await showConversationSummary(ctx, conversation), changed }
}
