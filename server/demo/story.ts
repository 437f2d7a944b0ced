import { parsePhoneLine } from '../domains/contacts/phone.ts'
import type { Actor } from '../kernel/context.ts'
import type { InboundContent } from '../domains/inbound/content.ts'
import { findOrCreateContacts } from '../domains/inbound/customers.ts'
import { applyMessageChanges } from '../domains/inbound/message-changes.ts'
import { receiveMessages } from '../domains/inbound/messages.ts'
import { applyStatus } from '../domains/messaging/message-status.ts'
import type { EventRow } from '../../storage/events/events.ts'
import { setNextIds } from '../../storage/workspace/admin.ts'
import type { Caller } from './calls.ts'
import { createPhone } from './contacts.ts'
import { pick, type Random, createRandom, randomInt } from './random.ts'
import { languageForPhone, type Story, stories } from './stories.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso } from './time.ts'

type DemoChannel = { id: string; type: string }
/** A member of the staff, and the team of those. */
type Member = Actor['staff']

/** A conversation: with the nth customer, from the first line on. */
type Chat = {
  n: number
  channel: DemoChannel
  story: Story
  startMs: number
  by: Member
  /** It ends here, and stays open. */
  lines?: number
  assign?: { staff_id: string } | { team_id: string }
  tags?: readonly string[]
  reminderMs?: number
  ad?: boolean
  /** The first reply is late. */
  late?: boolean
  /** The state of the last message; `read` where the customer answered. */
  last?: 'sent' | 'delivered' | 'failed'
  /** Of the reply, in another system. */
  externalId?: string
}

export type DemoStory = {
  channels: { main: DemoChannel; orders: DemoChannel; web: DemoChannel }
  staff: readonly Member[]
  teamId: string
  /** The customer with many conversations. */
  regular: { n: number; id: string }
  nowMs: number
}

/** The records that the examples of the catalog name by their ids: a conversation of today, and its messages. */
const FIRST_OPEN_ID = 367
const NAMED = { at: 14, firstMessageId: 1657 }

const DAYS = 30
/** An open conversation: in English, or without a story in the customer's language. `free`: nobody is assigned. */
type Open = Partial<Pick<Chat, 'ad' | 'late' | 'last' | 'externalId'>> & {
  day: number
  story?: number
  lines: number
  team?: true
  free?: true
  web?: true
  tag?: string
  remind?: true
}

/** Whose reply window is shut. */
const WAITING: readonly Open[] = [
  { day: 23, lines: 1 },
  { day: 19, lines: 1, free: true },
  { day: 16, lines: 1, free: true },
  { day: 12, lines: 2, last: 'failed' },
  { day: 9, lines: 1, free: true },
  { day: 7, lines: 1 },
]
/** Those of today last. */
const OPEN: readonly Open[] = [
  { day: 5, story: 0, lines: 1, free: true },
  { day: 4, story: 2, lines: 1, team: true },
  { day: 4, story: 4, lines: 3, remind: true, last: 'delivered' },
  { day: 3, story: 3, lines: 3, late: true, last: 'sent' },
  { day: 3, story: 0, lines: 2, last: 'failed' },
  { day: 2, story: 2, lines: 2, ad: true, remind: true, tag: 'lead' },
  { day: 1, story: 3, lines: 2, free: true, tag: 'wholesale' },
  { day: 1, story: 4, lines: 2, free: true },
  { day: 0, story: 1, lines: 4, tag: 'complaint', externalId: 'order-1042' },
  { day: 0, story: 2, lines: 1, free: true, web: true },
  { day: 0, story: 3, lines: 2, free: true },
  { day: 0, story: 0, lines: 3 },
]

/** Every customer has one conversation, but for the regular one. */
const customerOf = (k: number): number => (k * 37 + 11) % 190

/** A question, an answer, and the end: of most conversations, so that the first start stays fast. */
const shorten = (story: Story): Story =>
  ['>', '<', '!'].map((kind) => story.find((line) => line[0] === kind)!)

/** The conversations, those that stay open last. */
const planChats = (
  random: Random,
  { channels, staff, teamId, regular, nowMs }: DemoStory,
): { closed: Chat[]; open: Chat[] } => {
  const [owner, admin, lena, yuki] = staff as [Member, Member, Member, Member]
  const dayMs = (day: number): number =>
    day === 0
      ? nowMs - 4 * HOUR_MS
      : Math.floor(nowMs / DAY_MS) * DAY_MS - day * DAY_MS + 9 * HOUR_MS + randomInt(random, 3 * HOUR_MS)
  const ownStories = (n: number): readonly Story[] =>
    stories[languageForPhone(createPhone(n).country.prefix)]!
  const storyOf = (n: number, day: number): Story => {
    const own = ownStories(n)
    return day % 2 === 0 ? pick(random, own) : stories['en']![(day >> 1) % 5]!
  }
  const old = Array.from({ length: 4 }, (_, i): Chat => ({
    n: regular.n,
    channel: [channels.main, channels.orders][i % 2]!,
    story: stories['en']![i % 5]!,
    startMs: dayMs(540 - i * 130),
    by: lena,
  }))
  const daily = Array.from({ length: DAYS }, (_, i): Chat => {
    const day = DAYS - 1 - i
    const n = customerOf(i)
    return {
      n,
      channel: pick(random, [channels.main, channels.orders]),
      story: [
        ...(day === 10 ? stories['es']![2]! : day < 12 ? storyOf(n, day) : shorten(storyOf(n, day))),
        ...(day % 7 === 3 ? ['@ order_update'] : []),
      ],
      startMs: dayMs(day),
      by: pick(random, [lena, yuki, admin]),
    }
  })
  const toChat = ({ day, story, lines, team, free, web, tag, remind, ...rest }: Open, i: number): Chat => {
    const n = customerOf(DAYS + i)
    const by = i % 3 === 0 ? owner : lena
    return {
      ...rest,
      n,
      channel: web ? channels.web : pick(random, [channels.main, channels.orders]),
      story: story === undefined ? ownStories(n)[0]! : stories['en']![story]!,
      lines,
      startMs: day === 0 ? nowMs - (50 - i) * MINUTE_MS : dayMs(day),
      by,
      ...(free ? {} : { assign: team ? { team_id: teamId } : { staff_id: by.id } }),
      ...(tag ? { tags: [tag] } : {}),
      ...(remind ? { reminderMs: Math.ceil(nowMs / HOUR_MS) * HOUR_MS + (1 + day) * DAY_MS } : {}),
    }
  }
  const open = OPEN.map(toChat)
  const waiting = WAITING.map((each, i) => toChat(each, OPEN.length + i))
  return { closed: [...old, ...daily], open: [...waiting, ...open] }
}

const FILES: Readonly<Record<string, { type: string; extension: string }>> = {
  image: { type: 'image/jpeg', extension: 'jpg' },
  document: { type: 'application/pdf', extension: 'pdf' },
  audio: { type: 'audio/ogg', extension: 'ogg' },
}

/** Returns what a line says, and the file or place that comes with it. */
const parseLine = (line: string, n: number, name: string | null) => {
  const [, kind, rawText, emoji] = /^. (?:\[(\w+)\] ?)?(.*?)(?: ~(\S+))?$/su.exec(line)!
  const text =
    rawText!
      .replaceAll('{name}', name ?? '')
      .replaceAll('{order}', String(10_000 + ((n * 7) % 80_000)))
      .replaceAll(/ (?=[,.!？])|^[,，]\s*/gu, '') || null
  const file = kind === undefined ? undefined : FILES[kind]
  return { kind, text, emoji, file, url: file && `https://www.example.com/media/${n}.${file.extension}` }
}

const AD = {
  ad_id: '120210000000001',
  type: 'ad',
  url: 'https://example.com/fresh',
  headline: 'Fresh from the roastery',
  text: null,
  media_url: null,
  click_id: null,
}

const toContent = (line: string, n: number, ad: boolean): InboundContent => {
  const { kind, text, file, url } = parseLine(line, n, null)
  const place = { latitude: 52.5251, longitude: 13.3694, address: 'Europaplatz 1' }
  return {
    type: kind === undefined ? 'TEXT' : (kind.toUpperCase() as InboundContent['type']),
    text: kind === 'location' ? place.address : text,
    ...(kind === 'location'
      ? { stored: { content: { kind: 'location', ...place, name: null, url: null } } }
      : ad
        ? { stored: { ad: AD } }
        : {}),
    ...(file
      ? { media: { state: 'linked', content_type: file.type, file_name: null, size: 184_320, url: url! } }
      : {}),
    replyTo: null,
    isNotice: false,
  }
}

/** Gives each line a time, with the pauses that people make; they are shorter where the end would not be over yet. */
const scheduleLines = (random: Random, { story, lines, startMs, late }: Chat, nowMs: number) => {
  let atMs = startMs
  const timed = story.slice(0, lines).map((line, i) => {
    const again = line[0] === '>' && story[i - 1]?.[0] === '!'
    const isTemplate = line[0] === '@'
    const pause = line[0] === '<' ? 2 + random() ** 2 * (late ? 0 : 25) + (late ? 40 : 0) : 1 + random() * 10
    return {
      line,
      atMs: (atMs += Math.floor((i === 0 ? 0 : isTemplate ? 26 * 60 : again ? 90 : pause) * MINUTE_MS)),
    }
  })
  const scale = Math.min(1, (nowMs - startMs - MINUTE_MS) / Math.max(1, atMs - startMs))
  return timed.map((step) => ({ ...step, atMs: Math.floor(startMs + (step.atMs - startMs) * scale) }))
}

/** What the sandbox has to know of a customer who wrote on a number. */
export type Writer = { phone: string; name: string | null; channelId: string; atMs: number; ad: boolean }

/** Plays a conversation: what is received, what the staff do, and what the provider reports. */
const playChat = async (caller: Caller, random: Random, chat: Chat, nowMs: number): Promise<Writer> => {
  const { call, contextAt, lastProviderId } = caller
  const { n, channel, by, last = 'delivered' } = chat
  const phone = parsePhoneLine(createPhone(n).phone)
  if ('error' in phone) throw new Error(phone.error)
  const customer = {
    phone: { ...phone, spelling: phone.phone },
    userId: null,
    username: null,
    name: null,
    at: null,
  }
  const writer: Writer = {
    phone: phone.phone,
    name: null,
    channelId: channel.id,
    atMs: 0,
    ad: chat.ad === true,
  }
  const steps = scheduleLines(random, chat, nowMs)
  const target = { conversation_id: '' }
  let contactId = ''
  const receive = async (line: string, atMs: number, first: boolean): Promise<void> => {
    const events: EventRow[] = []
    const context = contextAt(atMs, events)
    const find = await findOrCreateContacts(context, [customer], { reports: [], changes: [] })
    const contact = find(customer)!
    const providerId = `wamid.${Buffer.from(`${n}.${atMs}`).toString('base64')}`
    const content = toContent(line, n, writer.ad && first)
    await receiveMessages(context, [
      { contact, channelId: channel.id, providerId, groupId: null, content, createdAt: context.now },
    ])
    const { data } = events.find(({ type }) => type === 'message.received/1')!
    target.conversation_id = (data as { message: typeof target }).message.conversation_id
    contactId = contact.id
    Object.assign(writer, { name: contact.name, atMs })
  }
  const report = async (sentMs: number, answeredMs: number | undefined, emoji: string | undefined) => {
    const target = lastProviderId()
    const status = answeredMs !== undefined || emoji !== undefined ? 'read' : last
    if (status === 'sent') return
    const delayMs = 1000 + randomInt(random, status === 'read' ? MINUTE_MS : 20_000)
    const atMs = Math.min(answeredMs ?? nowMs, sentMs + delayMs)
    const error = { code: 131026, title: 'Message undeliverable', details: null }
    await applyStatus(contextAt(atMs), {
      providerId: target,
      status,
      at: toIso(atMs),
      ...(status === 'failed' ? { error } : {}),
    })
    if (emoji === undefined) return
    const change = { kind: 'reaction', target, emoji } as const
    const by = 'customer' as const
    const reaction = { updateId: '0', channelId: channel.id, customer, by, change, at: toIso(atMs) }
    await applyMessageChanges(contextAt(atMs), [reaction])
  }
  for (const [i, { line, atMs }] of steps.entries()) {
    const staff = { staff: by, keyId: '1', atMs }
    const { text, emoji, url } = parseLine(line, n, writer.name)
    switch (line[0]) {
      case '>':
        await receive(line, atMs, i === 0)
        if (i > 0) break
        if (chat.assign) await call('inbox_assign_conversation', { ...target, ...chat.assign }, staff)
        if (chat.tags) await call('inbox_tag_conversation', { ...target, add: chat.tags }, staff)
        if (chat.reminderMs)
          await call('inbox_set_reminder', { ...target, at: toIso(chat.reminderMs) }, staff)
        break
      case '#':
        await call('inbox_add_note', { ...target, text }, staff)
        break
      case '!':
        if (steps[i - 1]!.line[0] === '>') await call('inbox_mark_read', target, staff)
        await call('inbox_close_conversation', { ...target, reason: text }, staff)
        break
      case '@': {
        const template = { name: text, language: 'en_US', body: [writer.name ?? 'there'] }
        await call(
          'messaging_send_template',
          { contact_id: contactId, channel_id: channel.id, template },
          staff,
        )
        await report(atMs, undefined, undefined)
        break
      }
      default: {
        const file = url && { type: 'DOCUMENT', media_url: url, file_name: 'invoice.pdf', caption: text }
        const external = chat.externalId === undefined ? {} : { external_id: chat.externalId }
        await call('messaging_send_reply', { ...target, ...(file ?? { text }), ...external }, staff)
        const answer = steps.slice(i + 1).find((later) => later.line[0] === '>')
        await report(atMs, answer?.atMs, emoji)
      }
    }
  }
  return writer
}

/** Plays the conversations of the demo. Returns who wrote on which number, and when last. */
export const playStory = async (caller: Caller, story: DemoStory): Promise<Writer[]> => {
  const random = createRandom(20_261_001)
  const { closed, open } = planChats(random, story)
  const writers: Writer[] = []
  const play = async (chat: Chat): Promise<void> => {
    writers.push(await playChat(caller, random, chat, story.nowMs))
  }
  for (const chat of closed) await play(chat)
  await setNextIds(caller.tx, { conversations: FIRST_OPEN_ID })
  for (const [i, chat] of open.entries()) {
    if (i === NAMED.at) await setNextIds(caller.tx, { messages: NAMED.firstMessageId })
    await play(chat)
  }
  return writers
}
