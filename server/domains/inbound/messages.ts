import type { StoredContent } from '../../../catalog/message-content.ts'
import { insertMessages, type NewMessage } from '../../../storage/messages/messages.ts'
import { type CustomerRow, findMessages, type NamedMessage } from '../../../storage/messages/inbound.ts'
import type { ConversationState } from '../../../storage/conversations/conversations.ts'
import type { ChangeContext } from '../../change-context.ts'
import { addConsentWord } from '../consent/record.ts'
import { readConsentWord } from '../consent/words.ts'
import {
  findOrCreateConversation,
  applyInboundMessage,
  applyOutboundMessage,
  applyPastMessage,
} from '../inbox/lifecycle.ts'
import { eventMessage } from '../messaging/view.ts'
import type { InboundContent } from './content.ts'

/** A parsed message, with the contact who sent it, or whom a notice is about. */
export type InboundMessage = {
  contact: CustomerRow
  channelId: string
  providerId: string
  /** The id of the group at the provider; null: it is with one customer. */
  groupId: string | null
  /** It is from before the number was connected: it has its time, and changes nothing that is to be done. */
  past?: boolean
  content: InboundContent
  createdAt: string
}

type PlacedMessage = InboundMessage & { conversation: ConversationState; row: NewMessage }

/** The events that a message of a customer can cause. */
type ReceiveEvent =
  | 'message.sent/1'
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
  const groups = Map.groupBy(
    messages,
    ({ contact, groupId, channelId }) => `${groupId ?? contact.id} ${channelId}`,
  )
  // In the order in which the contacts were locked, then groups by their ids, so that two batches never deadlock over
  // conversations.
  for (const group of [...groups.values()].toSorted(byLocks)) {
    const { conversation } = await findOrCreateConversation(
      context,
      group[0]!.groupId === null ? { contactId: group[0]!.contact.id } : { groupId: group[0]!.groupId },
      group[0]!.channelId,
      group.every(({ content, past }) => content.isNotice || past) ? null : { by: null },
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
    if (id == null || message.content.isNotice) continue
    const record = message.past
      ? recordPast
      : message.row.direction === 'outbound'
        ? recordEcho
        : recordMessage
    await record(context, message, id)
  }
}

const byLocks = ([a]: readonly InboundMessage[], [b]: readonly InboundMessage[]): number => {
  const [left, right] = [a!.groupId ?? '', b!.groupId ?? '']
  if (left !== right) return left < right ? -1 : 1
  return left === '' ? Number(BigInt(a!.contact.id) - BigInt(b!.contact.id)) : 0
}

/** A message of the customer is about to reopen a closed conversation, as a new episode. */
const toMessageRow = (
  conversation: ConversationState,
  message: InboundMessage,
  replied: readonly NamedMessage[],
): NewMessage => {
  const { channelId, providerId, content, createdAt, past } = message
  const direction = content.isNotice ? 'system' : content.stored?.phone_app ? 'outbound' : 'inbound'
  return {
    conversation_id: conversation.id,
    channel_id: channelId,
    episode:
      conversation.episode + (conversation.state === 'closed' && direction === 'inbound' && !past ? 1 : 0),
    direction,
    type: content.type,
    status: { system: 'system', outbound: 'sent', inbound: 'received' }[direction] as NewMessage['status'],
    text: content.text,
    content: toStored(message),
    reply_to_id:
      replied.find((r) => r.channel_id === channelId && r.named_by.includes(content.replyTo ?? ''))?.id ??
      null,
    provider_id: providerId,
    created_at: createdAt,
    ...(content.media ? { media: content.media } : {}),
  }
}

/** In a group a message says who wrote it. */
const toStored = ({ contact, groupId, content: { stored } }: InboundMessage): StoredContent | null =>
  groupId === null || stored?.phone_app
    ? (stored ?? null)
    : { ...stored, author: { contact_id: contact.id, name: contact.name } }

const recordPast = async (
  context: ChangeContext,
  { conversation, createdAt, row }: PlacedMessage,
  id: string,
): Promise<void> => await applyPastMessage(context, conversation, { id, createdAt, direction: row.direction })

/** A message that a colleague wrote in the phone app of the number. */
const recordEcho = async (
  context: ChangeContext<'message.sent/1'>,
  message: PlacedMessage,
  id: string,
): Promise<void> => {
  const { conversation, createdAt } = message
  await applyOutboundMessage(context, conversation, { id, createdAt, staffId: null })
  context.emit('message.sent/1', { message: toEventMessage(message, id) })
}

const recordMessage = async (
  context: ChangeContext<'message.received/1' | 'conversation.reopened/1' | 'consent.changed/1'>,
  message: PlacedMessage,
  id: string,
): Promise<void> => {
  const { conversation, contact, groupId, content, createdAt } = message
  await applyInboundMessage(context, conversation, { id, createdAt, ad: content.stored?.ad })
  context.emit('message.received/1', { message: toEventMessage(message, id) })
  // A word among others is no word to the business.
  const said = groupId === null && readConsentWord(content.text)
  if (said) await addConsentWord(context, contact.id, { state: said, proof: content.text, at: createdAt })
}

const toEventMessage = ({ conversation, content, createdAt, row }: PlacedMessage, id: string) =>
  eventMessage({
    id,
    conversation_id: conversation.id,
    contact_id: conversation.contact_id,
    channel_id: row.channel_id,
    type: row.type,
    direction: row.direction,
    status: row.status,
    text: content.text,
    content: row.content as StoredContent | null,
    media_state: content.media?.state ?? null,
    reply_to_id: row.reply_to_id ?? null,
    error: null,
    created_at: createdAt,
  })
