import { recordUndone, type BulkOutput, toBulkOutput } from '../bulk-jobs/output.ts'
import type { Context, Handler, InputOf } from '../../handler.ts'
import type { EventTypeId } from '../../../catalog/events.ts'
import { countIds } from '../../../storage/contacts/matches.ts'
import type { Assignment } from '../../../storage/conversations/changes.ts'
import { countAssignable } from '../../../storage/conversations/matches.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import {
  conversationRecords,
  type ConversationsChange,
  lockVisibleConversations,
  toFailure,
} from '../bulk-jobs/conversation-records.ts'
import type { RecordFailure } from '../../kernel/context.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import {
  applyAssignments,
  applyUnassignments,
  type Assignee,
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
      recordUndone(ctx, toUndone(conversation.id, conversation, assignment))
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

/** Returns a check of why a conversation cannot be assigned as it was before; undefined where it can. */
const createGiveBackCheck = (ctx: Context<EventTypeId>) => {
  const assignees = new Map<string, Promise<Assignee | Problem>>()
  const findAssignee = (field: 'staff_id' | 'team_id', id: string): Promise<Assignee | Problem> => {
    const key = `${field} ${id}`
    const found =
      assignees.get(key) ??
      requireAssignee(ctx, { [field]: id }).catch((error: unknown) => {
        if (error instanceof Problem) return error
        throw error
      })
    assignees.set(key, found)
    return found
  }
  return async (conversation: ConversationState, before: Assignment): Promise<Problem | undefined> => {
    const { assigned_staff_id: staffId, assigned_team_id: teamId } = before
    const staff = staffId === null ? undefined : await findAssignee('staff_id', staffId)
    const team = teamId === null ? undefined : await findAssignee('team_id', teamId)
    for (const assignee of [staff, team]) {
      if (assignee instanceof Problem) return assignee
      const problem = assignee && findAssignmentProblem(conversation, assignee, false)
      if (problem) return problem
    }
    return undefined
  }
}

const isNobody = ({ assignment }: NewAssignment): boolean =>
  assignment.assigned_staff_id === null && assignment.assigned_team_id === null

/** Gives conversations back that a job assigned, where they are assigned as it left them. */
export const restoreAssignments = async (
  ctx: Context<EventTypeId>,
  { conversations: undone }: { conversations: readonly Undone[] },
): Promise<BulkOutput<never>> => {
  const byId = new Map(undone.map((one) => [one.conversation_id, one]))
  const { requested, conversations, missing } = await lockVisibleConversations(ctx, [...byId.keys()])
  const failures: RecordFailure[] = [...missing]
  const findProblem = createGiveBackCheck(ctx)
  const changes: NewAssignment[] = []
  for (const conversation of conversations) {
    const one = byId.get(conversation.id)!
    const left = { assigned_staff_id: one.to_staff_id, assigned_team_id: one.to_team_id }
    if (!isSameAssignment(conversation, left)) continue
    const assignment = { assigned_staff_id: one.from_staff_id, assigned_team_id: one.from_team_id }
    const problem = await findProblem(conversation, assignment)
    if (problem) failures.push(toFailure(conversation.id, problem))
    if (problem) continue
    recordUndone(ctx, toUndone(conversation.id, left, assignment))
    changes.push({ conversation, assignment })
  }
  await applyUnassignments(
    ctx,
    changes.filter(isNobody).map(({ conversation }) => conversation),
  )
  await applyAssignments(
    ctx,
    changes.filter((one) => !isNobody(one)),
  )
  return toBulkOutput(ctx, requested, failures)
}
