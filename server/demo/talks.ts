import type { NewTalk } from '../../storage/demo-talks.ts'
import { pick, type Random, whole } from './random.ts'
import { echoes, languageOf, type Story, stories } from './stories.ts'
import { type Beginning, type Channel, type Policy, type Step, talkOf } from './talk.ts'

/** Who may answer on which channels; null: all. */
type Colleague = { id: string; channelIds: readonly string[] | null }

export type TalkSetting = {
  seed: number
  nowMs: number
  channels: readonly Channel[]
  staff: readonly Colleague[]
  teamIds: readonly string[]
  tagIds: readonly string[]
  policy: Policy | null
  /** How many conversations the nth person has. */
  conversations: (n: number) => number
  /**
   * Where the nth person's last conversation stands among those of the last days; with it people talk at
   * length. Else few words are made, for many.
   */
  recent?: ((n: number) => Recent | undefined) | undefined
}

/**
 * `day`: how many days ago; 0: these minutes. `slot`: the first and second of a day are still open for some
 * days, the others closed.
 */
export type Recent = { day: number; slot: number }

export type Talker = { n: number; name: string | null; prefix: string; createdMs: number }

/** A conversation to be: what happens may still be added to it. */
export type Outline = Beginning & { steps: Step[] }

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const iso = (ms: number): string => new Date(ms).toISOString()

const files: Readonly<Record<string, { type: string; extension: string; size: number }>> = {
  image: { type: 'image/jpeg', extension: 'jpg', size: 184_320 },
  document: { type: 'application/pdf', extension: 'pdf', size: 61_440 },
  audio: { type: 'audio/ogg', extension: 'ogg', size: 22_528 },
}

/** What a line of a story says, as a message. */
const contentOf = (line: string, person: Talker, mark: string) => {
  const [, kind, written] = /^. (?:\[(\w+)\] ?)?(.*)$/su.exec(line)!
  const text =
    written!
      .replaceAll('{name}', person.name ?? '')
      .replaceAll('{order}', String(10_000 + ((person.n * 7) % 80_000)))
      .replaceAll(/ (?=[,.!？])|^[,，]\s*/gu, '') || null
  const provider = { provider_id: `wamid.${Buffer.from(mark).toString('base64')}` }
  if (kind === undefined) return { type: 'TEXT', text, ...provider }
  if (kind === 'location')
    return {
      type: 'LOCATION',
      text: 'Europaplatz 1',
      content: { location: { latitude: 52.5251, longitude: 13.3694, address: 'Europaplatz 1' } },
      ...provider,
    }
  const file = files[kind]!
  return {
    type: kind.toUpperCase(),
    text,
    ...provider,
    media: {
      content_type: file.type,
      file_name: kind === 'document' ? 'invoice.pdf' : null,
      size: file.size,
      url: `https://www.example.com/media/${person.n}.${file.extension}`,
    },
  }
}

/** How far a message to the customer came; it was read for sure when an answer came. */
const progress = (random: Random, atMs: number, answeredMs: number | null, nowMs: number) => {
  const far = answeredMs === null ? random() : 1
  const none = { delivered_at: null, read_at: null, failed_at: null }
  const deliveredMs = Math.min(nowMs, answeredMs ?? nowMs, atMs + 1000 + whole(random, 20_000))
  if (far < 0.02)
    return {
      ...none,
      status: 'failed' as const,
      failed_at: iso(deliveredMs),
      error: 'Message undeliverable',
      error_code: 131026,
    }
  if (far < 0.08) return { ...none, status: 'sent' as const }
  if (far < 0.35) return { ...none, status: 'delivered' as const, delivered_at: iso(deliveredMs) }
  const readMs = Math.min(
    answeredMs ?? nowMs,
    deliveredMs + whole(random, answeredMs === null ? 4 * HOUR_MS : 5 * MINUTE_MS),
  )
  return { ...none, status: 'read' as const, delivered_at: iso(deliveredMs), read_at: iso(readMs) }
}

/** The steps of some lines, the first at this time, with the pauses that people make. */
const stepsOf = (
  random: Random,
  lines: Story,
  {
    person,
    startMs,
    nowMs,
    staffId,
    mark,
    ad,
  }: {
    person: Talker
    startMs: number
    nowMs: number
    staffId: string | null
    mark: string
    ad: boolean
  },
): Step[] => {
  let atMs = startMs
  const timed = lines.map((line, i) => {
    const minutes =
      i === 0
        ? 0
        : line[0] === '<'
          ? 2 + random() ** 2 * 50
          : line[0] === '>' && lines[i - 1]![0] === '!'
            ? 90
            : 1 + random() * 10
    return { line, atMs: (atMs += Math.floor(minutes * MINUTE_MS)), mark: `${mark}.${i}` }
  })
  const last = timed.at(-1)!.atMs
  // What would happen after now happened faster.
  const room = Math.max(0, Math.min(last, nowMs) - startMs)
  for (const step of timed)
    step.atMs =
      last > nowMs ? Math.floor(startMs + ((step.atMs - startMs) * room) / (last - startMs)) : step.atMs
  return timed.map(({ line, atMs: at, mark: own }, i): Step => {
    if (line[0] === '!') return { do: 'close', atMs: at, staffId, reason: line.slice(2) }
    const message = contentOf(line, person, own)
    if (line[0] === '#')
      return { do: 'note', atMs: at, staffId, message: { type: 'TEXT', text: message.text } }
    if (line[0] === '>')
      return {
        do: 'receive',
        atMs: at,
        message:
          ad && i === 0
            ? { ...message, content: { ad: { kind: 'ad', headline: 'Fresh from the roastery' } } }
            : message,
        ad: ad && i === 0,
      }
    const answered = timed.slice(i + 1).find((later) => later.line[0] === '>')?.atMs ?? null
    return {
      do: 'send',
      atMs: at,
      staffId,
      message: { ...message, ...progress(random, at, answered, nowMs) },
    }
  })
}

/**
 * The beginning of a story, which ends with the customer waiting for us, or with us waiting for the
 * customer.
 */
const unfinished = (random: Random, story: Story, waiting: boolean): Story => {
  const ends = story.flatMap((line, i) =>
    line[0] === (waiting ? '>' : '<') &&
    story[i + 1]?.[0] !== line[0] &&
    !story.slice(0, i).some((l) => l[0] === '!')
      ? [i + 1]
      : [],
  )
  return story.slice(
    0,
    ends.length === 0 ? 1 : ends[waiting && random() < 0.6 ? 0 : whole(random, ends.length)],
  )
}

const assignedOf = (random: Random, { staff, teamIds }: TalkSetting, channel: Channel | null) => {
  const able = staff.filter(
    ({ channelIds }) => channelIds === null || (channel !== null && channelIds.includes(channel.id)),
  )
  const share = random()
  const someone = able.length > 0 ? pick(random, able).id : null
  return {
    assigned: {
      staffId: share < 0.6 ? someone : null,
      teamId: share >= 0.6 && share < 0.75 && teamIds.length > 0 ? pick(random, teamIds) : null,
    },
    /** Who answers where nobody in particular is assigned. */
    someone,
  }
}

const NOTICES = 0.6
const notice = { type: 'TEMPLATE', template_name: 'order_update', template_language: 'en_US' }

/** Three days at most, in few words: for contacts by the million. */
const shortTalk = (
  random: Random,
  setting: TalkSetting,
  person: Talker,
  story: Story,
  span: { fromMs: number; open: boolean },
  talk: Omit<Outline, 'steps'>,
  someone: string | null,
): Outline => {
  const { nowMs } = setting
  const { fromMs, open } = span
  const lastMs = Math.floor(Math.min(nowMs, fromMs + random() ** 2 * 3 * DAY_MS))
  const text = (who: string): string =>
    contentOf(story.find((line) => line[0] === who) ?? story[0]!, person, '').text ?? '👍'
  const ask = (atMs: number): Step => ({ do: 'receive', atMs, message: { type: 'TEXT', text: text('>') } })
  const unread = open ? Math.floor(random() ** 3 * 6) : 0
  if (unread > 0) {
    const steps = Array.from({ length: unread }, (_, i) =>
      ask(Math.floor(fromMs + ((lastMs - fromMs) * (i + 1)) / unread)),
    )
    return { ...talk, openedMs: steps[0]!.atMs, assignedMs: steps[0]!.atMs, steps }
  }
  const answer: Step & { do: 'send' } = {
    do: 'send',
    atMs: lastMs,
    staffId: someone,
    message: { type: 'TEXT', text: text('<'), ...progress(random, lastMs, null, nowMs) },
  }
  const closing: Step = {
    do: 'close',
    atMs: Math.min(nowMs, lastMs + 5 * MINUTE_MS),
    staffId: someone,
    reason: null,
  }
  // Most of what a business sends by the million is nobody's answer.
  if (!open && random() < NOTICES)
    return {
      ...talk,
      openedMs: lastMs,
      assignedMs: lastMs,
      openedBy: someone,
      steps: [{ ...answer, message: { ...answer.message, ...notice } }, closing],
    }
  return { ...talk, steps: [ask(fromMs), answer, ...(open ? [] : [closing])] }
}

/** A template a day after the end, when no window is open any more. */
const afterwards = (
  random: Random,
  person: Talker,
  steps: readonly Step[],
  nowMs: number,
  mark: string,
): Step[] => {
  const atMs = steps.at(-1)!.atMs + DAY_MS + whole(random, 4 * HOUR_MS)
  if (atMs > nowMs || random() >= 0.2) return []
  const end = steps.at(-1)!
  return [
    {
      do: 'send',
      atMs,
      staffId: 'staffId' in end ? end.staffId : null,
      message: {
        ...contentOf(`< Hello ${person.name ?? 'there'}, your order is on its way.`, person, mark),
        type: 'TEMPLATE',
        template_name: 'order_update',
        template_language: 'en_US',
        ...progress(random, atMs, null, nowMs),
      },
    },
  ]
}

const DAYS_OPEN = 6

/** One of the last days' conversations, at length. */
const recentTalk = (
  random: Random,
  setting: TalkSetting,
  person: Talker,
  story: Story,
  { day, slot }: Recent,
  mark: string,
): Outline => {
  const { nowMs } = setting
  const connected = setting.channels.filter((c) => c.status === 'connected')
  const ad = day === 2 && slot === 1
  const channel =
    (ad ? connected.find((c) => c.type === 'chatapp') : undefined) ??
    (connected.length > 0 ? pick(random, connected) : null)
  const { assigned, someone } = assignedOf(random, setting, channel)
  const open = slot < 2 && (day < DAYS_OPEN || random() < 0.3)
  const told = open ? unfinished(random, story, slot === 0) : story
  const dayMs = Math.floor(nowMs / DAY_MS) * DAY_MS - day * DAY_MS
  const plannedMs =
    day === 0
      ? nowMs - 4 * HOUR_MS + whole(random, HOUR_MS)
      : dayMs + 9 * HOUR_MS + whole(random, 3 * HOUR_MS)
  const startMs = Math.max(person.createdMs, plannedMs)
  const nobody = open && slot === 0 && day < 4
  const steps = stepsOf(random, told, {
    person,
    startMs,
    nowMs: nowMs - slot * MINUTE_MS,
    staffId: assigned.staffId ?? someone,
    mark,
    ad,
  })
  return {
    channel,
    policy: setting.policy,
    assigned: nobody ? { staffId: null, teamId: null } : assigned,
    assignedMs: startMs,
    openedMs: startMs,
    openedBy: null,
    tagIds: random() < 0.4 && setting.tagIds.length > 0 ? [pick(random, setting.tagIds)] : [],
    reminderMs:
      open && slot === 1 && day % 2 === 0 ? Math.ceil(nowMs / HOUR_MS) * HOUR_MS + (1 + day) * DAY_MS : null,
    steps: open || day < 2 ? steps : [...steps, ...afterwards(random, person, steps, nowMs, `${mark}.t`)],
  }
}

/** What the nth person talked about, the oldest first; only the last conversation may be open. */
export const outlinesOf = (random: Random, setting: TalkSetting, person: Talker): Outline[] => {
  const count = setting.conversations(person.n)
  const own = stories[languageOf(person.prefix)]!
  const { nowMs } = setting
  return Array.from({ length: count }, (_, i): Outline => {
    const story = random() < 0.85 ? pick(random, own) : pick(random, stories['en']!)
    const mark = `${setting.seed}.${person.n}.${i}`
    const recent = i === count - 1 ? setting.recent?.(person.n) : undefined
    if (recent) return recentTalk(random, setting, person, story, recent, mark)
    const fromMs = Math.floor(person.createdMs + ((nowMs - person.createdMs) * (i + random())) / count)
    const channel = setting.channels.length > 0 ? pick(random, setting.channels) : null
    const { assigned, someone } = assignedOf(random, setting, channel)
    const talk = {
      channel,
      policy: setting.policy,
      assigned,
      assignedMs: fromMs,
      openedMs: fromMs,
      openedBy: null,
      tagIds: [],
      reminderMs: null,
    }
    if (!setting.recent)
      return shortTalk(
        random,
        setting,
        person,
        story,
        { fromMs, open: i === count - 1 && random() < 0.3 },
        talk,
        someone,
      )
    const steps = stepsOf(random, story, {
      person,
      startMs: fromMs,
      nowMs,
      staffId: assigned.staffId ?? someone,
      mark,
      ad: false,
    })
    return { ...talk, steps: [...steps, ...afterwards(random, person, steps, nowMs, `${mark}.t`)] }
  })
}

/**
 * A reply to a broadcast, in the latest conversation that was at rest before; false when there is none. A
 * closed one is closed again where time allows.
 */
export const addEcho = (
  random: Random,
  outlines: readonly Outline[],
  atMs: number,
  nowMs: number,
): boolean => {
  const outline = outlines.findLast(({ steps }) => steps.at(-1)!.atMs < atMs)
  if (!outline) return false
  const wasClosed =
    outline.steps.findLast((step) => step.do === 'close' || step.do === 'receive')?.do === 'close'
  const closer = outline.steps.findLast((step) => step.do === 'close')
  outline.steps.push({ do: 'receive', atMs, message: { type: 'TEXT', text: pick(random, echoes) } })
  const answerMs = atMs + 5 * MINUTE_MS
  if (wasClosed && closer?.do === 'close' && answerMs + MINUTE_MS <= nowMs) {
    outline.steps.push(
      {
        do: 'send',
        atMs: answerMs,
        staffId: closer.staffId,
        message: { type: 'TEXT', text: '👍', ...progress(random, answerMs, null, nowMs) },
      },
      { do: 'close', atMs: answerMs + MINUTE_MS, staffId: closer.staffId, reason: null },
    )
  }
  return true
}

export const talksOf = (outlines: readonly Outline[]): NewTalk[] =>
  outlines.map((outline) => talkOf(outline, outline.steps))
