import type { z } from 'zod'
import type { LastMessage, Message, MessageType } from '../../catalog/messages.ts'
import type { EventData } from '../../catalog/events.ts'
import type { MessageRow } from '../../storage/message-lists.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, type Context, phonesHidden } from '../core/context.ts'

/** Characters of text that a conversation shows of its last message. */
const LAST_TEXT = 500

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** The first `most` code points, or a few less, so that no character as a reader sees it is cut in two. */
export const clipText = (text: string, most: number): { text: string; truncated: boolean } => {
  // No text has more code points than UTF-16 units.
  if (text.length <= most) return { text, truncated: false }
  let end = 0
  for (let n = 0; n < most && end < text.length; n++) end += text.codePointAt(end)! > 0xffff ? 2 : 1
  if (end === text.length) return { text, truncated: false }
  // A lone letter under hundreds of accents is cut all the same.
  const begin = graphemes.segment(text).containing(end)!.index
  return { text: text.slice(0, begin === 0 ? end : begin), truncated: true }
}

type LastRow = Omit<
  MessageRow,
  | 'contact_id'
  | 'channel_id'
  | 'note'
  | 'template_name'
  | 'template_language'
  | 'delivered_at'
  | 'read_at'
  | 'failed_at'
  | 'media_type'
  | 'media_name'
  | 'media_size'
  | 'media_url'
>

/** What people wrote is shown as they wrote it; what the provider said can quote the customer's phone. */
const masked = (actor: Actor, text: string | null): string | null =>
  phonesHidden(actor) ? maskDigits(text) : text

const showShared = (actor: Actor, row: LastRow) => ({
  id: row.id,
  conversation_id: row.conversation_id,
  type: row.type as MessageType,
  direction: row.direction,
  status: row.status,
  text: row.type === 'SYSTEM' ? masked(actor, row.text) : row.text,
  text_truncated: false,
  has_media: row.media_state !== null,
  from:
    row.direction === 'outbound' || (row.direction === 'system' && row.staff_id !== null)
      ? { staff_id: row.staff_id, name: row.staff_name }
      : null,
  reply_to_id: row.reply_to_id,
  error: masked(actor, row.error),
  created_at: row.created_at,
})

/** A message in brief, as its conversation shows it. */
export const showLastMessage = (actor: Actor, row: LastRow): z.input<typeof LastMessage> => {
  const shown = showShared(actor, row)
  if (shown.text === null) return shown
  const { text, truncated } = clipText(shown.text, LAST_TEXT)
  return { ...shown, text, text_truncated: truncated }
}

/** Where the file of a message is read: of this server, or where it was sent from. */
const mediaUrl = (publicUrl: string, { id, media_state: state, media_url: url }: MessageRow): string | null =>
  state === 'linked'
    ? url
    : state === 'kept' || state === 'waiting'
      ? `${publicUrl}/v1/messages/${id}/media`
      : null

/** A message as one staff member may see it. */
export const showMessage = (
  { actor, publicUrl }: Pick<Context, 'actor' | 'publicUrl'>,
  row: MessageRow,
): z.input<typeof Message> => ({
  ...showShared(actor, row),
  media:
    row.media_state === null
      ? null
      : {
          content_type: row.media_type,
          file_name: row.media_name,
          size: row.media_size === null ? null : Number(row.media_size),
          url: mediaUrl(publicUrl, row),
        },
  template:
    row.template_name === null ? null : { name: row.template_name, language: row.template_language ?? '' },
  note: row.note,
  delivered_at: row.delivered_at,
  read_at: row.read_at,
  failed_at: row.failed_at,
})

/** A message as events carry it. */
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
  >,
): EventData<'message.sent/1'>['message'] => ({
  id: row.id,
  conversation_id: row.conversation_id,
  contact_id: row.contact_id,
  channel_id: row.channel_id,
  type: row.type,
  direction: row.direction,
  status: row.status,
  text: row.text,
  has_media: row.media_state !== null,
  reply_to_id: row.reply_to_id,
  error: row.error,
  created_at: row.created_at,
})
