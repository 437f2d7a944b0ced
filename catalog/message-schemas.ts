import { z } from 'zod'
import { ActorView } from './actor.ts'
import { Id, idOf, Timestamp } from './fields.ts'
import { contentFields } from './message-content.ts'
import { untrusted } from './text.ts'

const messageTypes = [
  'TEXT',
  'IMAGE',
  'VIDEO',
  'AUDIO',
  'DOCUMENT',
  'STICKER',
  'LOCATION',
  'TEMPLATE',
  'INTERACTIVE',
  'ORDER',
  'CONTACTS',
  'SYSTEM',
] as const
export type MessageType = (typeof messageTypes)[number]
const messageStatuses = ['received', 'pending', 'sent', 'delivered', 'read', 'failed', 'system'] as const

export const LastMessage = z
  .object({
    id: idOf('message').describe('Message id.'),
    conversation_id: idOf('conversation').nullable().describe('Conversation.'),
    type: z.enum(messageTypes).describe('Type of the message.'),
    direction: z
      .enum(['inbound', 'outbound', 'system'])
      .describe('From the customer, to the customer, or neither (notes, changes).'),
    status: z.enum(messageStatuses).describe('Delivery status.'),
    text: untrusted(
      z.string().nullable().describe('Text or caption; at most 500 characters as a last message.'),
      { phone: 'message' },
    ),
    text_truncated: z.boolean().describe('True: the text was cut.'),
    has_media: z.boolean().describe('True: it has an image, video, audio file or document.'),
    from: z
      .object({
        staff_id: Id.nullable().describe('Staff member.'),
        name: z.string().nullable().describe('Name.'),
      })
      .nullable()
      .describe('Sender of an outbound message or note; null for inbound.'),
    actor: ActorView.nullable().describe(
      'Who wrote an outbound message or note, with which key; `agent` marks an AI agent, `approved_by` ' +
        'its approver. Null for customers, and if unknown.',
    ),
    reply_to_id: Id.nullable().describe('The message it replies to.'),
    error: untrusted(z.string().nullable().describe('Why it failed.'), { phone: 'text' }),
    created_at: Timestamp.nullable().describe('When it was written.'),
    deleted_at: Timestamp.nullable().describe('When the customer deleted it, with its text and file.'),
  })
  .meta({ id: 'LastMessage' })

/** A customer and the team have one reaction each to a message. */
const Reaction = z.object({
  emoji: untrusted(z.string().describe('The emoji.')),
  from: z.enum(['customer', 'staff']).describe('Who reacted.'),
  at: Timestamp.describe('When.'),
})

export const Message = LastMessage.extend({
  text: untrusted(z.string().nullable().describe('Text or caption in full.'), { phone: 'message' }),
  ...contentFields,
  media: z
    .object({
      content_type: untrusted(z.string().nullable().describe('MIME type.')),
      file_name: untrusted(z.string().nullable().describe('File name.')),
      size: z.int().nullable().describe('Bytes.'),
      url: untrusted(
        z
          .string()
          .nullable()
          .describe('URL to read it with an API key, or the URL it was sent from; null if deleted.'),
      ),
    })
    .nullable()
    .describe('The image, video, audio file or document.'),
  template: z
    .object({ name: z.string().describe('Template name.'), language: z.string().describe('Language.') })
    .nullable()
    .describe('The template it was created from.'),
  external_id: untrusted(
    z.string().nullable().describe('Id of the message in the system that sent it, unique in the workspace.'),
  ),
  note: z.boolean().describe('True: a note among staff; customers never see it.'),
  delivered_at: Timestamp.nullable().describe('When it reached the customer.'),
  read_at: Timestamp.nullable().describe('When the customer read it.'),
  failed_at: Timestamp.nullable().describe('When it failed.'),
  edited_at: Timestamp.nullable().describe('When the customer last edited it; `text` is the new one.'),
  reactions: z.array(Reaction).describe('Reactions to it.'),
}).meta({ id: 'Message' })
