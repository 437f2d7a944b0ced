import type { ConversationStep } from './conversation.ts'
import { type Random, randomInt } from './random.ts'
import type { Story } from './stories.ts'
import { HOUR_MS, MINUTE_MS, toIso } from './time.ts'

/** `n`: the number of the customer. `prefix`: the leading digits of the phone. */
export type DemoCustomer = { n: number; name: string | null; prefix: string; createdMs: number }

const MEDIA_FILES: Readonly<Record<string, { type: string; extension: string; size: number }>> = {
  image: { type: 'image/jpeg', extension: 'jpg', size: 184_320 },
  document: { type: 'application/pdf', extension: 'pdf', size: 61_440 },
  audio: { type: 'audio/ogg', extension: 'ogg', size: 22_528 },
}

/** Returns the message of a story's line; `key` makes its provider id unique. */
export const parseLine = (line: string, customer: DemoCustomer, key: string) => {
  const [, kind, rawText] = /^. (?:\[(\w+)\] ?)?(.*?)(?: ~\S+)?$/su.exec(line)!
  const text =
    rawText!
      .replaceAll('{name}', customer.name ?? '')
      .replaceAll('{order}', String(10_000 + ((customer.n * 7) % 80_000)))
      .replaceAll(/ (?=[,.!？])|^[,，]\s*/gu, '') || null
  const provider = { provider_id: `wamid.${Buffer.from(key).toString('base64')}` }
  if (kind === undefined) return { type: 'TEXT', text, ...provider }
  if (kind === 'location')
    return {
      type: 'LOCATION',
      text: 'Europaplatz 1',
      content: { location: { latitude: 52.5251, longitude: 13.3694, address: 'Europaplatz 1' } },
      ...provider,
    }
  const file = MEDIA_FILES[kind]!
  return {
    type: kind.toUpperCase(),
    text,
    ...provider,
    media: {
      content_type: file.type,
      file_name: kind === 'document' ? 'invoice.pdf' : null,
      size: file.size,
      url: `https://www.example.com/media/${customer.n}.${file.extension}`,
    },
  }
}

/**
 * Returns a random delivery status of a message sent to the customer, with its times. A message that the
 * customer answered was read.
 */
export const randomDelivery = (random: Random, atMs: number, answeredMs: number | null, nowMs: number) => {
  const share = answeredMs === null ? random() : 1
  const noTimes = { delivered_at: null, read_at: null, failed_at: null }
  const deliveredMs = Math.min(nowMs, answeredMs ?? nowMs, atMs + 1000 + randomInt(random, 20_000))
  if (share < 0.02)
    return {
      ...noTimes,
      status: 'failed' as const,
      failed_at: toIso(deliveredMs),
      error: 'Message undeliverable',
      error_code: 131026,
    }
  if (share < 0.08) return { ...noTimes, status: 'sent' as const }
  if (share < 0.35) return { ...noTimes, status: 'delivered' as const, delivered_at: toIso(deliveredMs) }
  const readMs = Math.min(
    answeredMs ?? nowMs,
    deliveredMs + randomInt(random, answeredMs === null ? 4 * HOUR_MS : 5 * MINUTE_MS),
  )
  return { ...noTimes, status: 'read' as const, delivered_at: toIso(deliveredMs), read_at: toIso(readMs) }
}

/** `key`: unique among all conversations. `ad`: the customer came from an ad. */
type StoryOptions = {
  customer: DemoCustomer
  startMs: number
  nowMs: number
  staffId: string | null
  key: string
  ad: boolean
}

/** Returns the steps of a story's lines, the first one at `startMs`, with the pauses that people make. */
export const createSteps = (
  random: Random,
  lines: Story,
  { customer, startMs, nowMs, staffId, key, ad }: StoryOptions,
): ConversationStep[] => {
  const timed = scheduleLines(random, lines, startMs, nowMs)
  return timed.map(({ line, atMs }, i): ConversationStep => {
    if (line[0] === '!') return { do: 'close', atMs, staffId, reason: line.slice(2) }
    const message = parseLine(line, customer, `${key}.${i}`)
    if (line[0] === '#') return { do: 'note', atMs, staffId, message: { type: 'TEXT', text: message.text } }
    if (line[0] === '>') {
      const fromAd = ad && i === 0
      const content = { ad: { kind: 'ad', headline: 'Fresh from the roastery' } }
      return { do: 'receive', atMs, message: fromAd ? { ...message, content } : message, ad: fromAd }
    }
    const answeredMs = timed.slice(i + 1).find((later) => later.line[0] === '>')?.atMs ?? null
    const delivery = randomDelivery(random, atMs, answeredMs, nowMs)
    const emoji = / ~(\S+)$/u.exec(line)?.[1]
    const { read_at: readAt } = delivery
    const reaction = emoji === undefined || readAt === null ? null : { emoji, at: readAt }
    return { do: 'send', atMs, staffId, message: { ...message, ...delivery, reaction } }
  })
}

/** Gives each line a time. When a story would end after now, its pauses are shortened. */
const scheduleLines = (
  random: Random,
  lines: Story,
  startMs: number,
  nowMs: number,
): { line: string; atMs: number }[] => {
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
    return { line, atMs: (atMs += Math.floor(minutes * MINUTE_MS)) }
  })
  const endMs = timed.at(-1)!.atMs
  if (endMs <= nowMs) return timed
  const availableMs = Math.max(0, nowMs - startMs)
  return timed.map(({ line, atMs: plannedMs }) => ({
    line,
    atMs: Math.floor(startMs + ((plannedMs - startMs) * availableMs) / (endMs - startMs)),
  }))
}

/**
 * Cuts a story so that it ends with the customer waiting for an answer, or else with the staff waiting for
 * the customer.
 */
export const cutStory = (random: Random, story: Story, customerWaits: boolean): Story => {
  const ends = story.flatMap((line, i) =>
    line[0] === (customerWaits ? '>' : '<') &&
    story[i + 1]?.[0] !== line[0] &&
    !story.slice(0, i).some((earlier) => earlier[0] === '!')
      ? [i + 1]
      : [],
  )
  return story.slice(
    0,
    ends.length === 0 ? 1 : ends[customerWaits && random() < 0.6 ? 0 : randomInt(random, ends.length)],
  )
}
