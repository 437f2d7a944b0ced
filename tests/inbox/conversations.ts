import { randomInt } from 'node:crypto'
import { sql } from 'kysely'
import type { EventTypeId } from '../../catalog/events.ts'
import { createEmit } from '../../server/core/emit.ts'
import type { ConversationContext } from '../../server/inbox/conversation-context.ts'
import { findOrCreateConversation, applyInboundMessage, applyOutboundMessage } from '../../server/inbox/lifecycle.ts'
import { lockConversation, type ConversationState } from '../../storage/conversations.ts'
import { type EventRow, insertEvents } from '../../storage/events.ts'
import { insertMessages, type NewMessage } from '../../storage/messages.ts'
import { plantContact } from '../calls.ts'
import type { TestServer } from '../servers.ts'

type Server = Pick<TestServer, 'db' | 'app'>

/**
 * Runs a part of a conversation's life as the provider's webhook does: in one transaction with its events.
 */
export const inFlow = <T>(
  { db }: Server,
  workspaceId: string,
  now: string,
  work: (flow: ConversationContext<EventTypeId>) => Promise<T>,
): Promise<T> =>
  db.transaction().execute(async (tx) => {
    const events: EventRow[] = []
    const result = await work({ tx, workspaceId, now, emit: createEmit(events, now) })
    await insertEvents(tx, workspaceId, events)
    return result
  })

const writeMessage = async (
  { tx, workspaceId }: ConversationContext<EventTypeId>,
  { id, channel_id, episode }: ConversationState,
  message: Partial<NewMessage> & Pick<NewMessage, 'direction' | 'status' | 'created_at'>,
): Promise<string> =>
  (
    await insertMessages(tx, workspaceId, [
      { conversation_id: id, channel_id, episode, type: 'TEXT', text: 'Hello', ...message },
    ])
  )[0]!

export type Inbound = {
  at?: string
  text?: string
  ad?: boolean
  type?: string
  opensWindow?: boolean
  arrivedAt?: string
}

/** The customer writes; answers the message's id. `at` is business time, `arrivedAt` when we hear of it. */
export const customerWrites = async (
  server: Server,
  workspaceId: string,
  conversationId: string,
  { at = server.app.now(), ad = false, opensWindow = true, arrivedAt = at, ...fields }: Inbound = {},
): Promise<string> =>
  await inFlow(server, workspaceId, arrivedAt, async (flow) => {
    const conversation = (await lockConversation(flow.tx, workspaceId, conversationId))!
    return await inboundMessage(flow, conversation, { at, ad, opensWindow, ...fields })
  })

const inboundMessage = async (
  flow: ConversationContext<EventTypeId>,
  conversation: ConversationState,
  { at, ad, opensWindow, ...fields }: Required<Pick<Inbound, 'at' | 'ad' | 'opensWindow'>> & Inbound,
): Promise<string> => {
  const { text, type } = fields
  const id = await writeMessage(flow, conversation, {
    direction: 'inbound',
    status: 'received',
    created_at: at,
    ...(text === undefined ? {} : { text }),
    ...(type === undefined ? {} : { type }),
  })
  await applyInboundMessage(flow, conversation, { id, createdAt: at, ad, opensWindow })
  return id
}

/** A reply that the provider took; answers the message's id. */
export const staffReplies = async (
  server: Server,
  workspaceId: string,
  conversationId: string,
  {
    at = server.app.now(),
    staffId = null,
    text = 'Reply',
  }: { at?: string; staffId?: string | null; text?: string } = {},
): Promise<string> =>
  await inFlow(server, workspaceId, at, async (flow) => {
    const conversation = (await lockConversation(flow.tx, workspaceId, conversationId))!
    const id = await writeMessage(flow, conversation, {
      direction: 'outbound',
      status: 'sent',
      created_at: at,
      sent_at: at,
      staff_id: staffId,
      text,
    })
    await applyOutboundMessage(flow, conversation, { id, createdAt: at, staffId })
    return id
  })

export type Planted = { id: string; contactId: string; channelId: string }

/**
 * A conversation: of a new contact on the workspace's default channel, with one message of the customer,
 * unless told otherwise. `inboundAt` null: without a message, as one that staff opened.
 */
export const plantConversation = async (
  server: Server,
  workspaceId: string,
  {
    contactId,
    channelId,
    name = 'Ada Lovelace',
    phone,
    inboundAt = server.app.now(),
    ...message
  }: {
    contactId?: string
    channelId?: string
    name?: string | null
    phone?: string
    inboundAt?: string | null
    text?: string
    ad?: boolean
    type?: string
  } = {},
): Promise<Planted> => {
  const now = inboundAt ?? server.app.now()
  const contact =
    contactId ??
    (await plantContact(
      server.db,
      workspaceId,
      {
        name,
        phone:
          phone ??
          `1555${randomInt(10 ** 7)
            .toString()
            .padStart(7, '0')}`,
        email: null,
        attrs: {},
        tagIds: [],
        groupIds: [],
      },
      now,
    ))
  const channel =
    channelId ??
    (
      await sql<{
        id: string
      }>`select id from channels where workspace_id = ${workspaceId} order by is_default desc, id limit 1`.execute(
        server.db,
      )
    ).rows[0]!.id
  const openedBy =
    inboundAt === null
      ? (
          await sql<{
            id: string
          }>`select id from staff where workspace_id = ${workspaceId} order by id limit 1`.execute(server.db)
        ).rows[0]!.id
      : null
  const id = await inFlow(server, workspaceId, now, async (flow) => {
    const { conversation } = await findOrCreateConversation(flow, contact, channel, openedBy)
    if (inboundAt !== null)
      await inboundMessage(flow, conversation, { at: inboundAt, ad: false, opensWindow: true, ...message })
    return conversation.id
  })
  return { id, contactId: contact, channelId: channel }
}
