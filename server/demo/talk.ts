import type { NewTalk, NewTalkMessage } from '../../storage/demo-talks.ts'
import { expiryOf } from '../inbox/window.ts'

/**
 * What happens in a conversation, by whom and when; `staffId` null: nobody in particular. `atMs`:
 * milliseconds since 1970.
 */
export type Step =
  | { do: 'receive'; atMs: number; ad?: boolean; message: Content }
  | { do: 'send'; atMs: number; staffId: string | null; message: Content & Progress }
  | { do: 'note'; atMs: number; staffId: string | null; message: Content }
  | { do: 'close'; atMs: number; staffId: string | null; reason: string | null }

type Content = Pick<NewTalkMessage, 'type' | 'text'> &
  Partial<Pick<NewTalkMessage, 'content' | 'media' | 'provider_id' | 'template_name' | 'template_language'>>
/** How far a message to the customer came, and when. */
type Progress = Pick<NewTalkMessage, 'status' | 'delivered_at' | 'read_at' | 'failed_at'> &
  Partial<Pick<NewTalkMessage, 'error' | 'error_code'>>

export type Channel = { id: string; type: string; status: string }
/** The clocks of a service level, in seconds. */
export type Policy = {
  id: string
  first_response_seconds: number
  next_response_seconds: number
  resolution_seconds: number
}
export type Beginning = {
  channel: Channel | null
  policy: Policy | null
  assigned: { staffId: string | null; teamId: string | null }
  assignedMs: number
  tagIds: readonly string[]
  reminderMs: number | null
  /** When it was opened, and by which staff member; null: by the customer. */
  openedMs: number
  openedBy: string | null
}

const iso = (ms: number): string => new Date(ms).toISOString()

const blank = {
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
} as const

const after = (ms: number, seconds: number | undefined): string | null =>
  seconds === undefined ? null : iso(ms + seconds * 1000)

/** A conversation while it is told. */
type Told = { talk: NewTalk; channel: Channel | null; policy: Policy | null }

/** A new episode; `by` null: the customer opened it, so that a first response is owed. */
const open = ({ talk, policy }: Told, ms: number, by: string | null): void => {
  Object.assign(talk, {
    state: 'open',
    episode: talk.episode + 1,
    sla_policy_id: policy?.id ?? null,
    sla_breached: false,
    first_response_due_at: by === null ? after(ms, policy?.first_response_seconds) : null,
    next_response_due_at: null,
    resolution_due_at: after(ms, policy?.resolution_seconds),
  })
  talk.episodes.push({
    n: talk.episode,
    opened_at: iso(ms),
    opened_by: by,
    closed_at: null,
    closed_by: null,
    close_reason: null,
    first_response_at: null,
    resolution_due_at: talk.resolution_due_at,
  })
}

const say = (
  { talk }: Told,
  at: string,
  message: Partial<NewTalkMessage> & Pick<NewTalkMessage, 'direction' | 'type'>,
): void => {
  talk.messages.push({ ...blank, ...message, episode: talk.episode, created_at: at })
  if (message.note) return
  talk.last = talk.messages.length - 1
  talk.last_activity_at = at
}

const breach = (talk: NewTalk, at: string, ...dues: (string | null)[]): void => {
  talk.sla_breached ||= dues.some((due) => due !== null && due < at)
}

const endWait = ({ waits }: NewTalk, at: string, by: string | null): void => {
  const wait = waits.at(-1)
  if (wait && wait.ended_at === null) Object.assign(wait, { ended_at: at, ended_by: by })
}

const receive = (told: Told, at: string, step: Step & { do: 'receive' }): void => {
  const { talk, channel, policy } = told
  const waits = talk.state === 'open' && talk.reply_status === 'incoming_no_reply'
  if (talk.state === 'closed') open(told, step.atMs, null)
  say(told, at, { ...step.message, direction: 'inbound' })
  talk.unread_count++
  talk.reply_status = 'incoming_no_reply'
  talk.last_inbound_at = at
  if (step.ad) talk.free_entry_at = at
  const expiry = expiryOf({
    channel_id: talk.channel_id,
    channel_type: channel?.type ?? null,
    last_inbound_at: at,
    free_entry_at: talk.free_entry_at,
    window_corrected_at: null,
  })
  talk.window_expires_at = expiry ? iso(expiry.at) : null
  if (waits) return
  const { first_response_at: answered, opened_by: by } = talk.episodes.at(-1)!
  const first = answered === null && by === null
  if (!first) talk.next_response_due_at = after(step.atMs, policy?.next_response_seconds)
  const due = first ? talk.first_response_due_at : talk.next_response_due_at
  talk.waits.push({
    since: at,
    kind: first ? 'first_response' : 'next_response',
    episode: talk.episode,
    due_at: due,
    ended_at: null,
    ended_by: null,
  })
}

const send = (told: Told, at: string, step: Step & { do: 'send' }): void => {
  const { talk } = told
  say(told, at, { ...step.message, direction: 'outbound', staff_id: step.staffId, sent_at: at })
  breach(talk, at, talk.first_response_due_at, talk.next_response_due_at)
  Object.assign(talk, {
    unread_count: 0,
    reply_status: 'outgoing_no_response',
    first_response_due_at: null,
    next_response_due_at: null,
  })
  const episode = talk.episodes.at(-1)!
  if (episode.closed_at === null) episode.first_response_at ??= at
  endWait(talk, at, step.staffId)
}

const close = ({ talk }: Told, at: string, step: Step & { do: 'close' }): void => {
  breach(talk, at, talk.first_response_due_at, talk.next_response_due_at, talk.resolution_due_at)
  Object.assign(talk, {
    state: 'closed',
    unread_count: 0,
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
  })
  Object.assign(talk.episodes.at(-1)!, { closed_at: at, closed_by: step.staffId, close_reason: step.reason })
  endWait(talk, at, step.staffId)
}

/**
 * A conversation as these steps leave it. The rules are those of `server/inbox/lifecycle.ts`, told in
 * memory: thousands of conversations are written at once, and `tests/demo.test.ts` proves that they are as
 * if they had been lived.
 */
export const talkOf = (
  { channel, policy, assigned, assignedMs, tagIds, reminderMs, openedMs, openedBy }: Beginning,
  steps: readonly Step[],
): NewTalk => {
  const isAssigned = assigned.staffId !== null || assigned.teamId !== null
  const talk: NewTalk = {
    channel_id: channel?.id ?? null,
    state: 'open',
    title: null,
    episode: 0,
    assigned_staff_id: assigned.staffId,
    assigned_team_id: assigned.teamId,
    assigned_at: isAssigned ? iso(assignedMs) : null,
    unread_count: 0,
    reply_status: null,
    last_inbound_at: null,
    free_entry_at: null,
    window_expires_at: null,
    reminder_at: reminderMs === null ? null : iso(reminderMs),
    sla_policy_id: null,
    first_response_due_at: null,
    next_response_due_at: null,
    resolution_due_at: null,
    sla_breached: false,
    created_at: iso(openedMs),
    updated_at: iso(isAssigned ? Math.max(openedMs, assignedMs) : openedMs),
    last_activity_at: iso(openedMs),
    last: 0,
    messages: [],
    episodes: [],
    waits: [],
    tag_ids: tagIds,
  }
  const told = { talk, channel, policy }
  open(told, openedMs, openedBy)
  for (const step of steps.toSorted((a, b) => a.atMs - b.atMs)) {
    const at = iso(step.atMs)
    if (at > talk.updated_at) talk.updated_at = at
    if (step.do === 'receive') receive(told, at, step)
    else if (step.do === 'send') send(told, at, step)
    else if (step.do === 'close') close(told, at, step)
    else
      say(told, at, {
        ...step.message,
        direction: 'system',
        status: 'system',
        note: true,
        staff_id: step.staffId,
      })
  }
  return talk
}
