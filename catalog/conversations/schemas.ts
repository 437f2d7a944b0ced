import { z } from 'zod'
import { Id, idOf } from '../fields.ts'
import { TagRef } from '../tags.ts'

export const since = '2026-10-01'

/** The conversation as its changes return it. */
export const ConversationRef = z.object({
  id: idOf('conversation').describe('Conversation id.'),
  state: z.string().nullable().describe('`open` or `closed`.'),
  assignee_staff_id: Id.nullable().describe('Staff member it is assigned to.'),
  team_id: Id.nullable().describe('Team it is assigned to.'),
  tags: z.array(TagRef).describe('Tags by name.'),
})

export const ConversationId = idOf('conversation').describe('Conversation id.')

export const conversationRefExample = {
  id: '381',
  state: 'open',
  assignee_staff_id: '5',
  team_id: null,
  tags: [{ id: '7', name: 'VIP' }],
}
