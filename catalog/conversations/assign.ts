import { z } from 'zod'
import { Changed, Id } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { ConversationId, ConversationRef, conversationRefExample, since } from './schemas.ts'

export const assignConversation = defineOperation({
  name: 'inbox_assign_conversation',
  cli: 'conversations assign',
  routes: ['PUT /v1/conversations/{conversation_id}/assignment'],
  since,
  stability: 'stable',
  summary: 'Assign a conversation to a staff member or a team',
  description:
    'Send exactly one of `staff_id` and `team_id`. Assigning a team removes the staff member. ' +
    'With `only_if_unassigned`, one of several concurrent callers wins; the others get 409.',
  words:
    'assign a ticket, hand over to a human, escalate, transfer to a colleague, agent or team, take ' +
    'over, forward, route, handoff, pass on, give to, delegate',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['conversation.assigned/1'],
  alternatives: [{ needs: ['staff_id'] }, { needs: ['team_id'] }],
  input: z.object({
    conversation_id: ConversationId,
    staff_id: Id.optional().describe('Staff member to assign it to.'),
    team_id: Id.optional().describe('Team to assign it to.'),
    only_if_unassigned: z
      .boolean()
      .default(false)
      .describe('Refuse if it is already assigned, instead of reassigning it.'),
  }),
  output: z.object({
    conversation: ConversationRef.describe('The conversation as it is now.'),
    assigned_to: z.string().describe('Name of the assignee.'),
  }),
  errors: ['not_found', 'forbidden', 'conflict'],
  examples: [
    {
      title: 'Claim an unassigned conversation',
      input: { conversation_id: '373', staff_id: '5', only_if_unassigned: true },
      output: { conversation: { ...conversationRefExample, id: '373' }, assigned_to: 'Grace' },
    },
  ],
})

export const unassignConversation = defineOperation({
  name: 'inbox_unassign_conversation',
  cli: 'conversations unassign',
  routes: ['DELETE /v1/conversations/{conversation_id}/assignment'],
  since,
  stability: 'stable',
  summary: 'Return a conversation to the unassigned queue',
  words: 'unassign, put back in the queue, release a ticket, remove the assignee',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['conversation.unassigned/1'],
  input: z.object({ conversation_id: ConversationId }),
  output: z.object({
    conversation: ConversationRef.describe('The conversation as it is now.'),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'Return a conversation to the queue',
      input: { conversation_id: '381' },
      output: { conversation: { ...conversationRefExample, assignee_staff_id: null }, changed: true },
    },
  ],
})
