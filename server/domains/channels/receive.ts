import type { z } from 'zod'
import type { BridgeMessage, BridgeStatus } from '../../../catalog/channel-messages.ts'
import type { EventTypeId } from '../../../catalog/events.ts'
import { lockChannelNames } from '../../../storage/channels/customers.ts'
import { deleteChannelDelivery } from '../../../storage/channels/deliveries.ts'
import { findBridgeMessage, findChannelReply } from '../../../storage/channels/messages.ts'
import type { TokenChannel } from '../../../storage/channels/secrets.ts'
import type { Db } from '../../../storage/database.ts'
import { errorCode } from '../../../storage/client/error-codes.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import { findMessages } from '../../../storage/messages/inbound.ts'
import { businessTime, type Clocks, toBusinessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { createEmit } from '../../kernel/emit.ts'
import { notFound } from '../../kernel/problem.ts'
import { withRetries } from '../../kernel/retry.ts'
import { insertAllEvents, notifyEvents } from '../events/signal.ts'
import type { InboundContent } from '../inbound/content.ts'
import { receiveMessages } from '../inbound/messages.ts'
import type { ChangeContext } from '../../change-context.ts'
import { applyStatus } from '../messaging/message-status.ts'
import { findOrCreateCustomer, toCustomerLock } from './customers.ts'
import { toInboundId, toOutboundId } from './ids.ts'

type Message = z.output<typeof BridgeMessage>
type Status = z.output<typeof BridgeStatus>
type Flow = ChangeContext<EventTypeId>

/** What became of a customer's message. `duplicate`: it was stored before, and nothing changed. */
export type ReceivedMessage = {
  message_id: string
  conversation_id: string
  contact_id: string | null
  duplicate: boolean
}

/** Runs `work` in a transaction of its own, with the events that it emits, and announces them. */
export const inFlow = async <T>(
  app: App,
  workspaceId: string,
  work: (flow: Flow) => Promise<T>,
): Promise<T> => {
  const { result, news } = await withRetries(() =>
    app.db.transaction().execute(async (tx: Db) => {
      const events: EventRow[] = []
      const now = businessTime(app, workspaceId)
      const made = await work({ tx, workspaceId, now, emit: createEmit(events, now) })
      return { result: made, news: await insertAllEvents(tx, [[workspaceId, events]]) }
    }),
  )
  for (const each of news) notifyEvents(app, each)
  return result
}

/** Stores a customer's message, once. */
export const receiveBridgeMessage = async (
  app: App,
  channel: TokenChannel,
  message: Message,
): Promise<ReceivedMessage> => {
  const store = () => inFlow(app, channel.workspace_id, (flow) => storeMessage(app, flow, channel, message))
  const received = await store().catch((error: unknown) => {
    // Another contact got the phone just now: it is left out the second time.
    if ((error as { code?: string }).code === errorCode.uniqueViolation) return store()
    throw error
  })
  if (received.duplicate) return received
  if (message.media && app.media) app.jobs.job('media-downloads').wake()
  return received
}

const storeMessage = async (
  app: App,
  flow: Flow,
  channel: TokenChannel,
  message: Message,
): Promise<ReceivedMessage> => {
  const { tx, workspaceId } = flow
  const storedId = toInboundId(channel.id, message.id)
  // Two requests with one message, or from one new customer, run one after the other.
  await lockChannelNames(tx, workspaceId, [storedId, toCustomerLock(channel, message.from.id)])
  const known = await findBridgeMessage(tx, workspaceId, storedId)
  if (known) return toReceived(known, true)
  const contact = await findOrCreateCustomer(flow, channel, message.from, app.now())
  await receiveMessages(flow, [
    {
      contact,
      channelId: channel.id,
      providerId: storedId,
      groupId: null,
      content: await toContent(flow, channel, message),
      createdAt: toMessageTime(app, flow, message.at),
    },
  ])
  return toReceived((await findBridgeMessage(tx, workspaceId, storedId))!, false)
}

const toReceived = (
  row: NonNullable<Awaited<ReturnType<typeof findBridgeMessage>>>,
  duplicate: boolean,
): ReceivedMessage => ({
  message_id: row.id,
  conversation_id: row.conversation_id,
  contact_id: row.contact_id,
  duplicate,
})

/** The time that a bridge reports, as business time; never in the future. */
const toMessageTime = (clocks: Clocks, { workspaceId, now }: Flow, at: string | null | undefined): string => {
  if (at === null || at === undefined) return now
  const time = toBusinessTime(clocks, workspaceId, new Date(at).toISOString())
  return time < now ? time : now
}

const toContent = async (flow: Flow, channel: TokenChannel, message: Message): Promise<InboundContent> => ({
  type: message.type,
  text: message.text || null,
  ...(message.media
    ? {
        media: {
          state: 'waiting' as const,
          url: message.media.url,
          content_type: message.media.content_type ?? null,
          file_name: message.media.file_name ?? null,
        },
      }
    : {}),
  replyTo: await findRepliedId(flow, channel, message.reply_to_id),
  isNotice: false,
})

/** Returns the stored id of the message that another replies to: one of ours, or else one of the bridge. */
const findRepliedId = async (
  { tx, workspaceId }: Flow,
  { id: channelId }: TokenChannel,
  id: string | null | undefined,
): Promise<string | null> => {
  if (id === null || id === undefined) return null
  const ours = toOutboundId(channelId, id)
  const isOurs = (await findMessages(tx, workspaceId, [ours])).length > 0
  return isOurs ? ours : toInboundId(channelId, id)
}

/** Applies what the bridge reports of a reply. Throws 404 when the channel has no such reply. */
export const receiveBridgeStatus = async (
  app: App,
  channel: TokenChannel,
  { message_id: id, status, at, error }: Status,
): Promise<{ message_id: string; status: string; changed: boolean }> => {
  const result = await inFlow(app, channel.workspace_id, async (flow) => {
    const { tx, workspaceId } = flow
    const reply = await findChannelReply(tx, workspaceId, channel.id, id)
    if (!reply) throw notFound('message', id)
    const outcome = await applyStatus(flow, {
      providerId: toOutboundId(channel.id, id),
      reference: reply.reference!,
      status,
      at: toMessageTime(app, flow, at),
      ...(status === 'failed'
        ? { error: { code: 0, title: error ?? 'The bridge could not deliver it.', details: null } }
        : {}),
    })
    // The bridge has it, also where its answer to the delivery was lost.
    await deleteChannelDelivery(tx, { workspace_id: workspaceId, message_id: id })
    const after = await findChannelReply(tx, workspaceId, channel.id, id)
    return { message_id: id, status: after!.status, changed: outcome === 'applied' }
  })
  app.jobs.job('channel-deliveries').wake()
  return result
}
