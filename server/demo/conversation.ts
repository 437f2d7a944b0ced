import type { NewDemoConversation, NewDemoMessage } from '../../storage/demo/conversations.ts'
import { computeWindowExpiry } from '../inbox/window.ts'
import { toIso } from './time.ts'

/**
 * What happens in a conversation, by whom and when. `staffId`: null when no member is named. `atMs`:
 * milliseconds since 1970.
 */
export type ConversationStep =
  | { do: 'receive'; atMs: number; ad?: boolean; message: MessageContent }
  | { do: 'send'; atMs: number; staffId: string | null; message: MessageContent & MessageProgress }
  | { do: 'note'; atMs: number; staffId: string | null; message: MessageContent }
  | { do: 'close'; atMs: number; staffId: string | null; reason: string | null }

type MessageContent = Pick<NewDemoMessage, 'type' | 'text'> &
  Partial<
    Pick<
      NewDemoMessage,
      'content' | 'media' | 'provider_id' | 'template_name' | 'template_language' | 'reaction'
    >
  >
/** The status of a message to the customer, with its times. */
type MessageProgress = Pick<NewDemoMessage, 'status' | 'delivered_at' | 'read_at' | 'failed_at'> &
  Partial<Pick<NewDemoMessage, 'error' | 'error_code'>>

export type DemoChannel = { id: string; type: string; status: string }
/** The clocks of a service level, in seconds. */
export type DemoSlaPolicy = {
  id: string
  first_response_seconds: number
  next_response_seconds: number
  resolution_seconds: number
}
export type ConversationStart = {
  channel: DemoChannel | null
  policy: DemoSlaPolicy | null
  assigned: { staffId: string | null; teamId: string | null }
  assignedMs: number
  tagIds: readonly string[]
  reminderMs: number | null
  /** When it was opened, and by which staff member; null: by the customer. */
  openedMs: number
  openedBy: string | null
}

const BLANK_MESSAGE = {
  status: 'received',
  text: null,
  content: null,
  note: false,
  staff_id: null,
  template_name: null,
  template_language: null,
  provider_id: null,
  error: null,
  error_code: null,
  sent_at: null,
  delivered_at: null,
  read_at: null,
  failed_at: null,
  media: null,
  reaction: null,
} as const

const addSeconds = (ms: number, seconds: number | undefined): string | null =>
  seconds === undefined ? null : toIso(ms + seconds * 1000)

/** A conversation while it is being built. */
type Builder = {
  conversation: NewDemoConversation
  channel: DemoChannel | null
  policy: DemoSlaPolicy | null
}

/** Starts a new episode. `by`: null when the customer opened it, so that a first response is due. */
const openEpisode = ({ conversation, policy }: Builder, ms: number, by: string | null): void => {
  Object.assign(conversation, {
    state: 'open',
    episode: conversation.episode + 1,
    sla_policy_id: policy?.id ?? null,
    sla_breached: false,
    first_response_due_at: by === null ? addSeconds(ms, policy?.first_response_seconds) : null,
    next_response_due_at: null,
    resolution_due_at: addSeconds(ms, policy?.resolution_seconds),
  })
  conversation.episodes.push({
    n: conversation.episode,
    opened_at: toIso(ms),
    opened_by: by,
    closed_at: null,
    closed_by: null,
    close_reason: null,
    first_response_at: null,
    resolution_due_at: conversation.resolution_due_at,
  })
}

const addMessage = (
  { conversation }: Builder,
  at: string,
  message: Partial<NewDemoMessage> & Pick<NewDemoMessage, 'direction' | 'type'>,
): void => {
  conversation.messages.push({ ...BLANK_MESSAGE, ...message, episode: conversation.episode, created_at: at })
  if (message.note) return
  conversation.last = conversation.messages.length - 1
  conversation.last_activity_at = at
}

const markBreaches = (conversation: NewDemoConversation, at: string, ...dues: (string | null)[]): void => {
  conversation.sla_breached ||= dues.some((due) => due !== null && due < at)
}

const endWait = ({ waits }: NewDemoConversation, at: string, by: string | null): void => {
  const wait = waits.at(-1)
  if (wait && wait.ended_at === null) Object.assign(wait, { ended_at: at, ended_by: by })
}

const receive = (builder: Builder, at: string, step: ConversationStep & { do: 'receive' }): void => {
  const { conversation, channel, policy } = builder
  const waits = conversation.state === 'open' && conversation.reply_status === 'incoming_no_reply'
  if (conversation.state === 'closed') openEpisode(builder, step.atMs, null)
  addMessage(builder, at, { ...step.message, direction: 'inbound' })
  conversation.unread_count++
  conversation.reply_status = 'incoming_no_reply'
  conversation.last_inbound_at = at
  if (step.ad) conversation.free_entry_at = at
  const expiry = computeWindowExpiry({
    channel_id: conversation.channel_id,
    channel_type: channel?.type ?? null,
    last_inbound_at: at,
    free_entry_at: conversation.free_entry_at,
    window_corrected_at: null,
  })
  conversation.window_expires_at = expiry ? toIso(expiry.at) : null
  if (waits) return
  conversation.waiting_since = at
  const { first_response_at: answered, opened_by: by } = conversation.episodes.at(-1)!
  const first = answered === null && by === null
  if (!first) conversation.next_response_due_at = addSeconds(step.atMs, policy?.next_response_seconds)
  const due = first ? conversation.first_response_due_at : conversation.next_response_due_at
  conversation.waits.push({
    since: at,
    kind: first ? 'first_response' : 'next_response',
    episode: conversation.episode,
    due_at: due,
    ended_at: null,
    ended_by: null,
  })
}

const send = (builder: Builder, at: string, step: ConversationStep & { do: 'send' }): void => {
  const { conversation } = builder
  addMessage(builder, at, { ...step.message, direction: 'outbound', staff_id: step.staffId, sent_at: at })
  conversation.unread_count = 0
  conversation.delivery_failed = step.message.status === 'failed'
  // It answered nobody.
  if (conversation.delivery_failed) return
  markBreaches(conversation, at, conversation.first_response_due_at, conversation.next_response_due_at)
  Object.assign(conversation, {
    reply_status: 'outgoing_no_response',
    first_response_due_at: null,
    next_response_due_at: null,
  })
  const episode = conversation.episodes.at(-1)!
  if (episode.closed_at === null) episode.first_response_at ??= at
  endWait(conversation, at, step.staffId)
}

const close = ({ conversation }: Builder, at: string, step: ConversationStep & { do: 'close' }): void => {
  markBreaches(
    conversation,
    at,
    conversation.first_response_due_at,
    conversation.next_response_due_at,
    conversation.resolution_due_at,
  )
  Object.assign(conversation, {
    state: 'closed',
    unread_count: 0,
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
  })
  Object.assign(conversation.episodes.at(-1)!, {
    closed_at: at,
    closed_by: step.staffId,
    close_reason: step.reason,
  })
  endWait(conversation, at, step.staffId)
}

/**
 * Builds a conversation from its steps. It applies the rules of `server/inbox/lifecycle.ts` in memory, since
 * thousands of conversations are written at once; `tests/admin/demo.test.ts` checks that the result is the
 * same.
 */
export const buildConversation = (
  { channel, policy, assigned, assignedMs, tagIds, reminderMs, openedMs, openedBy }: ConversationStart,
  steps: readonly ConversationStep[],
): NewDemoConversation => {
  const isAssigned = assigned.staffId !== null || assigned.teamId !== null
  const conversation: NewDemoConversation = {
    channel_id: channel?.id ?? null,
    state: 'open',
    title: null,
    episode: 0,
    assigned_staff_id: assigned.staffId,
    assigned_team_id: assigned.teamId,
    assigned_at: isAssigned ? toIso(assignedMs) : null,
    unread_count: 0,
    reply_status: null,
    last_inbound_at: null,
    free_entry_at: null,
    window_expires_at: null,
    reminder_at: reminderMs === null ? null : toIso(reminderMs),
    sla_policy_id: null,
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
    sla_breached: false,
    created_at: toIso(openedMs),
    updated_at: toIso(isAssigned ? Math.max(openedMs, assignedMs) : openedMs),
    last_activity_at: toIso(openedMs),
    waiting_since: null,
    delivery_failed: false,
    last: 0,
    messages: [],
    episodes: [],
    waits: [],
    tag_ids: tagIds,
  }
  const builder = { conversation, channel, policy }
  openEpisode(builder, openedMs, openedBy)
  for (const step of steps.toSorted((a, b) => a.atMs - b.atMs)) {
    const at = toIso(step.atMs)
    if (at > conversation.updated_at) conversation.updated_at = at
    if (step.do === 'receive') receive(builder, at, step)
    else if (step.do === 'send') send(builder, at, step)
    else if (step.do === 'close') close(builder, at, step)
    else
      addMessage(builder, at, {
        ...step.message,
        direction: 'system',
        status: 'system',
        note: true,
        staff_id: step.staffId,
      })
  }
  return conversation
}
