import { z } from 'zod'
import {
  ContactName,
  ContactPhone,
  Cursor,
  EXPENSIVE_READ,
  Id,
  idOf,
  Limit,
  NextCursor,
  Timestamp,
} from '../fields.ts'
import { untrusted } from '../text.ts'
import { contentFields } from '../message-content.ts'
import { LastMessage } from '../message-schemas.ts'
import { defineOperation } from '../operation.ts'
import { TagRef } from '../tags.ts'
import { replyStatuses, searchFilters, TotalIsLowerBound } from './filters.ts'
import { ConversationId, since } from './schemas.ts'

export const Window = z
  .object({
    applies: z
      .boolean()
      .describe(
        'True on channels with a reply window: `chatapp`, `photoapp`, `socialchat`, `videoapp`. False on web chat ' +
          'and other channels.',
      ),
    open: z
      .boolean()
      .describe(
        'True: it is open, or none applies. False: only an approved template can be sent. `can_reply` says whether a ' +
          'free-form reply is taken.',
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
    reason: z
      .enum(['no_window', 'expired', 'never_opened'])
      .nullable()
      .describe('Why it is closed: `no_window`, `expired` or `never_opened`.'),
  })
  .meta({ id: 'Window' })

/** Why a reply is refused, as `messaging_send_reply` says it. */
export const replyRefusals = [
  'window_closed',
  'group',
  'contact_deleted',
  'contact_unreachable',
  'channel_not_connected',
  'channel_not_supported',
] as const

export const Sla = z.object({
  status: z
    .enum(['running', 'breached', 'met'])
    .describe(
      '`running`: a clock runs within its target; `breached`: a target was missed; `met`: nothing is due.',
    ),
  next_due_at: Timestamp.nullable().describe('When the next target is due.'),
  next_due_metric: z
    .enum(['first_response', 'next_response', 'resolution'])
    .nullable()
    .describe('`first_response`, `next_response` or `resolution`.'),
  policy: z.string().nullable().describe('Name of the policy.'),
})

export const Conversation = z
  .object({
    id: idOf('conversation').describe('Conversation id.'),
    state: z.enum(['open', 'closed']).describe('`open` or `closed`.'),
    contact: z
      .object({
        id: idOf('contact').describe('Contact id.'),
        name: ContactName,
        phone: ContactPhone.describe('E.164 digits, or masked.'),
        dnd_enabled: z.boolean().describe('Do-not-disturb.'),
        groups: z.array(z.string()).describe("Names of the contact's groups."),
      })
      .nullable()
      .describe('The customer; null when the contact was deleted, and for a group.'),
    channel: z
      .object({
        id: Id.describe('Channel id.'),
        name: z.string().nullable().describe('Channel name.'),
        type: z.string().nullable().describe('Channel type.'),
      })
      .nullable()
      .describe('Its channel; null when the channel was deleted.'),
    assignee: z
      .object({ staff_id: Id.describe('Staff member.'), name: z.string().nullable().describe('Name.') })
      .nullable()
      .describe('Staff member it is assigned to.'),
    team_id: Id.nullable().describe('Team it is assigned to.'),
    assigned_at: Timestamp.nullable().describe('When it was assigned.'),
    tags: z.array(TagRef).describe('Tags by name.'),
    starred: z.boolean().describe('The contact is starred.'),
    unread_count: z.int().describe('Unread messages of the customer.'),
    reply_status: z
      .enum(replyStatuses)
      .nullable()
      .describe(
        '`incoming_no_reply`: the customer waits; `outgoing_no_response`: the team waits for the customer.',
      ),
    waiting_since: Timestamp.nullable().describe(
      'Since when the customer waits for a reply; null if closed or answered.',
    ),
    sla: Sla.nullable().describe('Service level; null where no policy applies.'),
    reminder_at: Timestamp.nullable().describe('Reminder.'),
    chatapp_window_expires_at: Timestamp.nullable().describe(
      'Raw stored value, kept for compatibility; use `window` instead.',
    ),
    window: Window.describe('The reply window.'),
    can_reply: z.boolean().describe('True: `messaging_send_reply` takes a reply now.'),
    reason: z
      .enum(replyRefusals)
      .optional()
      .describe(
        'Why it takes none: `window_closed`, so that only an approved template can be sent; `group`, which is read ' +
          'only; `contact_deleted`; `contact_unreachable`, without a number; `channel_not_connected`: off or ' +
          'deleted; `channel_not_supported`: without a bridge. Absent where it takes one.',
      ),
    bot_active: z.boolean().describe('A chatbot answers.'),
    group: z
      .object({ id: untrusted(z.string().describe('Id of the group at the provider.')) })
      .optional()
      .describe('A group, which has no `contact`: each message has its `author`. Absent elsewhere.'),
    ad: contentFields.ad.describe('The last ad or post that brought the customer here; absent without one.'),
    last_message: LastMessage.nullable().describe('The newest message that is not a note.'),
    created_at: Timestamp.describe('When it started.'),
    updated_at: Timestamp.describe('When it was last changed.'),
  })
  .meta({ id: 'Conversation' })

const row = {
  id: '381',
  state: 'open' as const,
  contact: { id: '42', name: 'Ada Lovelace', phone: '15550100042', dnd_enabled: false, groups: ['VIP'] },
  channel: { id: '1', name: 'Shop', type: 'chatapp' },
  assignee: { staff_id: '5', name: 'Grace' },
  team_id: null,
  assigned_at: '2026-10-01T09:31:00.000Z',
  tags: [{ id: '7', name: 'VIP' }],
  starred: false,
  unread_count: 1,
  reply_status: 'incoming_no_reply' as const,
  waiting_since: '2026-10-01T09:30:00.000Z',
  sla: {
    status: 'running' as const,
    next_due_at: '2026-10-01T10:30:00.000Z',
    next_due_metric: 'first_response' as const,
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
  can_reply: true,
  bot_active: false,
  last_message: {
    id: '1657',
    conversation_id: '381',
    type: 'TEXT' as const,
    direction: 'inbound' as const,
    status: 'received' as const,
    text: 'Is my order on its way?',
    text_truncated: false,
    has_media: false,
    from: null,
    actor: null,
    reply_to_id: null,
    error: null,
    created_at: '2026-10-01T09:30:00.000Z',
    deleted_at: null,
  },
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:31:00.000Z',
}

/** In place of the time until which a reply is taken. */
export const refusalWords = { window_closed: 'shut', group: 'read only' }

/** What a person would read of a conversation. */
const slimConversation = [
  'id',
  'state',
  'contact.id',
  'contact.name',
  'contact.phone',
  'group.id',
  'channel.name',
  'assignee.name',
  'tags.name',
  'unread_count',
  'reply_status',
  'waiting_since',
  'sla.status',
  'sla.next_due_at',
  'can_reply',
  'reason',
  'last_message.direction',
  'last_message.text',
  'last_message.error',
  'last_message.created_at',
] as const

export const searchConversations = defineOperation({
  name: 'inbox_search_conversations',
  cli: 'conversations search',
  routes: ['GET /v1/conversations'],
  since,
  stability: 'beta',
  summary: 'Find conversations, newest activity or longest wait first',
  forModels:
    'A conversation is the exchange with one customer on one channel: who waits, who is assigned, ' +
    'whether a reply may be sent (`can_reply`, else `reason`), and the last message.',
  description:
    'Staff limited to some channels see only conversations on those. With hidden phone numbers, digits ' +
    `in \`query\` are refused. With \`query\`, \`tag\` or \`sla_status\` it is ${EXPENSIVE_READ}`,
  heavy: ['query', 'tag', 'sla_status'],
  slim: slimConversation,
  words:
    'open tickets, chats, my conversations, conversations assigned to me, unread, threads of a ' +
    'customer, list conversations, inbox',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'contact.name', title: 'contact', else: 'group.id' },
    { path: 'waiting_since', title: 'waiting', age: true },
    { path: 'reason', title: 'reply', else: 'window.closes_at', words: refusalWords },
    { path: 'unread_count', title: 'unread', words: { 0: '' } },
    { path: 'last_message.text', title: 'last words', wrap: true },
    { path: 'state' },
    { path: 'assignee.name', title: 'assignee' },
    { path: 'channel.name', title: 'channel' },
    { path: 'tags' },
    { path: 'sla.status', title: 'sla' },
  ],
  input: z.object({
    ...searchFilters,
    sort: z
      .enum(['newest_activity', 'longest_wait'])
      .optional()
      .describe(
        '`newest_activity` when absent. `longest_wait`: by `waiting_since`; then those who do not wait, ' +
          'newest activity first.',
      ),
    count: z.boolean().optional().describe('True: the first page has `total`, also if there are more pages.'),
    limit: Limit,
    cursor: Cursor,
  }),
  output: z.object({
    data: z.array(Conversation).describe('The rows of this page.'),
    total: z
      .int()
      .nullable()
      .describe(
        'Count of matching rows if the first page has all of them, or with `count`; otherwise null, also ' +
          'with `query` if there are more pages.',
      ),
    total_is_lower_bound: TotalIsLowerBound,
    next_cursor: NextCursor,
  }),
  errors: ['forbidden'],
  examples: [
    {
      title: 'The unassigned queue',
      input: { state: 'open', assigned: false },
      output: {
        data: [{ ...row, assignee: null, assigned_at: null }],
        total: 1,
        total_is_lower_bound: false,
        next_cursor: null,
      },
    },
    {
      title: 'My customers, who waits longest first',
      input: { assigned_staff_id: 'me', state: 'open', sort: 'longest_wait' },
      output: { data: [row], total: 1, total_is_lower_bound: false, next_cursor: null },
    },
  ],
})

export const getConversation = defineOperation({
  name: 'inbox_get_conversation',
  cli: 'conversations get',
  routes: ['GET /v1/conversations/{conversation_id}'],
  since,
  stability: 'beta',
  summary: 'Get one conversation with its reply window and last message',
  slim: slimConversation,
  words: 'one conversation, reply window, 24 hour window, can I still answer, chat details, ticket, thread',
  scope: 'mcp:read',
  input: z.object({ conversation_id: ConversationId }),
  output: Conversation,
  errors: ['not_found'],
  examples: [{ title: 'A waiting customer', input: { conversation_id: '381' }, output: row }],
})
