import { sql } from 'kysely'
import type { Db, MessageStatus } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { isNamedBy } from '../messages/provider-ids.ts'

/** A message of a bridged channel. `reference` is null for those of customers. */
export type ChannelMessage = {
  id: string
  conversation_id: string
  contact_id: string | null
  status: MessageStatus
  reference: string | null
}

/** Returns the message with this stored id of the bridge; undefined when there is none. */
export const findBridgeMessage = async (
  tx: Db,
  workspaceId: string,
  providerId: string,
): Promise<ChannelMessage | undefined> =>
  (
    await sql<ChannelMessage>`
    select m.id, m.conversation_id, v.contact_id, m.status, m.reference from messages m
    join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
    where m.workspace_id = ${workspaceId} and ${isNamedBy([providerId])}`.execute(tx)
  ).rows[0]

/** Returns a reply on this channel that is or was to be delivered; undefined when there is none. */
export const findChannelReply = async (
  tx: Db,
  workspaceId: string,
  channelId: string,
  messageId: string,
): Promise<ChannelMessage | undefined> =>
  (
    await sql<ChannelMessage>`
    select m.id, m.conversation_id, v.contact_id, m.status, m.reference from messages m
    join conversations v on v.workspace_id = m.workspace_id and v.id = m.conversation_id
    where m.workspace_id = ${workspaceId} and m.id = ${toStorableId(messageId)} and m.channel_id = ${channelId}
      and m.direction = 'outbound' and m.reference is not null`.execute(tx)
  ).rows[0]

/** Returns the channel of a conversation; undefined when one of them does not exist. */
export const findChannelOfConversation = (
  tx: Db,
  workspaceId: string,
  conversationId: string,
): Promise<{ id: string; type: string } | undefined> =>
  tx
    .selectFrom('conversations as v')
    .innerJoin('channels as h', (join) =>
      join.onRef('h.workspace_id', '=', 'v.workspace_id').onRef('h.id', '=', 'v.channel_id'),
    )
    .select(['h.id', 'h.type'])
    .where('v.workspace_id', '=', workspaceId)
    .where('v.id', '=', toStorableId(conversationId))
    .executeTakeFirst()
