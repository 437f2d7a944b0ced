import { randomInt } from 'node:crypto'
import { sql } from 'kysely'
import type { EventTypeId } from '../../catalog/events.ts'
import { createEmit } from '../../server/kernel/emit.ts'
import type { ChangeContext } from '../../server/change-context.ts'
import {
  findOrCreateConversation,
  applyInboundMessage,
  applyOutboundMessage,
} from '../../server/domains/inbox/lifecycle.ts'
import { lockConversation, type ConversationState } from '../../storage/conversations/conversations.ts'
import { type EventRow, insertEvents } from '../../storage/events/events.ts'
import { insertMessages, type NewMessage } from '../../storage/messages/messages.ts'
import { plantContact } from '../calls.ts'
import type { TestServer } from '../servers.ts'

type Server = Pick<TestServer, 'db' | 'app'>

/** Runs a conversation change as the job for provider updates does: in one transaction with its events. */
export const inChangeContext = <T>(
  { db }: Server,
  workspaceId: string,
  now: string,
  work: (context: ChangeContext<EventTypeId>) => Promise<T>,
): Promise<T> =>
  db.transaction().execute(async (tx) => {
    const events: EventRow[] = []
    const result = await work({ tx, workspaceId, now, emit: createEmit(events, now) })
    await insertEvents(tx, workspaceId, events)
    return result
  })

const insertMessage = async (
  { tx, workspaceId }: ChangeContext<EventTypeId>,
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
  arrivedAt?: string
}

/**
 * Stores a message of the customer and returns its id. `at` is when it was written, `arrivedAt` when the
 * server received it.
 */
export const receiveMessage = async (
  server: Server,
  workspaceId: string,
  conversationId: string,
  { at = server.app.now(), ad = false, arrivedAt = at, ...fields }: Inbound = {},
): Promise<string> =>
  await inChangeContext(server, workspaceId, arrivedAt, async (context) => {
    const conversation = (await lockConversation(context.tx, workspaceId, conversationId))!
    return await storeInbound(context, conversation, { at, ad, ...fields })
  })

/** An ad of which the provider says nothing. */
const NO_AD = {
  ad_id: null,
  type: 'ad',
  url: null,
  headline: null,
  text: null,
  media_url: null,
  click_id: null,
}

const storeInbound = async (
  context: ChangeContext<EventTypeId>,
  conversation: ConversationState,
  { at, ad, ...fields }: Required<Pick<Inbound, 'at' | 'ad'>> & Inbound,
): Promise<string> => {
  const { text, type } = fields
  const { state, episode } = conversation
  const id = await insertMessage(context, conversation, {
    episode: state === 'closed' ? episode + 1 : episode,
    direction: 'inbound',
    status: 'received',
    created_at: at,
    ...(text === undefined ? {} : { text }),
    ...(type === undefined ? {} : { type }),
  })
  await applyInboundMessage(context, conversation, { id, createdAt: at, ad: ad ? NO_AD : undefined })
  return id
}

/** Stores a reply that the provider accepted and returns its id. */
export const sendReply = async (
  server: Server,
  workspaceId: string,
  conversationId: string,
  {
    at = server.app.now(),
    staffId = null,
    text = 'Reply',
  }: { at?: string; staffId?: string | null; text?: string } = {},
): Promise<string> =>
  await inChangeContext(server, workspaceId, at, async (context) => {
    const conversation = (await lockConversation(context.tx, workspaceId, conversationId))!
    const id = await insertMessage(context, conversation, {
      direction: 'outbound',
      status: 'sent',
      created_at: at,
      sent_at: at,
      staff_id: staffId,
      text,
    })
    await applyOutboundMessage(context, conversation, { id, createdAt: at, staffId })
    return id
  })

export type PlantedConversation = { id: string; contactId: string; channelId: string }

/**
 * Inserts a conversation. By default it is with a new contact on the workspace's default channel and has one
 * message of the customer; with `inboundAt` null it has no message, as one that staff opened.
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
): Promise<PlantedConversation> => {
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
      await sql<{ id: string }>`
        select id from channels where workspace_id = ${workspaceId}
        order by is_default desc, id limit 1`.execute(server.db)
    ).rows[0]!.id
  const openedBy =
    inboundAt === null
      ? (
          await sql<{
            id: string
          }>`select id from staff where workspace_id = ${workspaceId} order by id limit 1`.execute(server.db)
        ).rows[0]!.id
      : null
  const id = await inChangeContext(server, workspaceId, now, async (context) => {
    const { conversation } = await findOrCreateConversation(context, { contactId: contact }, channel, {
      by: openedBy,
    })
    if (inboundAt !== null)
      await storeInbound(context, conversation, { at: inboundAt, ad: false, ...message })
    return conversation.id
  })
  return { id, contactId: contact, channelId: channel }
}
