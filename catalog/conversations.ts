import { z } from 'zod'
import { Cursor, Id, IdOrName, Limit, NextCursor, Timestamp } from './fields.ts'
import { LastMessage } from './messages.ts'
import { operation } from './operation.ts'
import { TagRef } from './tags.ts'

const since = '2026-10-01'

const replyStatuses = ['incoming_no_reply', 'outgoing_no_response'] as const

export const Window = z
  .object({
    applies: z
      .boolean()
      .describe('True on channels with a reply window: `chatapp`, `photoapp`, `socialchat`, `videoapp`.'),
    open: z
      .boolean()
      .describe(
        'True: a free-form reply can be sent now. False: only an approved template reaches the customer.',
      ),
    kind: z
      .string()
      .nullable()
      .describe(
        '`service` (24 h), `free_entry` (72 h after an ad), `standard` (24 h), `videoapp` (48 h) or `web`.',
      ),
    closes_at: Timestamp.nullable().describe(
      'When an open window closes; null when unknown or not applicable.',
    ),
    closed_at: Timestamp.nullable().describe('When a closed window closed.'),
    reason: z.string().nullable().describe('Why it is closed: `no_window`, `expired` or `never_opened`.'),
  })
  .meta({ id: 'Window' })

export const Sla = z.object({
  status: z
    .string()
    .describe(
      '`running`: a clock runs and nothing is late; `breached`: something is, or was, late; `met`: nothing is due.',
    ),
  next_due_at: Timestamp.nullable().describe('When the next clock runs out.'),
  next_due_metric: z.string().nullable().describe('`first_response`, `next_response` or `resolution`.'),
  policy: z.string().nullable().describe('Name of the policy.'),
})

export const Conversation = z
  .object({
    id: Id.describe('Conversation id.'),
    state: z.enum(['open', 'closed']).describe('`open` or `closed`.'),
    contact: z
      .object({
        id: Id.describe('Contact id.'),
        name: z.string().nullable().describe('Name.'),
        phone: z.string().nullable().describe('E.164 digits, or masked.'),
        dnd_enabled: z.boolean().describe('Do-not-disturb.'),
        groups: z.array(z.string()).describe("Names of the contact's groups."),
      })
      .nullable()
      .describe('The customer; null when the contact was deleted.'),
    channel: z
      .object({
        id: Id.describe('Channel id.'),
        name: z.string().nullable().describe('Channel name.'),
        type: z.string().nullable().describe('Channel type.'),
      })
      .nullable()
      .describe('Where it takes place; null when the channel is gone.'),
    assignee: z
      .object({ staff_id: Id.describe('Staff member.'), name: z.string().nullable().describe('Name.') })
      .nullable()
      .describe('Who has it.'),
    team_id: Id.nullable().describe('The team that has it.'),
    assigned_at: Timestamp.nullable().describe('When it was assigned.'),
    tags: z.array(TagRef).describe('Tags by name.'),
    starred: z.boolean().describe('The contact is starred.'),
    unread_count: z.int().describe('Messages of the customer that nobody has read.'),
    reply_status: z
      .string()
      .nullable()
      .describe('`incoming_no_reply`: the customer waits; `outgoing_no_response`: we wait for the customer.'),
    sla: Sla.nullable().describe('Service level; null where no policy applies.'),
    reminder_at: Timestamp.nullable().describe('Reminder.'),
    chatapp_window_expires_at: Timestamp.nullable().describe(
      'Raw stored value, kept for compatibility; decide with `window`.',
    ),
    window: Window.describe('Whether a free-form reply can be sent, decided exactly as a send decides it.'),
    bot_active: z.boolean().describe('A chatbot answers.'),
    last_message: LastMessage.nullable().describe('The newest message that is not a note.'),
    created_at: Timestamp.describe('When it began.'),
    updated_at: Timestamp.describe('When it last changed.'),
  })
  .meta({ id: 'Conversation' })

/** What changes of a conversation answer. */
const ConversationRef = z.object({
  id: Id.describe('Conversation id.'),
  state: z.string().nullable().describe('`open` or `closed`.'),
  assignee_staff_id: Id.nullable().describe('Staff member who has it.'),
  team_id: Id.nullable().describe('Team that has it.'),
  tags: z.array(TagRef).describe('Tags by name.'),
})

const ConversationId = Id.describe('Conversation id.')
const Changed = z.boolean().describe('False: it was so already.')
const ref = {
  id: '77',
  state: 'open',
  assignee_staff_id: '5',
  team_id: null,
  tags: [{ id: '7', name: 'VIP' }],
}
const row = {
  id: '77',
  state: 'open' as const,
  contact: { id: '42', name: 'Ada Lovelace', phone: '15550100042', dnd_enabled: false, groups: ['VIP'] },
  channel: { id: '1', name: 'Shop', type: 'chatapp' },
  assignee: { staff_id: '5', name: 'Grace' },
  team_id: null,
  assigned_at: '2026-10-01T09:31:00.000Z',
  tags: [{ id: '7', name: 'VIP' }],
  starred: false,
  unread_count: 1,
  reply_status: 'incoming_no_reply',
  sla: {
    status: 'running',
    next_due_at: '2026-10-01T10:30:00.000Z',
    next_due_metric: 'first_response',
    policy: 'Standard',
  },
  reminder_at: null,
  chatapp_window_expires_at: '2026-10-02T09:30:00.000Z',
  window: {
    applies: true,
    open: true,
    kind: 'service',
    closes_at: '2026-10-02T09:30:00.000Z',
    closed_at: null,
    reason: null,
  },
  bot_active: false,
  last_message: {
    id: '901',
    conversation_id: '77',
    type: 'TEXT' as const,
    direction: 'inbound' as const,
    status: 'received' as const,
    text: 'Is my order on its way?',
    text_truncated: false,
    has_media: false,
    from: null,
    reply_to_id: null,
    error: null,
    created_at: '2026-10-01T09:30:00.000Z',
  },
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:31:00.000Z',
}

export const searchConversations = operation({
  name: 'inbox_search_conversations',
  cli: 'conversations search',
  routes: ['GET /v1/conversations'],
  since,
  stability: 'beta',
  summary: 'Find conversations, newest activity first',
  description:
    "Staff with access to some channels only see the conversations of those. While phones are hidden from the key's owner, digits in `query` are refused.",
  scope: 'mcp:read',
  input: z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(255)
      .optional()
      .describe('Contact name or phone contains this, ignoring case.'),
    state: z.enum(['open', 'closed']).optional().describe('Only in this state.'),
    assigned: z.boolean().optional().describe('False: the unassigned queue.'),
    channel_id: Id.optional().describe('Only of this channel.'),
    reply_status: z.enum(replyStatuses).optional().describe('Who waits for whom.'),
    limit: Limit,
    cursor: Cursor,
  }),
  output: z.object({
    data: z.array(Conversation).describe('The rows of this page.'),
    next_cursor: NextCursor,
  }),
  errors: ['forbidden'],
  examples: [
    {
      title: 'The unassigned queue',
      input: { state: 'open', assigned: false },
      output: { data: [{ ...row, assignee: null, assigned_at: null }], next_cursor: null },
    },
  ],
})

export const getConversation = operation({
  name: 'inbox_get_conversation',
  cli: 'conversations get',
  routes: ['GET /v1/conversations/{conversation_id}'],
  since,
  stability: 'beta',
  summary: 'Get one conversation with its reply window and last message',
  scope: 'mcp:read',
  input: z.object({ conversation_id: ConversationId }),
  output: Conversation,
  errors: ['not_found'],
  examples: [{ title: 'A waiting customer', input: { conversation_id: '77' }, output: row }],
})

export const assignConversation = operation({
  name: 'inbox_assign_conversation',
  cli: 'conversations assign',
  routes: ['PUT /v1/conversations/{conversation_id}/assignment'],
  since,
  stability: 'stable',
  summary: 'Assign a conversation to a staff member or a team',
  description:
    'Send exactly one of `staff_id` and `team_id`. A team takes the place of the staff member. With `only_if_unassigned`, one of many who claim at once wins; the others get 409.',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['conversation.assigned/1'],
  input: z.object({
    conversation_id: ConversationId,
    staff_id: Id.optional().describe('Staff member to assign it to.'),
    team_id: Id.optional().describe('Team to assign it to.'),
    only_if_unassigned: z
      .boolean()
      .default(false)
      .describe('Refuse instead of taking it from whoever has it.'),
  }),
  output: z.object({
    conversation: ConversationRef.describe('The conversation as it is now.'),
    assigned_to: z.string().describe('Name of the assignee.'),
  }),
  errors: ['not_found', 'forbidden', 'conflict'],
  examples: [
    {
      title: 'Claim it',
      input: { conversation_id: '77', staff_id: '5', only_if_unassigned: true },
      output: { conversation: ref, assigned_to: 'Grace' },
    },
  ],
})

export const unassignConversation = operation({
  name: 'inbox_unassign_conversation',
  cli: 'conversations unassign',
  routes: ['DELETE /v1/conversations/{conversation_id}/assignment'],
  since,
  stability: 'stable',
  summary: 'Put a conversation back into the unassigned queue',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
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
      title: 'Give it back',
      input: { conversation_id: '77' },
      output: { conversation: { ...ref, assignee_staff_id: null }, changed: true },
    },
  ],
})

export const closeConversation = operation({
  name: 'inbox_close_conversation',
  cli: 'conversations close',
  routes: ['POST /v1/conversations/{conversation_id}/close'],
  since,
  stability: 'stable',
  summary: 'Close a conversation',
  description: 'It opens again by itself when the customer writes.',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
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
      title: 'Done',
      input: { conversation_id: '77', reason: 'Delivered' },
      output: { conversation: { ...ref, state: 'closed' }, changed: true },
    },
  ],
})

export const reopenConversation = operation({
  name: 'inbox_reopen_conversation',
  cli: 'conversations reopen',
  routes: ['POST /v1/conversations/{conversation_id}/reopen'],
  since,
  stability: 'beta',
  summary: 'Open a closed conversation again, as a new episode',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['conversation.reopened/1'],
  input: z.object({
    conversation_id: ConversationId,
    title: z
      .string()
      .trim()
      .min(1)
      .max(120)
      .optional()
      .describe('Title of the new episode, 1 to 120 characters.'),
  }),
  output: z.object({
    conversation: ConversationRef.describe('The conversation as it is now.'),
    changed: Changed,
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'A second question',
      input: { conversation_id: '77', title: 'Return' },
      output: { conversation: ref, changed: true },
    },
  ],
})

const tagList = z.array(IdOrName(100)).max(20)
/** A tag that a dry run would create has no id. */
const NewTagRef = TagRef.extend({
  id: Id.nullable().describe('Tag id; null for one that a dry run would create.'),
})

export const tagConversation = operation({
  name: 'inbox_tag_conversation',
  cli: 'conversations tag',
  routes: ['POST /v1/conversations/{conversation_id}/tags'],
  since,
  stability: 'stable',
  summary: 'Add tags to a conversation and remove others',
  description:
    'Unknown names to add are created; unknown names to remove are ignored. Send at least one of `add` and `remove`.',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
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
      title: 'One on, one off',
      input: { conversation_id: '77', add: ['VIP'], remove: ['lead'] },
      output: { conversation: ref, changed: true },
    },
  ],
})

export const setReminder = operation({
  name: 'inbox_set_reminder',
  cli: 'conversations remind',
  routes: ['PUT /v1/conversations/{conversation_id}/reminder'],
  since,
  stability: 'stable',
  summary: 'Set or clear the reminder of a conversation',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: [],
  input: z.object({
    conversation_id: ConversationId,
    at: z.iso
      .datetime({ offset: true })
      .nullable()
      .describe('When, ISO 8601 with a zone, in the future; null clears it.'),
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
      title: 'Tomorrow morning',
      input: { conversation_id: '77', at: '2099-10-02T09:00:00Z' },
      output: { conversation: { ...ref, reminder_at: '2099-10-02T09:00:00.000Z' }, changed: true },
    },
  ],
})

export const markRead = operation({
  name: 'inbox_mark_read',
  cli: 'conversations read',
  routes: ['POST /v1/conversations/{conversation_id}/read'],
  since,
  stability: 'stable',
  summary: 'Mark the messages of a conversation as read by the team',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
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
      title: 'Seen',
      input: { conversation_id: '77' },
      output: { conversation: { ...ref, unread_count: 0 }, changed: true },
    },
  ],
})
