import { insertMessages, type NewMessage } from '../../../storage/messages/messages.ts'
import { type CustomerRow, findMessages, type NamedMessage } from '../../../storage/messages/inbound.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import type { ChangeContext } from '../../change-context.ts'
import { addConsentWord } from '../consent/record.ts'
import { readConsentWord } from '../consent/words.ts'
import { findOrCreateConversation, applyInboundMessage } from '../inbox/lifecycle.ts'
import { eventMessage } from '../messaging/view.ts'
import type { InboundContent } from './content.ts'

/** A parsed message, with the contact who sent it, or whom a notice is about. */
export type InboundMessage = {
  contact: CustomerRow
  channelId: string
  providerId: string
  content: InboundContent
  createdAt: string
}

type PlacedMessage = InboundMessage & { conversation: ConversationState; row: NewMessage }

/** The events that a message of a customer can cause. */
type ReceiveEvent =
  | 'consent.changed/1'
  | 'message.received/1'
  | 'conversation.created/1'
  | 'conversation.reopened/1'

/**
 * Writes the messages of many customers, whose contacts are locked, each into its conversation. Those that
 * are stored already change nothing. Notices change nothing but the conversation's list of messages.
 */
export const receiveMessages = async (
  context: ChangeContext<ReceiveEvent>,
  messages: readonly InboundMessage[],
): Promise<void> => {
  if (messages.length === 0) return
  const replied = await findMessages(context.tx, context.workspaceId, [
    ...new Set(messages.flatMap((m) => m.content.replyTo ?? [])),
  ])
  const placed: PlacedMessage[] = []
  const groups = Map.groupBy(messages, ({ contact, channelId }) => `${contact.id} ${channelId}`)
  // In the order in which the contacts were locked, so that two batches never deadlock over conversations.
  for (const group of [...groups.values()].toSorted(([a], [b]) =>
    Number(BigInt(a!.contact.id) - BigInt(b!.contact.id)),
  )) {
    const { conversation } = await findOrCreateConversation(
      context,
      group[0]!.contact.id,
      group[0]!.channelId,
      group.every(({ content }) => content.isNotice) ? null : { by: null },
    )
    placed.push(
      ...group.map((message) => ({
        ...message,
        conversation,
        row: toMessageRow(conversation, message, replied),
      })),
    )
  }
  // Messages of the same time keep the order in which they arrived.
  const ordered = placed.toSorted((a, b) =>
    a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0,
  )
  const ids = await insertMessages(
    context.tx,
    context.workspaceId,
    ordered.map(({ row }) => row),
  )
  for (const [i, message] of ordered.entries()) {
    const id = ids[i]
    if (id != null && !message.content.isNotice) await recordMessage(context, message, id)
  }
}

/** A message of the customer is about to reopen a closed conversation, as a new episode. */
const toMessageRow = (
  conversation: ConversationState,
  { channelId, providerId, content, createdAt }: InboundMessage,
  replied: readonly NamedMessage[],
): NewMessage => ({
  conversation_id: conversation.id,
  channel_id: channelId,
  episode: conversation.episode + (conversation.state === 'closed' && !content.isNotice ? 1 : 0),
  direction: content.isNotice ? 'system' : 'inbound',
  type: content.type,
  status: content.isNotice ? 'system' : 'received',
  text: content.text,
  content: content.content ?? null,
  reply_to_id:
    replied.find((r) => r.channel_id === channelId && r.named_by.includes(content.replyTo ?? ''))?.id ?? null,
  provider_id: providerId,
  created_at: createdAt,
  ...(content.media ? { media: content.media } : {}),
})

const recordMessage = async (
  context: ChangeContext<'message.received/1' | 'conversation.reopened/1' | 'consent.changed/1'>,
  { conversation, contact, content, createdAt, row }: PlacedMessage,
  id: string,
): Promise<void> => {
  await applyInboundMessage(context, conversation, {
    id,
    createdAt,
    ad: content.ad,
  })
  context.emit('message.received/1', {
    message: eventMessage({
      id,
      conversation_id: conversation.id,
      contact_id: contact.id,
      channel_id: row.channel_id,
      type: row.type,
      direction: 'inbound',
      status: 'received',
      text: content.text,
      media_state: content.media?.state ?? null,
      reply_to_id: row.reply_to_id ?? null,
      error: null,
      created_at: createdAt,
    }),
  })
  const said = readConsentWord(content.text)
  if (said) await addConsentWord(context, contact.id, { state: said, proof: content.text, at: createdAt })
}
