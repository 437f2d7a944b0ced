import type { EventTypeId } from '../../catalog/events.ts'
import { countIds } from '../../storage/contact-matches.ts'
import type { Assignment } from '../../storage/conversation-changes.ts'
import { countAssignable } from '../../storage/conversation-matches.ts'
import type { ConversationState } from '../../storage/conversations.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import {
  conversationRecords,
  type ConversationsChange,
  lockVisibleConversations,
  toFailure,
} from '../bulk-jobs/conversation-records.ts'
import { type BulkOutput, toBulkOutput } from '../bulk-jobs/output.ts'
import type { Context, RecordFailure } from '../core/context.ts'
import type { Handler, InputOf } from '../core/handler.ts'
import { invalidField, Problem } from '../core/problem.ts'
import {
  applyAssignments,
  applyUnassignment,
  findAssignmentProblem,
  isSameAssignment,
  type NewAssignment,
  requireAssignee,
  toAssignment,
} from './assign.ts'

type Input = InputOf<'inbox_assign_conversations'>

/** Throws 400 unless exactly one assignee is named. */
const requireOneAssignee = ({ staff_id: staffId, team_id: teamId }: Input): void => {
  if (staffId === undefined && teamId === undefined)
    throw invalidField('staff_id', 'required', 'or team_id is required', {
      fix: 'Send one of staff_id and team_id.',
    })
  if (staffId !== undefined && teamId !== undefined)
    throw invalidField('team_id', 'ambiguous', 'cannot be combined with staff_id', {
      fix: 'Send only one of them.',
    })
}

/** What a job changed of a conversation; ids that an erasure of its contact leaves. */
type Undone = {
  conversation_id: string
  from_staff_id: string | null
  from_team_id: string | null
  to_staff_id: string | null
  to_team_id: string | null
}

const toUndone = (id: string, from: Assignment, to: Assignment): Undone => ({
  conversation_id: id,
  from_staff_id: from.assigned_staff_id,
  from_team_id: from.assigned_team_id,
  to_staff_id: to.assigned_staff_id,
  to_team_id: to.assigned_team_id,
})

const assigning: ConversationsChange<Input, 'conversation.assigned/1'> = {
  operation: 'inbox_assign_conversations',
  records: conversationRecords,
  apply: async (ctx, input, ids) => {
    requireOneAssignee(input)
    const { requested, conversations, missing } = await lockVisibleConversations(ctx, ids)
    const assignee = await requireAssignee(ctx, input)
    const failures = [...missing]
    const changes: NewAssignment[] = []
    for (const conversation of conversations) {
      const problem = findAssignmentProblem(conversation, assignee, input.only_if_unassigned)
      if (problem) failures.push(toFailure(conversation.id, problem))
      const assignment = toAssignment(conversation, assignee)
      if (problem || isSameAssignment(conversation, assignment)) continue
      ctx.recordUndo(toUndone(conversation.id, conversation, assignment))
      changes.push({ conversation, assignment })
    }
    await applyAssignments(ctx, changes)
    return toBulkOutput(ctx, requested, failures)
  },
  preview: async (ctx, input, batches) => {
    requireOneAssignee(input)
    const { staffId, teamId, channels } = await requireAssignee(ctx, input)
    const wanted = { staffId, teamId, channels, onlyIfUnassigned: input.only_if_unassigned }
    const changing = await countAssignable(ctx.tx, ctx.actor.workspace.id, wanted, batches)
    return { unchanged: countIds(batches) - changing }
  },
  freeze: async (ctx, input) => {
    requireOneAssignee(input)
    await requireAssignee(ctx, input)
    const { staff_id: staffId, team_id: teamId, only_if_unassigned: onlyIfUnassigned } = input
    return {
      ...(staffId === undefined ? { team_id: teamId } : { staff_id: staffId }),
      only_if_unassigned: onlyIfUnassigned,
    }
  },
}

export const assignConversations: Handler<'inbox_assign_conversations'> = (ctx, input) =>
  changeTarget(ctx, assigning, input)

/** Gives a conversation back to whom it was assigned to. Throws 403 and 404 where they cannot have it any more. */
const giveBack = async (
  ctx: Context<EventTypeId>,
  conversation: ConversationState,
  from: Assignment,
): Promise<void> => {
  const { assigned_staff_id: staffId, assigned_team_id: teamId } = from
  for (const one of [{ staff_id: staffId ?? undefined }, { team_id: teamId ?? undefined }]) {
    if (Object.values(one)[0] === undefined) continue
    const problem = findAssignmentProblem(conversation, await requireAssignee(ctx, one), false)
    if (problem) throw problem
  }
  if (staffId === null && teamId === null) await applyUnassignment(ctx, conversation)
  else await applyAssignments(ctx, [{ conversation, assignment: from }])
}

/** Gives conversations back that a job assigned, where they are assigned as it left them. */
export const restoreAssignments = async (
  ctx: Context<EventTypeId>,
  { conversations: undone }: { conversations: readonly Undone[] },
): Promise<BulkOutput<never>> => {
  const byId = new Map(undone.map((one) => [one.conversation_id, one]))
  const { requested, conversations, missing } = await lockVisibleConversations(ctx, [...byId.keys()])
  const failures: RecordFailure[] = [...missing]
  for (const conversation of conversations) {
    const one = byId.get(conversation.id)!
    const left = { assigned_staff_id: one.to_staff_id, assigned_team_id: one.to_team_id }
    if (!isSameAssignment(conversation, left)) continue
    const before = { assigned_staff_id: one.from_staff_id, assigned_team_id: one.from_team_id }
    try {
      await giveBack(ctx, conversation, before)
      ctx.recordUndo(toUndone(conversation.id, left, before))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      failures.push(toFailure(conversation.id, error))
    }
  }
  return toBulkOutput(ctx, requested, failures)
}
