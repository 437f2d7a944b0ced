import type { NewDemoConversation } from '../../storage/demo/conversations.ts'
import { pick, type Random, randomInt } from './random.ts'
import { broadcastReplies, languageForPhone, type Story, stories } from './stories.ts'
import { createSteps, cutStory, type DemoCustomer, parseLine, randomDelivery } from './story-steps.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './time.ts'
import {
  type ConversationStart,
  type DemoChannel,
  type DemoSlaPolicy,
  type ConversationStep,
  buildConversation,
} from './conversation.ts'

/** `channelIds`: the channels on which the member may reply; null: all. */
type DemoAgent = { id: string; channelIds: readonly string[] | null }

export type DemoConversationSettings = {
  seed: number
  nowMs: number
  channels: readonly DemoChannel[]
  staff: readonly DemoAgent[]
  teamIds: readonly string[]
  tagIds: readonly string[]
  policy: DemoSlaPolicy | null
  /** How many conversations the nth person has. */
  conversations: (n: number) => number
  /**
   * The place of the nth person's last conversation among those of the last days. With it, conversations are
   * long; without it they are short, since many are made.
   */
  recent?: ((n: number) => RecentSlot | undefined) | undefined
}

/**
 * `day`: how many days ago; 0: a few minutes ago. `slot`: of the latest days, the conversations in slots 0
 * and 1 are still open, the others closed.
 */
export type RecentSlot = { day: number; slot: number }

/** A planned conversation; steps may still be added to it. */
export type ConversationOutline = ConversationStart & { steps: ConversationStep[] }

const chooseAssignment = (
  random: Random,
  { staff, teamIds }: DemoConversationSettings,
  channel: DemoChannel | null,
) => {
  const candidates = staff.filter(
    ({ channelIds }) => channelIds === null || (channel !== null && channelIds.includes(channel.id)),
  )
  const share = random()
  const agentId = candidates.length > 0 ? pick(random, candidates).id : null
  return {
    assigned: {
      staffId: share < 0.6 ? agentId : null,
      teamId: share >= 0.6 && share < 0.75 && teamIds.length > 0 ? pick(random, teamIds) : null,
    },
    /** The member who replies when no one is assigned. */
    agentId,
  }
}

/** Share of the closed short conversations that are notices without a reply. */
const NOTICE_SHARE = 0.6
const NOTICE = { type: 'TEMPLATE', template_name: 'order_update', template_language: 'en_US' }

type ShortConversation = {
  random: Random
  customer: DemoCustomer
  story: Story
  start: ConversationStart
  fromMs: number
  nowMs: number
  open: boolean
  agentId: string | null
}

/** A conversation of few messages within three days: for contacts by the million. */
const outlineShort = (options: ShortConversation): ConversationOutline => {
  const { random, customer, story, start, fromMs, nowMs, open, agentId } = options
  const lastMs = Math.floor(Math.min(nowMs, fromMs + random() ** 2 * 3 * DAY_MS))
  const text = (speaker: string): string =>
    parseLine(story.find((line) => line[0] === speaker) ?? story[0]!, customer, '').text ?? '👍'
  const ask = (atMs: number): ConversationStep => ({
    do: 'receive',
    atMs,
    message: { type: 'TEXT', text: text('>') },
  })
  const unread = open ? Math.floor(random() ** 3 * 6) : 0
  if (unread > 0) {
    const steps = Array.from({ length: unread }, (_, i) =>
      ask(Math.floor(fromMs + ((lastMs - fromMs) * (i + 1)) / unread)),
    )
    return { ...start, openedMs: steps[0]!.atMs, assignedMs: steps[0]!.atMs, steps }
  }
  const reply: ConversationStep & { do: 'send' } = {
    do: 'send',
    atMs: lastMs,
    staffId: agentId,
    message: { type: 'TEXT', text: text('<'), ...randomDelivery(random, lastMs, null, nowMs) },
  }
  const closing: ConversationStep = {
    do: 'close',
    atMs: Math.min(nowMs, lastMs + 5 * MINUTE_MS),
    staffId: agentId,
    reason: null,
  }
  // Most mass messages of a business are not replies.
  if (!open && random() < NOTICE_SHARE)
    return {
      ...start,
      openedMs: lastMs,
      assignedMs: lastMs,
      openedBy: agentId,
      steps: [{ ...reply, message: { ...reply.message, ...NOTICE } }, closing],
    }
  return { ...start, steps: [ask(fromMs), reply, ...(open ? [] : [closing])] }
}

/** Returns a template sent a day after the end, when the reply window is closed; mostly none. */
const createFollowUp = (
  random: Random,
  customer: DemoCustomer,
  steps: readonly ConversationStep[],
  nowMs: number,
  key: string,
): ConversationStep[] => {
  const atMs = steps.at(-1)!.atMs + DAY_MS + randomInt(random, 4 * HOUR_MS)
  if (atMs > nowMs || random() >= 0.2) return []
  const end = steps.at(-1)!
  return [
    {
      do: 'send',
      atMs,
      staffId: 'staffId' in end ? end.staffId : null,
      message: {
        ...parseLine(`< Hello ${customer.name ?? 'there'}, your order is on its way.`, customer, key),
        ...NOTICE,
        ...randomDelivery(random, atMs, null, nowMs),
      },
    },
  ]
}

/** Conversations in slots 0 and 1 of this many days are all open; of earlier days only some are. */
const OPEN_DAYS = 6

type RecentConversation = {
  random: Random
  settings: DemoConversationSettings
  customer: DemoCustomer
  story: Story
  place: RecentSlot
  key: string
}

/** A long conversation of the last days. */
const outlineRecent = (options: RecentConversation): ConversationOutline => {
  const { random, settings, customer, story, key } = options
  const { day, slot } = options.place
  const { nowMs } = settings
  const connected = settings.channels.filter((c) => c.status === 'connected')
  const ad = day === 2 && slot === 1
  const channel =
    (ad ? connected.find((c) => c.type === 'chatapp') : undefined) ??
    (connected.length > 0 ? pick(random, connected) : null)
  const { assigned, agentId } = chooseAssignment(random, settings, channel)
  const open = slot < 2 && (day < OPEN_DAYS || random() < 0.3)
  const lines = open ? cutStory(random, story, slot === 0) : story
  const dayMs = Math.floor(nowMs / DAY_MS) * DAY_MS - day * DAY_MS
  const plannedMs =
    day === 0
      ? nowMs - 4 * HOUR_MS + randomInt(random, HOUR_MS)
      : dayMs + 9 * HOUR_MS + randomInt(random, 3 * HOUR_MS)
  const startMs = Math.max(customer.createdMs, plannedMs)
  const unassigned = open && slot === 0 && day < 4
  const steps = createSteps(random, lines, {
    customer,
    startMs,
    nowMs: nowMs - slot * MINUTE_MS,
    staffId: assigned.staffId ?? agentId,
    key,
    ad,
  })
  return {
    channel,
    policy: settings.policy,
    assigned: unassigned ? { staffId: null, teamId: null } : assigned,
    assignedMs: startMs,
    openedMs: startMs,
    openedBy: null,
    tagIds: random() < 0.4 && settings.tagIds.length > 0 ? [pick(random, settings.tagIds)] : [],
    reminderMs:
      open && slot === 1 && day % 2 === 0 ? Math.ceil(nowMs / HOUR_MS) * HOUR_MS + (1 + day) * DAY_MS : null,
    steps:
      open || day < 2 ? steps : [...steps, ...createFollowUp(random, customer, steps, nowMs, `${key}.t`)],
  }
}

/** Plans the conversations of one customer, the oldest first; only the last one may be open. */
export const outlineConversations = (
  random: Random,
  settings: DemoConversationSettings,
  customer: DemoCustomer,
): ConversationOutline[] => {
  const count = settings.conversations(customer.n)
  const ownStories = stories[languageForPhone(customer.prefix)]!
  const { nowMs, channels, policy } = settings
  return Array.from({ length: count }, (_, i): ConversationOutline => {
    const isLast = i === count - 1
    const story = random() < 0.85 ? pick(random, ownStories) : pick(random, stories['en']!)
    const key = `${settings.seed}.${customer.n}.${i}`
    const place = isLast ? settings.recent?.(customer.n) : undefined
    if (place) return outlineRecent({ random, settings, customer, story, place, key })
    const fromMs = Math.floor(customer.createdMs + ((nowMs - customer.createdMs) * (i + random())) / count)
    const channel = channels.length > 0 ? pick(random, channels) : null
    const { assigned, agentId } = chooseAssignment(random, settings, channel)
    const start: ConversationStart = {
      channel,
      policy,
      assigned,
      assignedMs: fromMs,
      openedMs: fromMs,
      openedBy: null,
      tagIds: [],
      reminderMs: null,
    }
    if (!settings.recent) {
      const open = isLast && random() < 0.3
      return outlineShort({ random, customer, story, start, fromMs, nowMs, open, agentId })
    }
    const staffId = assigned.staffId ?? agentId
    const steps = createSteps(random, story, { customer, startMs: fromMs, nowMs, staffId, key, ad: false })
    return { ...start, steps: [...steps, ...createFollowUp(random, customer, steps, nowMs, `${key}.t`)] }
  })
}

/**
 * Adds a reply to a broadcast to the latest conversation that had ended by then. A closed conversation is
 * closed again when there is time until now. Returns false when there is no such conversation.
 */
export const addBroadcastReply = (
  random: Random,
  outlines: readonly ConversationOutline[],
  atMs: number,
  nowMs: number,
): boolean => {
  const outline = outlines.findLast(({ steps }) => steps.at(-1)!.atMs < atMs)
  if (!outline) return false
  const wasClosed =
    outline.steps.findLast((step) => step.do === 'close' || step.do === 'receive')?.do === 'close'
  const lastClose = outline.steps.findLast((step) => step.do === 'close')
  outline.steps.push({ do: 'receive', atMs, message: { type: 'TEXT', text: pick(random, broadcastReplies) } })
  const answerMs = atMs + 5 * MINUTE_MS
  if (wasClosed && lastClose?.do === 'close' && answerMs + MINUTE_MS <= nowMs) {
    outline.steps.push(
      {
        do: 'send',
        atMs: answerMs,
        staffId: lastClose.staffId,
        message: { type: 'TEXT', text: '👍', ...randomDelivery(random, answerMs, null, nowMs) },
      },
      { do: 'close', atMs: answerMs + MINUTE_MS, staffId: lastClose.staffId, reason: null },
    )
  }
  return true
}

export const buildConversations = (outlines: readonly ConversationOutline[]): NewDemoConversation[] =>
  outlines.map((outline) => buildConversation(outline, outline.steps))
