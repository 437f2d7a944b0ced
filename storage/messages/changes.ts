import { sql } from 'kysely'
import type { StoredContent } from '../../catalog/message-content.ts'
import type { Db, MediaState, MessageDirection, MessageStatus } from '../database.ts'
import { removableAt } from './media.ts'
import { isNamedBy, namedBy } from './provider-ids.ts'

/**
 * A message that a customer changes, with the contact of its conversation. `contact_line`: see `lineKey`. `named_by`:
 * the given ids of the provider that are its own.
 */
export type ChangedMessage = {
  id: string
  named_by: string[]
  conversation_id: string
  channel_id: string | null
  contact_id: string | null
  contact_line: string | null
  contact_user_id: string | null
  direction: MessageDirection
  type: string
  status: MessageStatus
  text: string | null
  content: StoredContent | null
  reply_to_id: string | null
  error: string | null
  created_at: string
  edited_at: string | null
  deleted_at: string | null
  media_state: MediaState | null
}

/** Locks the messages with these ids of the provider, in the order of our ids. */
export const lockMessagesByProviderId = async (
  tx: Db,
  workspaceId: string,
  providerIds: readonly string[],
): Promise<ChangedMessage[]> =>
  (
    await sql<ChangedMessage>`
    select m.id, ${namedBy(providerIds)} as named_by, m.conversation_id, v.channel_id, v.contact_id,
      coalesce(c.phone_key, c.phone) as contact_line,
      c.chatapp_user_id as contact_user_id, m.direction, m.type, m.status, m.text, m.content - 'call' as content,
      m.reply_to_id, m.error,
      m.created_at, m.edited_at, m.deleted_at, d.state as media_state
    from messages m
    join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
    left join contacts c on c.workspace_id = v.workspace_id and c.id = v.contact_id
    left join media d on d.workspace_id = m.workspace_id and d.message_id = m.id
    where m.workspace_id = ${workspaceId} and ${isNamedBy(providerIds)}
    order by m.id for update of m`.execute(tx)
  ).rows

/** Returns the emoji with which each sender reacts to each of these messages, by `<sender> <message id>`. */
export const readReactions = async (
  tx: Db,
  workspaceId: string,
  messageIds: readonly string[],
): Promise<Map<string, string>> => {
  const { rows } = await sql<{ key: string; emoji: string }>`
    select sender || ' ' || message_id as key, emoji from message_reactions where workspace_id = ${workspaceId}
      and message_id = any(${messageIds}::bigint[]) and emoji is not null`.execute(tx)
  return new Map(rows.map((row) => [row.key, row.emoji]))
}

/** `emoji`: null removes the reaction. `updateId`: decides between two of the same time. */
export type NewReaction = {
  messageId: string
  sender: 'customer' | 'staff'
  emoji: string | null
  at: string
  updateId: string
}

/** Writes the reaction of a person to a locked message; false when a later one is stored. */
export const upsertReaction = async (
  tx: Db,
  workspaceId: string,
  { messageId, sender, emoji, at, updateId }: NewReaction,
): Promise<boolean> =>
  (
    await sql`
    insert into message_reactions as r (workspace_id, message_id, sender, emoji, at, update_id)
    values (${workspaceId}::bigint, ${messageId}::bigint, ${sender}, ${emoji}, ${at}::timestamptz,
      ${updateId}::bigint)
    on conflict (workspace_id, message_id, sender) do update
      set emoji = excluded.emoji, at = excluded.at, update_id = excluded.update_id
      where (r.at, r.update_id) <= (excluded.at, excluded.update_id)
    returning 1`.execute(tx)
  ).rows.length > 0

/** Replaces the text of a locked message. */
export const updateMessageText = async (
  tx: Db,
  workspaceId: string,
  id: string,
  text: string | null,
  editedAt: string,
): Promise<void> => {
  await tx
    .updateTable('messages')
    .set({ text, edited_at: editedAt })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Why there is no file, for staff. */
const FILE_DELETED = 'The customer deleted the message.'

/**
 * Erases what a locked message says, with its reactions and what is known of its file. The row remains; a
 * file in the store is removed later (`listErasableMedia`).
 */
export const eraseMessage = async (
  tx: Db,
  workspaceId: string,
  id: string,
  deletedAt: string,
): Promise<void> => {
  await sql`
    with erased as (
      update messages set text = null, content = null, deleted_at = ${deletedAt}::timestamptz
      where workspace_id = ${workspaceId} and id = ${id}::bigint
    ), reactions as (
      delete from message_reactions where workspace_id = ${workspaceId} and message_id = ${id}::bigint
    )
    update media set state = 'lost', error = ${FILE_DELETED}, content_type = null, file_name = null,
      size = null, sha256 = null, url = null, provider_media_id = null,
      removable_at = ${removableAt}
    where workspace_id = ${workspaceId} and message_id = ${id}::bigint`.execute(tx)
}
