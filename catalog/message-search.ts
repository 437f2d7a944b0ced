import { z } from 'zod'
import { ContactName, EXPENSIVE_READ, Id, idOf, Instant, NextCursor, page, Timestamp } from './fields.ts'
import { LastMessage } from './message-schemas.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'

const MessageHit = z
  .object({
    id: LastMessage.shape.id,
    conversation_id: idOf('conversation').describe('Conversation.'),
    contact: z
      .object({
        id: idOf('contact').describe('Contact id.'),
        name: ContactName,
      })
      .nullable()
      .describe('The customer; null when the contact was deleted.'),
    channel_id: Id.nullable().describe('Channel; null when it was deleted.'),
    direction: LastMessage.shape.direction,
    type: LastMessage.shape.type,
    note: z.boolean().describe('True: a note among staff; customers never see it.'),
    from: LastMessage.shape.from.describe('Sender of an outbound message or note; null for inbound.'),
    excerpt: untrusted(
      z.string().describe('About 200 characters around the first match, with `**` around each matched word.'),
    ),
    created_at: Timestamp.describe('When it was written.'),
  })
  .meta({ id: 'MessageHit' })

const time = (what: string) => Instant.optional().describe(what)

export const searchMessages = defineOperation({
  name: 'inbox_search_messages',
  cli: 'messages search',
  routes: ['GET /v1/messages'],
  since: '2026-10-01',
  stability: 'beta',
  summary: 'Search the text of messages and notes, newest first',
  description:
    'All words must be in the text or caption, in any order, ignoring case, accents and inflection ' +
    '(`orders` finds `order`) in Arabic, Armenian, Dutch, English, French, German, Greek, Hindi, ' +
    'Italian, Portuguese, Russian, Spanish, Tamil and Turkish. Words in double quotes match literally, ' +
    'as a phrase. New messages are found at once. Deleted messages and system messages are not found. ' +
    'Where very many messages have to be read, because they are not indexed yet or because they are of one ' +
    'conversation, a page holds what was found among some of them, maybe nothing: `searched_to` says how ' +
    'far it searched, and `next_cursor` continues there. ' +
    'Staff limited to some channels find only messages on those. With hidden phone numbers, digits in ' +
    `\`query\` are refused. It is ${EXPENSIVE_READ}`,
  heavy: true,
  slim: ['id', 'conversation_id', 'contact.name', 'direction', 'note', 'from.name', 'excerpt', 'created_at'],
  words: 'search messages, full text, find a word in chats, who mentioned, who wrote about, keyword',
  scope: 'mcp:read',
  view: [
    { path: 'created_at', title: 'at' },
    { path: 'contact.name', title: 'contact' },
    { path: 'excerpt', wrap: true },
    { path: 'conversation_id', title: 'conversation' },
    { path: 'direction' },
    { path: 'from.name', title: 'from' },
    { path: 'note', words: { true: 'yes', false: '' } },
    { path: 'id' },
  ],
  input: z.object({
    query: z.string().trim().min(1).max(255).describe('Words, and phrases in double quotes.'),
    channel_id: Id.optional().describe('Only on this channel.'),
    staff_id: Id.optional().describe('Only by this staff member.'),
    conversation_id: idOf('conversation').optional().describe('Only in this conversation.'),
    contact_id: idOf('contact').optional().describe('Only with this contact.'),
    direction: z
      .enum(['inbound', 'outbound', 'note'])
      .optional()
      .describe('Only from customers, to customers, or notes among staff.'),
    from: time('At this time or later.'),
    to: time('Before this time.'),
    ...page,
  }),
  output: z.object({
    data: z.array(MessageHit).describe('The rows of this page.'),
    next_cursor: NextCursor,
    searched_to: Timestamp.nullable().describe(
      'This page searched only messages from this time on: older ones may match too; continue with ' +
        '`next_cursor`. Null: it is full, or the last.',
    ),
  }),
  errors: [],
  examples: [
    {
      title: 'Words in any form, from customers',
      input: { query: 'orders way', direction: 'inbound', limit: 1 },
      output: {
        data: [
          {
            id: '1657',
            conversation_id: '381',
            contact: { id: '42', name: 'Ada Lovelace' },
            channel_id: '1',
            direction: 'inbound',
            type: 'TEXT',
            note: false,
            from: null,
            excerpt: 'Is my **order** on its **way**?',
            created_at: '2026-10-01T09:30:00.000Z',
          },
        ],
        next_cursor: null,
        searched_to: null,
      },
    },
  ],
})
