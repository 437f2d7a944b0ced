import type { EventData } from '../../catalog/events.ts'
import {
  beginWait,
  insertConversation,
  openEpisode,
  setConversation,
  writeClosed,
  writeReceived,
  writeSent,
} from '../../storage/conversation-changes.ts'
import { type ConversationState, lockLatestConversation } from '../../storage/conversations.ts'
import type { Db } from '../../storage/database.ts'
import type { Context } from '../core/context.ts'
import type { Emit } from '../core/emit.ts'
import { isLate, nextResponseDue, openingClocks } from './sla.ts'
import { expiryOf } from './window.ts'

/**
 * What every change of a conversation needs: also those that no request asked for. Each function below
 * takes a locked conversation and keeps it true, so that more can follow. Whoever locks a contact too
 * (`conversationFor`; `receive` and `sent` write its last activity) locks it before the conversation.
 */
export type Flow = { tx: Db; workspaceId: string; now: string; emit: Emit }

export type { ConversationState }

/** The flow of a call. */
export const flowOf = ({ tx, actor, now, emit }: Context): Flow => ({
  tx,
  workspaceId: actor.workspace.id,
  now,
  emit,
})

/** A conversation as events carry it. */
export const eventConversation = ({
  id,
  state,
  contact_id,
  channel_id,
  assigned_staff_id,
  assigned_team_id,
  episode,
}: ConversationState): EventData<'conversation.created/1'>['conversation'] => ({
  id,
  state,
  contact_id,
  channel_id,
  assignee_staff_id: assigned_staff_id,
  team_id: assigned_team_id,
  episode,
})

/**
 * The latest conversation of a contact and a channel, open or closed; a new one when there is none.
 * `openedBy`: the staff member; null: the customer. The caller holds the contact's row.
 */
export const conversationFor = async (
  flow: Flow,
  contactId: string,
  channelId: string,
  openedBy: string | null,
): Promise<{ conversation: ConversationState; created: boolean }> => {
  const latest = await lockLatestConversation(flow.tx, flow.workspaceId, contactId, channelId)
  if (latest) return { conversation: latest, created: false }
  const clocks = await openingClocks(flow, channelId, openedBy === null)
  const { id, channel_type } = await insertConversation(flow.tx, flow.workspaceId, contactId, channelId, {
    openedBy,
    title: null,
    clocks,
    now: flow.now,
  })
  const conversation: ConversationState = {
    id,
    channel_type,
    contact_id: contactId,
    channel_id: channelId,
    state: 'open',
    episode: 1,
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
    created_at: flow.now,
    ...clocks,
  }
  flow.emit('conversation.created/1', { conversation: eventConversation(conversation) })
  return { conversation, created: true }
}

const later = (a: string | null, b: string): string => (a === null || b > a ? b : a)

/**
 * Last message and activity go by time, so that a message that arrives late does not become the last; of
 * the same time the one written later is the last.
 */
const noteMessage = (
  conversation: ConversationState,
  { id, createdAt }: { id: string; createdAt: string },
): void => {
  const { last_activity_at: at, last_message_id: last } = conversation
  if (at !== null && createdAt < at) return
  if (at !== createdAt || last === null || BigInt(id) > BigInt(last)) conversation.last_message_id = id
  conversation.last_activity_at = createdAt
}

/** A closed conversation opens again. */
const open = async (
  flow: Flow,
  conversation: ConversationState,
  openedBy: string | null,
  title: string | null,
): Promise<void> => {
  const clocks = await openingClocks(flow, conversation.channel_id, openedBy === null)
  Object.assign(conversation, clocks, { state: 'open', episode: conversation.episode + 1 })
  await openEpisode(flow.tx, flow.workspaceId, conversation.id, conversation.episode, {
    openedBy,
    title,
    clocks,
    now: flow.now,
  })
  flow.emit('conversation.reopened/1', { conversation: eventConversation(conversation) })
}

/**
 * `ad`: it carries an ad's referral. `opensWindow`: the reply window runs from it. Times are ISO 8601 UTC.
 */
export type Received = { id: string; createdAt: string; ad: boolean; opensWindow: boolean }

/**
 * A customer's message was written (where the conversation is closed as one of the episode to come): it is
 * unread, the last by time, opens the reply window and a closed conversation, and waits to be answered.
 */
export const receive = async (
  flow: Flow,
  conversation: ConversationState,
  message: Received,
): Promise<void> => {
  const waits = conversation.state === 'open' && conversation.reply_status === 'incoming_no_reply'
  if (conversation.state === 'closed') await open(flow, conversation, null, null)
  noteMessage(conversation, message)
  conversation.unread_count += 1
  conversation.reply_status = 'incoming_no_reply'
  if (message.opensWindow)
    conversation.last_inbound_at = later(conversation.last_inbound_at, message.createdAt)
  if (message.ad) conversation.free_entry_at = later(conversation.free_entry_at, message.createdAt)
  const expiry = expiryOf(conversation)
  const wait = waits ? null : { since: message.createdAt, nextDue: await nextResponseDue(flow, conversation) }
  conversation.next_response_due_at = await writeReceived(
    flow.tx,
    flow.workspaceId,
    conversation,
    expiry ? new Date(expiry.at).toISOString() : null,
    wait,
    flow.now,
  )
}

/** `staffId` null: nobody we know of, such as the business's own app. */
export type Sent = { id: string; createdAt: string; staffId: string | null }

/**
 * The provider took a message: it is the last by time and answers the customer. A closed conversation stays
 * closed. When the customer wrote again while it was on its way, that message still waits.
 */
export const sent = async (flow: Flow, conversation: ConversationState, message: Sent): Promise<void> => {
  const { last_activity_at: before, reply_status: status, unread_count: unread } = conversation
  const overtakenBy =
    status === 'incoming_no_reply' && before !== null && before > message.createdAt ? before : undefined
  noteMessage(conversation, message)
  if (overtakenBy === undefined)
    Object.assign(conversation, { unread_count: 0, reply_status: 'outgoing_no_response' })
  else conversation.unread_count = Math.min(unread, 1)
  conversation.sla_breached ||= isLate(
    [conversation.first_response_due_at, conversation.next_response_due_at],
    message.createdAt,
  )
  conversation.first_response_due_at = null
  conversation.next_response_due_at = null
  await writeSent(
    flow.tx,
    flow.workspaceId,
    conversation,
    { at: message.createdAt, staffId: message.staffId },
    flow.now,
  )
  if (overtakenBy !== undefined && conversation.state === 'open') {
    conversation.next_response_due_at = await beginWait(flow.tx, flow.workspaceId, conversation, {
      since: overtakenBy,
      nextDue: await nextResponseDue(flow, conversation),
    })
  }
}

/** The provider said that the window is closed, although we believed it open. */
export const correctWindow = async (flow: Flow, conversation: ConversationState): Promise<void> => {
  conversation.window_corrected_at = flow.now
  await setConversation(
    flow.tx,
    flow.workspaceId,
    conversation.id,
    { window_corrected_at: flow.now },
    flow.now,
  )
}

/** Ends the episode of an open conversation: nothing is waited for any more. */
export const close = async (
  flow: Flow,
  conversation: ConversationState,
  by: string | null,
  reason: string | null,
): Promise<void> => {
  const { first_response_due_at, next_response_due_at, resolution_due_at } = conversation
  conversation.sla_breached ||= isLate(
    [first_response_due_at, next_response_due_at, resolution_due_at],
    flow.now,
  )
  Object.assign(conversation, {
    state: 'closed',
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
  })
  await writeClosed(flow.tx, flow.workspaceId, conversation, { by, reason }, flow.now)
  flow.emit('conversation.closed/1', { conversation: eventConversation(conversation), reason })
}

/**
 * A staff member opens a closed conversation again. A customer who had no answer when it was closed waits
 * for one from now.
 */
export const reopen = async (
  flow: Flow,
  conversation: ConversationState,
  by: string,
  title: string | null,
): Promise<void> => {
  await open(flow, conversation, by, title)
  if (conversation.reply_status === 'incoming_no_reply') {
    conversation.next_response_due_at = await beginWait(flow.tx, flow.workspaceId, conversation, {
      since: flow.now,
      nextDue: await nextResponseDue(flow, conversation),
    })
  }
}
