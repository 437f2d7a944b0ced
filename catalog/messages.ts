import { z } from 'zod'
import { PhoneInput } from './contacts/schemas.ts'
import {
  Cursor,
  DryRunWarnings,
  ExternalId,
  Id,
  idOf,
  Limit,
  messageInput,
  NextCursor,
  VisibleName,
} from './fields.ts'
import { Interactive } from './interactive.ts'
import { defineOperation } from './operation.ts'
import { Message } from './message-schemas.ts'
import { SendTemplate } from './send-template.ts'
import { untrusted } from './text.ts'

const since = '2026-10-01'

const MessageExternalId = ExternalId.describe(
  'Id of the message in your system, 1 to 255 characters. A second message with it is refused (409 ' +
    '`external_id_taken`); a message that the provider refused frees it.',
)
const ConversationId = idOf('conversation').describe('Conversation id.')
const MessageId = idOf('message').describe('Message id.')

const sent = {
  id: '1660',
  conversation_id: '381',
  type: 'TEXT' as const,
  direction: 'outbound' as const,
  status: 'sent' as const,
  text: 'It is, it arrives today.',
  text_truncated: false,
  has_media: false,
  from: { staff_id: '5', name: 'Grace' },
  actor: {
    staff: { id: '5', name: 'Grace' },
    key: { id: '9', name: 'Mara' },
    agent: true,
    approved_by: { id: '6', name: 'Ben' },
  },
  reply_to_id: null,
  error: null,
  created_at: '2026-10-01T09:32:00.000Z',
  deleted_at: null,
  content: null,
  media: null,
  template: null,
  external_id: null,
  note: false,
  delivered_at: null,
  read_at: null,
  failed_at: null,
  edited_at: null,
  reactions: [{ emoji: '👍', from: 'customer' as const, at: '2026-10-01T09:33:00.000Z' }],
}
const twoButtons = {
  kind: 'buttons' as const,
  buttons: [{ title: 'Yes, today', id: 'today' }, { title: 'Another day' }],
}
/** A message that a dry run would send has no id. */
const SentMessage = Message.extend({
  id: idOf('message').nullable().describe('Message id; null in a dry run.'),
})
const sendOutput = {
  message: SentMessage.describe("The message; its status follows the provider's reports."),
  conversation_id: idOf('conversation')
    .nullable()
    .describe('The conversation it is in; null when a dry run would create it.'),
}

export const listMessages = defineOperation({
  name: 'inbox_list_messages',
  cli: 'conversations messages',
  routes: ['GET /v1/conversations/{conversation_id}/messages'],
  since,
  stability: 'beta',
  summary: 'List the messages and notes of a conversation, newest first',
  slim: [
    'id',
    'direction',
    'type',
    'status',
    'text',
    'content',
    'ad',
    'product',
    'author.name',
    'from.name',
    'actor.agent',
    'note',
    'media.file_name',
    'media.content_type',
    'template.name',
    'reply_to_id',
    'reactions',
    'error',
    'created_at',
    'edited_at',
    'deleted_at',
  ],
  forModels: '`crm_upsert_contact` adds a card of `content.contacts` that is not `own`.',
  words:
    'read the chat history, messages of a conversation, message history with a customer, transcript, ' +
    'what was said, thread, read messages, last messages, what did the customer write last, latest ' +
    'message',
  scope: 'mcp:read',
  view: 'thread',
  input: z.object({ conversation_id: ConversationId, limit: Limit, cursor: Cursor }),
  output: z.object({ data: z.array(Message).describe('The rows of this page.'), next_cursor: NextCursor }),
  errors: ['not_found'],
  examples: [
    {
      title: 'The newest',
      input: { conversation_id: '381', limit: 1 },
      output: { data: [sent], next_cursor: null },
    },
  ],
})

export const getMessage = defineOperation({
  name: 'messaging_get_message',
  cli: 'messages get',
  routes: [
    { route: 'GET /v1/messages/{message_id}', fields: ['message_id'] },
    { route: 'GET /v1/messages/by-external-id/{external_id}', fields: ['external_id'] },
  ],
  since,
  stability: 'beta',
  summary: 'Get one message with its delivery status',
  words:
    'message status, was it delivered, read receipt, did the message arrive, why did a message fail, ' +
    'error',
  scope: 'mcp:read',
  alternatives: [{ needs: ['message_id'] }, { needs: ['external_id'] }],
  input: z.object({
    message_id: MessageId.optional(),
    external_id: ExternalId.optional().describe(
      'Id of the message in the system that sent it; case matters.',
    ),
  }),
  output: Message,
  errors: ['not_found'],
  examples: [
    { title: 'A reply', input: { message_id: '1660' }, output: sent },
    {
      title: 'By its id in your system',
      input: { external_id: 'order-1042' },
      output: { ...sent, external_id: 'order-1042' },
    },
  ],
})

export const addNote = defineOperation({
  name: 'inbox_add_note',
  cli: 'conversations note',
  routes: [{ route: 'POST /v1/conversations/{conversation_id}/notes', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Add a note that only staff see',
  words:
    'internal note, private comment, internal comment, remark for colleagues, annotate, memo, write ' +
    'down',
  scope: 'inbox:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  emits: [],
  compose: 'text',
  input: messageInput({
    conversation_id: ConversationId,
    text: z.string().trim().min(1).max(4096).describe('The note, 1 to 4096 characters.'),
  }),
  output: z.object({ message: SentMessage.describe('The note.') }),
  errors: ['not_found'],
  examples: [
    {
      title: 'A hint for colleagues',
      input: { conversation_id: '381', text: 'Asked the courier.' },
      output: {
        message: {
          ...sent,
          id: '903',
          direction: 'system',
          status: 'system',
          text: 'Asked the courier.',
          note: true,
        },
      },
    },
  ],
})

export const sendReply = defineOperation({
  name: 'messaging_send_reply',
  cli: 'conversations reply',
  routes: [{ route: 'POST /v1/conversations/{conversation_id}/messages', status: 201 }],
  since,
  stability: 'beta',
  summary: 'Send a free-form reply while the reply window is open',
  forModels:
    'Send `text`, also with `interactive` (buttons, a list), or `media_url` with `type`, or `quick_message_id`. When ' +
    'the window is closed it is refused with `window_closed`: send a template then. 503 or 504 `outcome_unknown`: ' +
    'it may have been sent; repeating with the same `idempotency_key` never sends twice.',
  description:
    'Send `text`, also with `interactive`, or `media_url` with `type`, or `quick_message_id`. Outside the window it ' +
    'is refused with `window_closed` and the window; send a template then. ' +
    'Channels of type `chatapp` and those with a URL can send. State and assignment of the conversation do not ' +
    'change. A saved reply is refused when the contact lacks a value for one of its placeholders. ' +
    '503 or 504 `outcome_unknown`: the message stays pending and is not sent again; repeat with `idempotency_key`. ' +
    'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words:
    'reply, answer a customer, send a message, WhatsApp text, send an image, photo, PDF, document, ' +
    'file, video, respond, write back, chat, buttons, list of choices, quick reply buttons, ask for the location',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'send',
  repeatable: false,
  emits: [
    'message.sent/1',
    'message.failed/1',
    'conversation.reply_failed/1',
    'conversation.reopened/1',
    'conversation.closed/1',
    'contact.updated/1',
    'consent.changed/1',
    'contact.deleted/1',
    'contact.tags_added/1',
    'contact.groups_added/1',
  ],
  compose: 'text',
  alternatives: [
    { needs: ['text'], takes: ['interactive'] },
    { needs: ['media_url', 'type'], takes: ['caption', 'file_name'] },
    { needs: ['quick_message_id'] },
  ],
  input: messageInput({
    conversation_id: ConversationId,
    text: z.string().min(1).max(4096).optional().describe('Text, 1 to 4096 characters.'),
    interactive: Interactive.optional().describe(
      'What the customer can tap below `text`; the tap arrives as a message whose `content` has its id.',
    ),
    media_url: z
      .url({ protocol: /^https$/ })
      .max(2000)
      .optional()
      .describe('Public https URL of a file to send.'),
    type: z
      .enum(['IMAGE', 'VIDEO', 'AUDIO', 'DOCUMENT', 'STICKER'])
      .optional()
      .describe('Type of the file; required with `media_url`.'),
    caption: z.string().max(1024).optional().describe('Caption of an image, video or document.'),
    file_name: VisibleName(200).optional().describe('Name of a document.'),
    quick_message_id: idOf('quick_message')
      .optional()
      .describe('A saved reply; its placeholders are filled in.'),
    reply_to_id: Id.optional().describe('The message of this conversation to reply to.'),
    external_id: MessageExternalId.optional(),
  }),
  output: z.object(sendOutput),
  errors: [
    'not_found',
    'forbidden',
    'conflict',
    'window_closed',
    'confirm_required',
    'upstream_error',
    'service_unconfigured',
  ],
  examples: [
    {
      title: 'A text',
      input: { conversation_id: '381', text: 'It is, it arrives today.' },
      output: { message: sent, conversation_id: '381' },
    },
    {
      title: 'Two buttons',
      input: { conversation_id: '381', text: 'Shall we deliver today?', interactive: twoButtons },
      output: {
        message: {
          ...sent,
          type: 'INTERACTIVE' as const,
          text: 'Shall we deliver today?',
          content: twoButtons,
          reactions: [],
        },
        conversation_id: '381',
      },
    },
  ],
})

export const sendTemplate = defineOperation({
  name: 'messaging_send_template',
  cli: 'messages send-template',
  routes: [{ route: 'POST /v1/messages/template', status: 201 }],
  since,
  stability: 'beta',
  summary: 'Send an approved template to one contact',
  forModels:
    'Reaches a customer at any time, also when the reply window is closed. Send exactly one of ' +
    '`contact_id` and `phone`. Every variable is checked before anything is sent; ' +
    'messaging_get_template shows which there are. 503 or 504 `outcome_unknown`: it may have been sent; ' +
    'repeating with the same `idempotency_key` never sends twice.',
  description:
    'Send exactly one of `contact_id` and `phone`; a contact is created for an unknown phone. ' +
    'Variables are checked against the template before anything is sent. Marketing templates to ' +
    'do-not-disturb contacts are refused. If the provider refuses, all changes are undone. A closed ' +
    'conversation stays closed. With hidden phone numbers, a dry run by `phone` returns the result for ' +
    'an unknown number, with `warnings`, and real sends by `phone` are limited to a number of ' +
    'different phones a day (429, reason `phone_budget`). 503 or 504 `outcome_unknown`: the message stays ' +
    'pending and is not sent again; repeat with `idempotency_key`. Without a messaging provider it is ' +
    'a 503 `service_unconfigured`, dry runs too.',
  words:
    'send a template message, start a conversation, message a customer first, outside the 24h window, ' +
    'window closed, order confirmation, notification, schedule a message, HSM, write to a customer, ' +
    'remind a customer, appointment, reminder, send later, in the future',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'send',
  repeatable: false,
  emits: [
    'message.sent/1',
    'message.failed/1',
    'conversation.reply_failed/1',
    'conversation.reopened/1',
    'conversation.closed/1',
    'conversation.created/1',
    'template.status_changed/1',
    'contact.created/1',
    'contact.updated/1',
    'consent.changed/1',
    'contact.deleted/1',
    'contact.tags_added/1',
    'contact.groups_added/1',
  ],
  alternatives: [{ needs: ['contact_id'] }, { needs: ['phone'] }],
  input: messageInput({
    contact_id: idOf('contact').optional().describe('The contact; alternative to `phone`.'),
    phone: PhoneInput.optional().describe('International phone number; alternative to `contact_id`.'),
    channel_id: Id.optional().describe(
      "Channel; when absent, that of the contact's latest conversation, else the default channel.",
    ),
    external_id: MessageExternalId.optional(),
    template: SendTemplate.describe('The template and the values of its variables.'),
  }),
  output: z.object({
    ...sendOutput,
    preview: untrusted(z.string().describe('The body with its variables filled in.')),
    parts: z
      .array(
        z.object({
          part: untrusted(z.string().describe('Such as `Footer`, or `Card 1, button 2 (URL)`.')),
          text: untrusted(z.string().describe('Its text and target, with the values filled in.')),
        }),
      )
      .optional()
      .describe('In a dry run: what the customer gets in addition to the body.'),
    warnings: DryRunWarnings,
  }),
  errors: [
    'not_found',
    'forbidden',
    'conflict',
    'confirm_required',
    'upstream_error',
    'service_unconfigured',
  ],
  examples: [
    {
      title: 'An order update',
      input: { contact_id: '42', template: { name: 'order_update', language: 'en_US', body: ['Ada'] } },
      output: {
        message: {
          ...sent,
          id: '904',
          type: 'TEMPLATE',
          text: 'Hello Ada, your order is on its way.',
          template: { name: 'order_update', language: 'en_US' },
        },
        conversation_id: '381',
        preview: 'Hello Ada, your order is on its way.',
      },
    },
  ],
})
