import { z } from 'zod'
import {
  ContactName,
  Cursor,
  EXPENSIVE_READ,
  Id,
  idOf,
  Limit,
  NextCursor,
  Timestamp,
  Total,
  VisibleName,
} from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { conversationFilters, TotalIsLowerBound } from './filters.ts'
import { Conversation, refusalWords } from './read.ts'
import { since } from './schemas.ts'

/** Characters that the queue shows of the newest message, and of those before it. */
export const QUEUE_TEXT_LENGTH = 60
export const QUEUE_OLDER_TEXT_LENGTH = 36

const QueueMessage = z.object({
  from: z.enum(['customer', 'staff']).describe('Who wrote it.'),
  text: untrusted(
    z
      .string()
      .describe(
        `At most ${QUEUE_TEXT_LENGTH} characters of the newest, ${QUEUE_OLDER_TEXT_LENGTH} of the others; ` +
          'for a message without text its type, such as `[IMAGE]`.',
      ),
  ),
  failed: z.literal(true).optional().describe('Present when it did not reach the customer.'),
})

const QueueRow = z
  .object({
    id: idOf('conversation').describe('Conversation id.'),
    contact: z
      .object({
        id: idOf('contact').describe('Contact id.'),
        name: ContactName,
      })
      .nullable()
      .describe('The customer; null when the contact was deleted, and for a group.'),
    group: Conversation.shape.group,
    channel_id: Id.nullable().describe('Its channel; null when the channel was deleted.'),
    waiting_since: Timestamp.describe('Since when the customer waits for an answer.'),
    unread_count: z.int().describe('Unread messages of the customer.'),
    assignee: z
      .object({ staff_id: Id.describe('Staff member.'), name: z.string().nullable().describe('Name.') })
      .nullable()
      .describe('Staff member it is assigned to.'),
    team_id: Id.optional().describe('Team it is assigned to; absent without one.'),
    tags: z.array(z.string()).describe('Names of its tags.'),
    sla: z
      .enum(['running', 'breached', 'met'])
      .nullable()
      .describe('State of its service level; null if no policy applies.'),
    can_reply: Conversation.shape.can_reply,
    reason: Conversation.shape.reason,
    window_closes_at: Timestamp.optional().describe(
      'When the open reply window closes; absent if it is closed or never closes.',
    ),
    template_ids: z
      .array(idOf('template'))
      .max(3)
      .optional()
      .describe('Approved templates that fit, best first; only when no free-form reply can be sent.'),
    messages: z.array(QueueMessage).max(3).describe('The last three messages, oldest first.'),
  })
  .meta({ id: 'QueuedConversation' })

const QueueTemplate = z.object({
  id: idOf('template').describe('Template id.'),
  category: z.string().nullable().describe('`UTILITY` or `MARKETING`.'),
  text: z.string().nullable().describe('Its text, with variables.'),
  example: z
    .record(z.string(), z.unknown())
    .describe(
      '`template` for `messaging_send_template`, with samples: replace them with values for the customer.',
    ),
})

export const inboxQueue = defineOperation({
  name: 'inbox_queue',
  cli: 'conversations queue',
  routes: ['GET /v1/inbox/queue'],
  since,
  stability: 'beta',
  summary: 'List the customers who wait for a reply, longest wait first',
  description:
    'Everything needed to decide whom to answer first and how: the last messages, whether a free-form ' +
    'reply can be sent, and otherwise which templates fit (their texts are in `templates`). Read a ' +
    'whole conversation with `inbox_list_messages`. With `tag`, `contact_tag` or `sla_status` it is ' +
    `${EXPENSIVE_READ}`,
  heavy: ['tag', 'contact_tag', 'sla_status'],
  words:
    'unanswered conversations, who is waiting for a reply, what to answer next, overdue, backlog, ' +
    'pending tickets, work list, SLA, unanswered tickets, urgent',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'contact.name', title: 'customer', else: 'group.id' },
    { path: 'waiting_since', title: 'waiting', age: true },
    { path: 'reason', title: 'reply', else: 'window_closes_at', words: refusalWords },
    { path: 'unread_count', title: 'unread', words: { 0: '' } },
    { path: 'messages.last.text', title: 'last words', wrap: true },
    { path: 'assignee.name', title: 'assignee' },
    { path: 'sla' },
    { path: 'template_ids', title: 'templates' },
    { path: 'tags' },
  ],
  input: z.object({
    ...conversationFilters,
    contact_tag: VisibleName(100)
      .optional()
      .describe('Only customers with this tag, by name or id; `tag` is a tag of conversations.'),
    limit: Limit,
    cursor: Cursor,
  }),
  output: z.object({
    data: z.array(QueueRow).describe('The rows of this page, longest wait first.'),
    templates: z.array(QueueTemplate).describe('The templates that the rows name.'),
    total: Total,
    total_is_lower_bound: TotalIsLowerBound,
    next_cursor: NextCursor,
  }),
  errors: ['forbidden'],
  examples: [
    {
      title: 'Who waits for me',
      input: { assigned_staff_id: 'me' },
      output: {
        data: [
          {
            id: '381',
            contact: { id: '42', name: 'Ada Lovelace' },
            channel_id: '1',
            waiting_since: '2026-10-01T09:30:00.000Z',
            unread_count: 1,
            assignee: { staff_id: '5', name: 'Grace' },
            tags: ['VIP'],
            sla: 'breached',
            can_reply: false,
            reason: 'window_closed',
            template_ids: ['11'],
            messages: [{ from: 'customer', text: 'Is my order on its way?' }],
          },
        ],
        templates: [
          {
            id: '11',
            category: 'UTILITY',
            text: 'Hello {{1}}, your order is on its way.',
            example: { name: 'order_update', language: 'en_US', body: ['Ada'] },
          },
        ],
        total: 1,
        total_is_lower_bound: false,
        next_cursor: null,
      },
    },
    {
      title: 'Unassigned for over an hour',
      input: { assigned_staff_id: 'none', waiting_longer_than: '-1h', limit: 10 },
      output: { data: [], templates: [], total: 0, total_is_lower_bound: false, next_cursor: null },
    },
  ],
})
