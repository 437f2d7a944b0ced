import { z } from 'zod'
import { Changed, Id, IdOrName, Instant, Timestamp, VisibleName } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { TagRef } from '../tags.ts'
import { ConversationId, ConversationRef, conversationRefExample, since } from './schemas.ts'

export const closeConversation = defineOperation({
  name: 'inbox_close_conversation',
  cli: 'conversations close',
  routes: ['POST /v1/conversations/{conversation_id}/close'],
  since,
  stability: 'stable',
  summary: 'Close a conversation',
  description: 'It reopens automatically when the customer writes.',
  words: 'close a ticket, resolve, done, finish, complete, mark as solved, archive a conversation, end chat',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['conversation.closed/1'],
  input: z.object({
    conversation_id: ConversationId,
    reason: z.string().trim().max(200).optional().describe('Why it is closed, at most 200 characters.'),
  }),
  output: z.object({
    conversation: ConversationRef.describe('The conversation as it is now.'),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'Close with a reason',
      input: { conversation_id: '381', reason: 'Delivered' },
      output: { conversation: { ...conversationRefExample, state: 'closed' }, changed: true },
    },
  ],
})

export const reopenConversation = defineOperation({
  name: 'inbox_reopen_conversation',
  cli: 'conversations reopen',
  routes: ['POST /v1/conversations/{conversation_id}/reopen'],
  since,
  stability: 'beta',
  summary: 'Reopen a closed conversation as a new episode',
  words: 'reopen a ticket, closed chat, open again',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['conversation.reopened/1'],
  input: z.object({
    conversation_id: ConversationId,
    title: VisibleName(120).optional().describe('Title of the new episode, 1 to 120 characters.'),
  }),
  output: z.object({
    conversation: ConversationRef.describe('The conversation as it is now.'),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'A second question',
      input: { conversation_id: '381', title: 'Return' },
      output: { conversation: conversationRefExample, changed: true },
    },
  ],
})

const tagList = z.array(IdOrName(100)).max(20)

/** A tag that a dry run would create has no id. */
const NewTagRef = TagRef.extend({
  id: Id.nullable().describe('Tag id; null for one that a dry run would create.'),
})

export const tagConversation = defineOperation({
  name: 'inbox_tag_conversation',
  cli: 'conversations tag',
  routes: ['POST /v1/conversations/{conversation_id}/tags'],
  since,
  stability: 'stable',
  summary: 'Add tags to a conversation and remove others',
  description:
    'Unknown names to add are created; unknown names to remove are ignored. Send at least one ' +
    'of `add` and `remove`.',
  words: 'label a conversation, tag a ticket, categorize a chat, remove a label from a conversation',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: [],
  input: z.object({
    conversation_id: ConversationId,
    add: tagList.optional().describe('Tag names or ids to add, at most 20.'),
    remove: tagList.optional().describe('Tag names or ids to remove, at most 20.'),
  }),
  output: z.object({
    conversation: ConversationRef.extend({ tags: z.array(NewTagRef).describe('Tags by name.') }).describe(
      'The conversation as it is now.',
    ),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'Add one tag and remove another',
      input: { conversation_id: '381', add: ['VIP'], remove: ['lead'] },
      output: { conversation: conversationRefExample, changed: true },
    },
  ],
})

export const setReminder = defineOperation({
  name: 'inbox_set_reminder',
  cli: 'conversations remind',
  routes: ['PUT /v1/conversations/{conversation_id}/reminder'],
  since,
  stability: 'stable',
  summary: 'Set or clear the reminder of a conversation',
  words:
    'remind me, snooze, follow up later, reminder, come back tomorrow, callback, due date, task, ' +
    'postpone, later, wake me, next week, tomorrow, Monday',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: [],
  input: z.object({
    conversation_id: ConversationId,
    at: Instant.nullable().describe('When, ISO 8601 with a zone, in the future; null clears it.'),
  }),
  output: z.object({
    conversation: ConversationRef.extend({
      reminder_at: Timestamp.nullable().describe('Reminder.'),
    }).describe('The conversation as it is now.'),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'Remind tomorrow morning',
      input: { conversation_id: '381', at: '2099-10-02T09:00:00Z' },
      output: {
        conversation: { ...conversationRefExample, reminder_at: '2099-10-02T09:00:00.000Z' },
        changed: true,
      },
    },
  ],
})

export const markRead = defineOperation({
  name: 'inbox_mark_read',
  cli: 'conversations read',
  routes: ['POST /v1/conversations/{conversation_id}/read'],
  since,
  stability: 'stable',
  summary: 'Mark the messages of a conversation as read by the team',
  words: 'mark as read, clear unread, seen, unread badge',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: [],
  input: z.object({ conversation_id: ConversationId }),
  output: z.object({
    conversation: ConversationRef.extend({ unread_count: z.int().describe('Unread messages.') }).describe(
      'The conversation as it is now.',
    ),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'Mark as read',
      input: { conversation_id: '381' },
      output: { conversation: { ...conversationRefExample, unread_count: 0 }, changed: true },
    },
  ],
})
