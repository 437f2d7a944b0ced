import type { StoredContent } from '../../../catalog/message-content.ts'
import type { EventData } from '../../../catalog/events.ts'
import {
  startReplyWait,
  insertConversation,
  openEpisode,
  type Party,
  updateConversation,
  updateOnClose,
  updateOnInbound,
  updateOnOutbound,
} from '../../../storage/conversations/changes.ts'
import {
  type ConversationState,
  lockGroupConversation,
  lockLatestConversation,
} from '../../../storage/conversations/conversations.ts'
import { reopenWait, type WaitRow } from '../../../storage/conversations/reply-corrections.ts'
import type { Unannounced } from '../../../storage/events/unannounced.ts'
import type { ChangeContext } from '../../change-context.ts'
import { isAnyOverdue, computeNextResponseDue, computeEpisodeClocks, NO_CLOCKS } from './sla.ts'
import { computeWindowExpiry } from './window.ts'

/*
 * Every change of a conversation. Each function takes a locked conversation and keeps the object in step with
 * the row, so that more changes can follow. A caller that also locks the contact (`findOrCreateConversation`;
 * `applyInboundMessage` and `applyOutboundMessage` write its last activity) locks it before the conversation.
 */

/** Returns a conversation as events carry it. */
export const toEventConversation = ({
  id,
  state,
  contact_id,
  channel_id,
  assigned_staff_id,
  assigned_team_id,
  episode,
}: Unannounced['conversation']): EventData<'conversation.created/1'>['conversation'] => ({
  id,
  state,
  contact_id,
  channel_id,
  assignee_staff_id: assigned_staff_id,
  team_id: assigned_team_id,
  episode,
})

/**
 * Returns the latest conversation of a party and a channel, open or closed; creates one when there is none.
 * `opened`: by the staff member; by null: by the customer; null: by nobody, so that a new one is closed until its
 * first episode. The caller holds the lock of the contact.
 */
export const findOrCreateConversation = async (
  context: ChangeContext<'conversation.created/1'>,
  party: Party,
  channelId: string,
  opened: { by: string | null } | null,
): Promise<{ conversation: ConversationState; created: boolean }> => {
  const { tx, workspaceId } = context
  const latest = await ('contactId' in party
    ? lockLatestConversation(tx, workspaceId, party.contactId, channelId)
    : lockGroupConversation(tx, workspaceId, party.groupId, channelId))
  if (latest) return { conversation: latest, created: false }
  const clocks = opened ? await computeEpisodeClocks(context, channelId, opened.by === null) : NO_CLOCKS
  const { id, channel_type } = await insertConversation(tx, workspaceId, party, channelId, {
    openedBy: opened?.by ?? null,
    title: null,
    clocks,
    now: context.now,
    isOpen: opened !== null,
  })
  const conversation: ConversationState = {
    id,
    channel_type,
    contact_id: 'contactId' in party ? party.contactId : null,
    group_id: 'groupId' in party ? party.groupId : null,
    channel_id: channelId,
    state: opened ? 'open' : 'closed',
    episode: opened ? 1 : 0,
    assigned_staff_id: null,
    assigned_team_id: null,
    reply_status: null,
    unread_count: 0,
    last_message_id: null,
    last_activity_at: null,
    last_inbound_at: null,
    free_entry_at: null,
    window_corrected_at: null,
    reminder_at: null,
    created_at: context.now,
    ...clocks,
  }
  context.emit('conversation.created/1', { conversation: toEventConversation(conversation) })
  return { conversation, created: true }
}

const latest = (a: string | null, b: string): string => (a === null || b > a ? b : a)

/**
 * The last message and activity go by time, so that a message that arrives late does not become the last. Of
 * two with the same time, the one with the higher id is the last.
 */
const updateLastMessage = (
  conversation: ConversationState,
  { id, createdAt }: { id: string; createdAt: string },
): void => {
  const { last_activity_at: at, last_message_id: last } = conversation
  if (at !== null && createdAt < at) return
  if (at !== createdAt || last === null || BigInt(id) > BigInt(last)) conversation.last_message_id = id
  conversation.last_activity_at = createdAt
}

/** Opens a closed conversation with a new episode. */
const startEpisode = async (
  context: ChangeContext<'conversation.reopened/1'>,
  conversation: ConversationState,
  openedBy: string | null,
  title: string | null,
  resumed = false,
): Promise<void> => {
  const byCustomer = openedBy === null && !resumed
  const clocks = await computeEpisodeClocks(context, conversation.channel_id, byCustomer)
  Object.assign(conversation, clocks, { state: 'open', episode: conversation.episode + 1 })
  await openEpisode(context.tx, context.workspaceId, conversation.id, conversation.episode, {
    openedBy,
    title,
    clocks,
    resumed,
    now: context.now,
  })
  context.emit('conversation.reopened/1', { conversation: toEventConversation(conversation) })
}

/** `ad`: which brought the customer. Times are in UTC. */
export type InboundMessageEvent = { id: string; createdAt: string; ad: StoredContent['ad'] }

/**
 * Applies a customer's message that was inserted (for a closed conversation, with the number of the next
 * episode): it is unread and the last by time, opens the reply window and a closed conversation, and waits
 * for a reply.
 */
export const applyInboundMessage = async (
  context: ChangeContext<'conversation.reopened/1'>,
  conversation: ConversationState,
  message: InboundMessageEvent,
): Promise<void> => {
  const waits = conversation.state === 'open' && conversation.reply_status === 'incoming_no_reply'
  if (conversation.state === 'closed') await startEpisode(context, conversation, null, null)
  updateLastMessage(conversation, message)
  conversation.unread_count += 1
  conversation.reply_status = 'incoming_no_reply'
  conversation.last_inbound_at = latest(conversation.last_inbound_at, message.createdAt)
  if (message.ad) conversation.free_entry_at = latest(conversation.free_entry_at, message.createdAt)
  const expiry = computeWindowExpiry(conversation)
  const wait = waits
    ? null
    : { since: message.createdAt, nextDue: await computeNextResponseDue(context, conversation) }
  conversation.next_response_due_at = await updateOnInbound(
    context.tx,
    context.workspaceId,
    conversation,
    expiry ? new Date(expiry.at).toISOString() : null,
    wait,
    { at: message.createdAt, now: context.now, ad: message.ad },
  )
}

/** Applies a message from before the number was connected: only what is shown of the conversation's times changes. */
export const applyPastMessage = async (
  { tx, workspaceId, now }: ChangeContext,
  conversation: ConversationState,
  { id, createdAt, direction }: { id: string; createdAt: string; direction: string },
): Promise<void> => {
  updateLastMessage(conversation, { id, createdAt })
  if (direction === 'inbound') conversation.last_inbound_at = latest(conversation.last_inbound_at, createdAt)
  const { last_message_id, last_activity_at, last_inbound_at } = conversation
  const times = { last_message_id, last_activity_at, last_inbound_at }
  await updateConversation(tx, workspaceId, conversation.id, times, now)
}

/** `staffId`, `keyId`: of whom wrote it; null, or absent, when unknown, as for the business's own app. */
export type OutboundMessageEvent = {
  id: string
  createdAt: string
  staffId: string | null
  keyId?: string | null
}

/**
 * Whether the last message by time arrived after this one was written. Its own time may be earlier: whoever wrote this
 * one had not seen it.
 */
export const isOvertaken = ({ last_message_id: last }: ConversationState, id: string): boolean =>
  last !== null && BigInt(last) > BigInt(id)

/**
 * Applies a message that the provider accepted: it is the last by time and answers the customer. A closed
 * conversation stays closed. A message that the customer wrote while it was on its way still waits.
 */
export const applyOutboundMessage = async (
  context: ChangeContext,
  conversation: ConversationState,
  message: OutboundMessageEvent,
): Promise<void> => {
  const { last_activity_at: before, reply_status: status, unread_count: unread } = conversation
  const overtakenBy =
    status === 'incoming_no_reply' &&
    before !== null &&
    (before > message.createdAt || isOvertaken(conversation, message.id))
      ? before
      : undefined
  updateLastMessage(conversation, message)
  if (overtakenBy === undefined)
    Object.assign(conversation, { unread_count: 0, reply_status: 'outgoing_no_response' })
  else conversation.unread_count = Math.min(unread, 1)
  conversation.sla_breached ||= isAnyOverdue(
    [conversation.first_response_due_at, conversation.next_response_due_at],
    message.createdAt,
  )
  conversation.first_response_due_at = null
  conversation.next_response_due_at = null
  await updateOnOutbound(
    context.tx,
    context.workspaceId,
    conversation,
    { id: message.id, at: message.createdAt, staffId: message.staffId, keyId: message.keyId ?? null },
    context.now,
  )
  if (overtakenBy !== undefined && conversation.state === 'open') {
    conversation.next_response_due_at = await startReplyWait(context.tx, context.workspaceId, conversation, {
      since: overtakenBy,
      // Counted from the customer's message, however late this one was confirmed.
      nextDue: await computeNextResponseDue({ ...context, now: overtakenBy }, conversation),
    })
  }
}

/**
 * Applies the provider's report that the window was closed for a message that was written at this time, although
 * it was expected to be open. The time of the report would not do: what the customer wrote between the two opens
 * the window, and may arrive after the report.
 */
export const applyWindowCorrection = async (
  context: ChangeContext,
  conversation: ConversationState,
  writtenAt: string,
): Promise<void> => {
  conversation.window_corrected_at = latest(conversation.window_corrected_at, writtenAt)
  await updateConversation(
    context.tx,
    context.workspaceId,
    conversation.id,
    { window_corrected_at: conversation.window_corrected_at },
    context.now,
  )
}

/** Closes open conversations that go on in another one of the same contact and channel, which waits in their place. */
export const applyJoin = async (
  context: ChangeContext<'conversation.closed/1'>,
  conversation: ConversationState,
  doubles: readonly ConversationState[],
): Promise<void> => {
  if (doubles.length === 0) return
  const { tx, workspaceId, now } = context
  const waiting = doubles.filter((double) => double.reply_status === 'incoming_no_reply')
  await applyCloses(
    context,
    doubles,
    { by: null, keyId: null },
    `It goes on in conversation ${conversation.id}: the customers are one.`,
  )
  if (waiting.length === 0) return
  const isWaiting = conversation.reply_status === 'incoming_no_reply'
  conversation.unread_count += waiting.reduce((sum, { unread_count: n }) => sum + n, 0)
  conversation.reply_status = 'incoming_no_reply'
  const { unread_count, reply_status } = conversation
  await updateConversation(tx, workspaceId, conversation.id, { unread_count, reply_status }, now)
  if (isWaiting) return
  const since = waiting.map(({ last_inbound_at: at }) => at ?? now).toSorted()[0]!
  conversation.next_response_due_at = await startReplyWait(tx, workspaceId, conversation, {
    since,
    nextDue: await computeNextResponseDue({ ...context, now: since }, conversation),
  })
}

/** Closes open conversations: their episodes, clocks and waits end. `keyId`: the key that closes them. */
export const applyCloses = async (
  context: ChangeContext<'conversation.closed/1'>,
  conversations: readonly ConversationState[],
  { by, keyId }: { by: string | null; keyId: string | null },
  reason: string | null,
): Promise<void> => {
  for (const conversation of conversations) {
    const { first_response_due_at, next_response_due_at, resolution_due_at } = conversation
    conversation.sla_breached ||= isAnyOverdue(
      [first_response_due_at, next_response_due_at, resolution_due_at],
      context.now,
    )
    Object.assign(conversation, {
      state: 'closed',
      first_response_due_at: null,
      next_response_due_at: null,
      resolution_due_at: null,
    })
    context.emit('conversation.closed/1', { conversation: toEventConversation(conversation), reason })
  }
  await updateOnClose(context.tx, context.workspaceId, conversations, { by, keyId, reason }, context.now)
}

/** Reopens a closed conversation for a staff member. A customer who had no reply before waits from now. */
export const applyReopen = async (
  context: ChangeContext<'conversation.reopened/1'>,
  conversation: ConversationState,
  by: string,
  title: string | null,
): Promise<void> => {
  await startEpisode(context, conversation, by, title)
  if (conversation.reply_status === 'incoming_no_reply') {
    conversation.next_response_due_at = await startReplyWait(context.tx, context.workspaceId, conversation, {
      since: context.now,
      nextDue: await computeNextResponseDue(context, conversation),
    })
  }
}

/**
 * Reopens a closed conversation because the reply on the strength of which it was closed failed: the customer's
 * wait goes on as if neither had happened. The caller writes the clocks of the wait.
 */
export const resumeEpisode = async (
  context: ChangeContext<'conversation.reopened/1'>,
  conversation: ConversationState,
  wait: WaitRow,
): Promise<void> => {
  await startEpisode(context, conversation, null, null, true)
  Object.assign(wait, { ended_at: null, ended_by: null, episode: conversation.episode })
  await reopenWait(context.tx, context.workspaceId, conversation.id, conversation.episode, wait.since)
}
