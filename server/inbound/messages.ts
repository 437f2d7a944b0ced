import { insertMessages, type NewMessage } from '../../storage/messages.ts'
import { type CustomerRow, lockCustomers, messageIdsOf } from '../../storage/inbound.ts'
import { lockLatestConversation } from '../../storage/conversations.ts'
import { parsePhone } from '../contacts/phone.ts'
import { conversationFor, type ConversationState, type Flow, receive } from '../inbox/lifecycle.ts'
import { eventMessage } from '../messaging/view.ts'
import type { Content } from './content.ts'
import { changeCustomer } from './customers.ts'
import { type Json, objectOf, storableText, textOf } from './json.ts'

/** A customer's message, read, with the contact it is from. */
export type Inbound = {
  contact: CustomerRow
  channelId: string
  providerId: string
  content: Content
  createdAt: string
}

type Placed = Inbound & { conversation: ConversationState; row: NewMessage }

/**
 * Writes the messages of many customers, whose contacts are locked, each into its conversation; those that
 * are there already change nothing.
 */
export const receiveMessages = async (flow: Flow, messages: readonly Inbound[]): Promise<void> => {
  if (messages.length === 0) return
  const replies = await messageIdsOf(flow.tx, flow.workspaceId, [
    ...new Set(messages.flatMap((m) => m.content.replyTo ?? [])),
  ])
  const placed: Placed[] = []
  const groups = Map.groupBy(messages, ({ contact, channelId }) => `${contact.id} ${channelId}`)
  // In the order of the contacts, as they were locked, so that no two batches wait for each other's
  // conversations in a circle.
  for (const group of [...groups.values()].toSorted(([a], [b]) =>
    Number(BigInt(a!.contact.id) - BigInt(b!.contact.id)),
  )) {
    const { conversation } = await conversationFor(flow, group[0]!.contact.id, group[0]!.channelId, null)
    placed.push(
      ...group.map((message) => ({ ...message, conversation, row: rowOf(conversation, message, replies) })),
    )
  }
  // Of the same time in the order in which they came.
  const ordered = placed
    .map((one, n) => ({ one, n }))
    .toSorted((a, b) =>
      a.one.createdAt < b.one.createdAt ? -1 : a.one.createdAt > b.one.createdAt ? 1 : a.n - b.n,
    )
    .map(({ one }) => one)
  const ids = await insertMessages(
    flow.tx,
    flow.workspaceId,
    ordered.map(({ row }) => row),
  )
  for (const [n, one] of ordered.entries()) if (ids[n] !== null) await note(flow, one, ids[n]!)
}

/** A closed conversation is about to be opened again, as a new episode. */
const rowOf = (
  conversation: ConversationState,
  { channelId, providerId, content, createdAt }: Inbound,
  replies: ReadonlyMap<string, string>,
): NewMessage => ({
  conversation_id: conversation.id,
  channel_id: channelId,
  episode: conversation.state === 'closed' ? conversation.episode + 1 : conversation.episode,
  direction: 'inbound',
  type: content.type,
  status: 'received',
  text: content.text,
  content: content.content ?? null,
  reply_to_id: content.replyTo === null ? null : (replies.get(content.replyTo) ?? null),
  provider_id: providerId,
  created_at: createdAt,
  ...(content.media ? { media: content.media } : {}),
})

const note = async (
  flow: Flow,
  { conversation, contact, content, createdAt, row }: Placed,
  id: string,
): Promise<void> => {
  await receive(flow, conversation, { id, createdAt, ad: content.ad, opensWindow: content.opensWindow })
  flow.emit('message.received/1', {
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
}

/** The provider tells by a message that a customer changed the number. */
export const isNumberChange = (message: Json): boolean =>
  message['type'] === 'system' && objectOf(message['system'])['type'] === 'user_changed_number'

/**
 * The contact keeps its conversations under the new number, unless another contact has that. The
 * conversation shows what happened; nobody waits for an answer.
 */
export const changeNumber = async (
  flow: Flow,
  channelId: string,
  providerId: string,
  message: Json,
  createdAt: string,
): Promise<void> => {
  const system = objectOf(message['system'])
  const [before, after] = [digitsOf(message['from']), digitsOf(system['wa_id'] ?? system['new_wa_id'])]
  if (before === null || after === null || before === after) return
  const rows = await lockCustomers(flow.tx, flow.workspaceId, [before, after], [])
  const contact = rows.find((row) => row.phone === before)
  if (!contact) return
  if (!rows.some((row) => row.phone === after)) await changeCustomer(flow, contact, { phone: after })
  const conversation = await lockLatestConversation(flow.tx, flow.workspaceId, contact.id, channelId)
  if (!conversation) return
  await insertMessages(flow.tx, flow.workspaceId, [
    {
      conversation_id: conversation.id,
      channel_id: channelId,
      episode: conversation.episode,
      direction: 'system',
      type: 'SYSTEM',
      status: 'system',
      text: storableText(textOf(system['body']) ?? 'The customer changed the phone number.'),
      provider_id: providerId,
      created_at: createdAt,
    },
  ])
}

const digitsOf = (value: unknown): string | null => {
  const read = parsePhone((textOf(value) ?? '').slice(0, 40))
  return 'digits' in read ? read.digits : null
}
