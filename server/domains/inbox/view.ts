import type { Context } from '../../handler.ts'
import type { z } from 'zod'
import type { Conversation } from '../../../catalog/conversations/read.ts'
import type { ConversationRow } from '../../../storage/conversations/lists.ts'
import { showLastMessage } from '../messaging/view.ts'
import { toSla } from './sla.ts'
import { findReplyRefusal, type ReplyFacts, toWindow } from './window.ts'
import { showContactName, showPhone } from '../../visibility/phones.ts'

export const showReply = (
  facts: ReplyFacts,
  window: { open: boolean },
): Pick<z.input<typeof Conversation>, 'can_reply' | 'reason'> => {
  const reason = findReplyRefusal(facts, window)
  return reason === null ? { can_reply: true } : { can_reply: false, reason }
}

/** A conversation as one staff member may see it, at this time. */
export const showConversation = (
  { actor, now }: Pick<Context, 'actor' | 'now'>,
  row: ConversationRow,
  window = toWindow(row, now),
): z.input<typeof Conversation> => ({
  id: row.id,
  state: row.state,
  contact:
    row.contact_id === null
      ? null
      : {
          id: row.contact_id,
          name: showContactName(actor, row.contact_name),
          phone: showPhone(actor, row.contact_phone),
          dnd_enabled: row.contact_dnd!,
          groups: row.groups.map((group) => group.name),
        },
  channel:
    row.channel_type === null
      ? null
      : { id: row.channel_id!, name: row.channel_name, type: row.channel_type },
  assignee:
    row.assigned_staff_id === null
      ? null
      : { staff_id: row.assigned_staff_id, name: row.assigned_staff_name },
  team_id: row.assigned_team_id,
  assigned_at: row.assigned_at,
  tags: row.tags,
  starred: row.contact_starred ?? false,
  unread_count: row.unread_count,
  reply_status: row.reply_status,
  waiting_since: row.waiting_since,
  sla: toSla(row, now),
  reminder_at: row.reminder_at,
  chatapp_window_expires_at: row.window_expires_at,
  window,
  ...showReply(row, window),
  bot_active: row.bot_active,
  ...(row.group_id === null ? {} : { group: { id: row.group_id } }),
  ...(row.ad ? { ad: row.ad } : {}),
  last_message:
    row.message_id === null
      ? null
      : showLastMessage(actor, {
          id: row.message_id,
          conversation_id: row.id,
          direction: row.message_direction,
          type: row.message_type,
          status: row.message_status,
          text: row.message_text,
          staff_id: row.message_staff_id,
          staff_name: row.message_staff_name,
          author_key: row.message_author_key,
          reply_to_id: row.message_reply_to_id,
          error: row.message_error,
          created_at: row.message_created_at,
          media_state: row.message_media_state,
          deleted_at: row.message_deleted_at,
        }),
  created_at: row.created_at,
  updated_at: row.updated_at,
})
