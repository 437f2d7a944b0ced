import type { Context } from '../../handler.ts'
import type { z } from 'zod'
import type { ActorView } from '../../../catalog/actor.ts'
import { PHONE_APP_NAME, type StoredContent } from '../../../catalog/message-content.ts'
import type { LastMessage, Message, MessageType } from '../../../catalog/message-schemas.ts'
import type { EventData } from '../../../catalog/events.ts'
import type { MessageRow } from '../../../storage/messages/lists.ts'
import type { Actor } from '../../kernel/context.ts'
import { showMessageText, showQuotingText } from '../../visibility/phones.ts'
import { showRecord } from '../../visibility/records.ts'

/** Code points of text that a conversation shows of its last message. */
const MAX_PREVIEW_LENGTH = 500

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Returns the first `max` code points, or a few fewer, so that no grapheme is cut in two. */
export const clipText = (text: string, max: number): { text: string; truncated: boolean } => {
  // No text has more code points than UTF-16 units.
  if (text.length <= max) return { text, truncated: false }
  let end = 0
  for (let n = 0; n < max && end < text.length; n++) end += text.codePointAt(end)! > 0xffff ? 2 : 1
  if (end === text.length) return { text, truncated: false }
  // A single letter with hundreds of combining marks is cut nevertheless.
  const begin = graphemes.segment(text).containing(end)!.index
  return { text: text.slice(0, begin === 0 ? end : begin), truncated: true }
}

type LastMessageRow = Omit<
  MessageRow,
  | 'contact_id'
  | 'channel_id'
  | 'external_id'
  | 'content'
  | 'note'
  | 'template_name'
  | 'template_language'
  | 'delivered_at'
  | 'read_at'
  | 'failed_at'
  | 'edited_at'
  | 'reactions'
  | 'media_type'
  | 'media_name'
  | 'media_size'
  | 'media_url'
>

/** Returns who wrote a message; null for customers, the own app, and the service. */
const showAuthor = (row: Pick<MessageRow, 'staff_id' | 'staff_name' | 'author_key'>): ActorView | null => {
  const { staff_id: id, staff_name: name, author_key: key } = row
  if (id === null && key === null) return null
  return {
    staff: { id, name },
    key: key && { id: key.id, name: key.name },
    agent: key?.agent ?? false,
    approved_by: key && key.approved_by !== null ? { id: key.approved_by, name: key.approver_name } : null,
  }
}

/** Of a deleted message neither text nor file is left. */
const showShared = (actor: Actor, row: LastMessageRow) => ({
  id: row.id,
  conversation_id: row.conversation_id,
  type: row.type as MessageType,
  direction: row.direction,
  status: row.status,
  text: showMessageText(actor, row),
  text_truncated: false,
  has_media: hasMedia(row),
  from:
    row.direction === 'outbound' || (row.direction === 'system' && row.staff_id !== null)
      ? { staff_id: row.staff_id, name: row.staff_name }
      : null,
  actor: showAuthor(row),
  reply_to_id: row.reply_to_id,
  error: showQuotingText(actor, row.error),
  created_at: row.created_at,
  deleted_at: row.deleted_at,
})

/** The file of a deleted message is kept until the job of the files has removed it. */
const hasMedia = (row: { media_state: MessageRow['media_state']; deleted_at?: string | null }): boolean =>
  row.media_state !== null && (row.deleted_at ?? null) === null

/** Returns a message in brief, as its conversation shows it. */
export const showLastMessage = (actor: Actor, row: LastMessageRow): z.input<typeof LastMessage> => {
  const shown = showShared(actor, row)
  if (shown.text === null) return shown
  const { text, truncated } = clipText(shown.text, MAX_PREVIEW_LENGTH)
  return { ...shown, text, text_truncated: truncated }
}

/** The URL of a message's file: on this server, or the link that it was sent with. Null: no file yet. */
const mediaUrl = (publicUrl: string, { id, media_state: state, media_url: url }: MessageRow): string | null =>
  state === 'linked'
    ? url
    : state === 'kept' || state === 'waiting'
      ? `${publicUrl}/v1/messages/${id}/media`
      : null

const toContentFields = ({ content, status }: { content?: StoredContent | null; status: string }) => {
  const { held, ...stored } = content ?? {}
  return { content: null, ...stored, ...(held && status === 'sent' ? { held } : {}) }
}

/** Returns a message as this staff member may see it. */
export const showMessage = (
  { actor, services: { config } }: Pick<Context, 'actor' | 'services'>,
  row: MessageRow,
): z.input<typeof Message> => ({
  ...showShared(actor, row),
  ...(row.content?.phone_app ? { from: { staff_id: null, name: PHONE_APP_NAME } } : {}),
  ...showRecord(actor, ['answer', 'messaging_get_message'], toContentFields(row)),
  media: hasMedia(row)
    ? {
        content_type: row.media_type,
        file_name: row.media_name,
        size: row.media_size === null ? null : Number(row.media_size),
        url: mediaUrl(config.publicUrl, row),
      }
    : null,
  template:
    row.template_name === null ? null : { name: row.template_name, language: row.template_language ?? '' },
  note: row.note,
  external_id: row.external_id,
  delivered_at: row.delivered_at,
  read_at: row.read_at,
  failed_at: row.failed_at,
  edited_at: row.edited_at,
  reactions: row.reactions.map(({ emoji, sender, at }) => ({ emoji, from: sender, at })),
})

/** Returns what an event about a message that staff sent carries: the message, and who wrote it. */
export const showSentMessage = (row: MessageRow): EventData<'message.sent/1'> => {
  const actor = showAuthor(row)
  return { message: eventMessage(row), ...(actor ? { actor } : {}) }
}

/** Returns a message as events carry it. */
export const eventMessage = (
  row: Pick<
    MessageRow,
    | 'id'
    | 'conversation_id'
    | 'contact_id'
    | 'channel_id'
    | 'type'
    | 'direction'
    | 'status'
    | 'text'
    | 'media_state'
    | 'reply_to_id'
    | 'error'
    | 'created_at'
  > &
    Partial<Pick<MessageRow, 'deleted_at' | 'external_id' | 'content'>>,
): EventData<'message.sent/1'>['message'] => ({
  id: row.id,
  conversation_id: row.conversation_id,
  contact_id: row.contact_id,
  channel_id: row.channel_id,
  type: row.type,
  direction: row.direction,
  status: row.status,
  text: row.text,
  ...toContentFields(row),
  has_media: hasMedia(row),
  reply_to_id: row.reply_to_id,
  external_id: row.external_id ?? null,
  error: row.error,
  created_at: row.created_at,
})
