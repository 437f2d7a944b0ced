import type { Context } from '../../handler.ts'
import type { StoredContent } from '../../../catalog/message-content.ts'
import { insertChannelDelivery } from '../../../storage/channels/deliveries.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import { insertMessages, type NewMessage } from '../../../storage/messages/messages.ts'
import type { SendingChannel } from '../../../storage/messages/sends.ts'
import { showActor } from '../../kernel/actor-view.ts'
import { createUlid } from '../../ids.ts'
import { requireInserted } from '../messaging/external-id.ts'
import type { SendIntent } from '../messaging/send.ts'
import { toBridgeId } from './ids.ts'

/** A reply that no bridge has taken for so long has failed. */
const EXPIRES_IN_SECONDS = 24 * 60 * 60

type Reply = {
  conversation: Pick<ConversationState, 'id' | 'episode'>
  channel: SendingChannel
  contact: { id: string; name: string | null }
  /** How the bridge names the contact. */
  customerId: string
  content: Pick<NewMessage, 'type' | 'text' | 'media' | 'external_id'> & {
    content?: StoredContent | undefined
  }
  /** The message that it replies to, with its stored id of the bridge. */
  repliedTo: { id: string; provider_id: string | null } | undefined
}

/** Writes a reply on a bridged channel as pending, and queues it for its bridge; it is sent when the bridge took it. */
export const queueReply = async (
  ctx: Context,
  { conversation, channel, contact, customerId, content, repliedTo }: Reply,
): Promise<SendIntent> => {
  const { tx, actor, now } = ctx
  const workspaceId = actor.workspace.id
  const reference = `msg_${createUlid()}`
  const [inserted] = await insertMessages(tx, workspaceId, [
    {
      ...content,
      conversation_id: conversation.id,
      channel_id: channel.id,
      episode: conversation.episode,
      direction: 'outbound',
      status: 'pending',
      created_at: now,
      staff_id: actor.staff.id,
      key_id: actor.key.id,
      approved_by: actor.approvedBy?.staffId ?? null,
      reply_to_id: repliedTo?.id ?? null,
      reference,
    },
  ])
  const id = await requireInserted(ctx, inserted, content.external_id ?? undefined)
  // Built once: every attempt sends the same bytes.
  const body = JSON.stringify({
    id,
    channel_id: channel.id,
    conversation_id: conversation.id,
    to: { id: customerId, contact_id: contact.id, name: contact.name },
    from: { staff_id: actor.staff.id, name: actor.staff.name },
    actor: showActor(actor),
    type: content.type,
    text: content.text ?? null,
    content: content.content?.content ?? null,
    media: content.media ? { url: content.media.url, file_name: content.media.file_name ?? null } : null,
    reply_to: repliedTo
      ? { message_id: repliedTo.id, id: toBridgeId(channel.id, repliedTo.provider_id) }
      : null,
    created_at: now,
  })
  const delivery = { message_id: id, channel_id: channel.id, conversation_id: conversation.id, body }
  await insertChannelDelivery(tx, workspaceId, delivery, EXPIRES_IN_SECONDS)
  return {
    workspaceId,
    messageId: id,
    conversationId: conversation.id,
    contactId: contact.id,
    opens: false,
    makesContact: false,
    phoneNumberId: '',
    outgoing: { reference, body: { type: 'queued' } },
    writtenAt: now,
    queued: true,
  }
}
