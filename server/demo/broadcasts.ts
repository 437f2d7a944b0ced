import {
  type BroadcastStatus,
  type DemoBroadcast,
  findOrInsertBroadcast,
  type NewRecipient,
} from '../../storage/demo.ts'
import type { Db } from '../../storage/database.ts'
import { type Random, whole } from './random.ts'
import { addEcho, type Outline } from './talks.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/**
 * `atMs`: when it began, or will, from now on. `share` of the contacts receive it, of whom `reached` have
 * been sent to.
 */
type Plan = {
  name: string
  template: string
  status: BroadcastStatus
  atMs: number
  share: number
  reached: number
}

const plans: readonly Plan[] = [
  {
    name: 'Autumn blend is here',
    template: 'autumn_blend',
    status: 'completed',
    atMs: -12 * DAY_MS,
    share: 0.3,
    reached: 1,
  },
  {
    name: 'Opening hours in the holidays',
    template: 'opening_hours',
    status: 'completed',
    atMs: -26 * DAY_MS,
    share: 0.06,
    reached: 1,
  },
  {
    name: 'How was your order?',
    template: 'order_survey',
    status: 'running',
    atMs: -20 * MINUTE_MS,
    share: 0.04,
    reached: 0.6,
  },
  {
    name: 'Gift boxes for the season',
    template: 'gift_boxes',
    status: 'scheduled',
    atMs: 2 * DAY_MS,
    share: 0.05,
    reached: 0,
  },
  {
    name: 'Brewing workshop',
    template: 'workshop_invitation',
    status: 'cancelled',
    atMs: -5 * DAY_MS,
    share: 0.02,
    reached: 0.4,
  },
]

/** A broadcast and who of the people to come are its recipients. */
export type Sending = Pick<Plan, 'share' | 'reached'> & { id: string; startedMs: number | null }

/** The broadcasts of a workspace, made where they are not there yet. */
export const prepareBroadcasts = async (
  db: Db,
  workspaceId: string,
  channelId: string | null,
  now: string,
): Promise<Sending[]> => {
  const sendings: Sending[] = []
  for (const { name, template, status, atMs, share, reached } of plans) {
    const at = new Date(Date.parse(now) + atMs).toISOString()
    const broadcast: DemoBroadcast = {
      name,
      status,
      template_name: template,
      channel_id: channelId,
      scheduled_at: at,
      started_at: status === 'scheduled' ? null : at,
      created_at: new Date(Math.min(Date.parse(at), Date.parse(now)) - DAY_MS).toISOString(),
    }
    const { id, started_at: started } = await findOrInsertBroadcast(db, workspaceId, broadcast)
    sendings.push({ id, share, reached, startedMs: started === null ? null : Date.parse(started) })
  }
  return sendings
}

const iso = (ms: number): string => new Date(ms).toISOString()

const pending: Omit<NewRecipient, 'broadcast_id'> = {
  status: 'pending',
  responded: false,
  opted_out: false,
  sent_at: null,
  delivered_at: null,
  read_at: null,
  failed_at: null,
  responded_at: null,
}

/**
 * What became of the broadcasts that someone receives. A reply is a message in a conversation, and there is
 * none without one to be in.
 */
export const recipientsOf = (
  random: Random,
  sendings: readonly Sending[],
  { createdMs, nowMs, outlines }: { createdMs: number; nowMs: number; outlines: readonly Outline[] },
): NewRecipient[] =>
  sendings.flatMap(({ id, share, reached, startedMs }): NewRecipient[] => {
    if (random() >= share || createdMs > (startedMs ?? nowMs)) return []
    if (startedMs === null || random() >= reached) return [{ broadcast_id: id, ...pending }]
    const next = (ms: number, within: number): number =>
      Math.min(nowMs, ms + Math.floor(random() ** 3 * within))
    const sent = Math.min(nowMs, startedMs + whole(random, HOUR_MS))
    const far = random()
    const row = { broadcast_id: id, ...pending, status: 'sent' as const, sent_at: iso(sent) }
    if (far < 0.03) return [{ ...row, status: 'failed', failed_at: iso(next(sent, MINUTE_MS)) }]
    if (far < 0.1) return [row]
    const delivered = next(sent, 10 * MINUTE_MS)
    if (far < 0.4) return [{ ...row, status: 'delivered', delivered_at: iso(delivered) }]
    const read = next(delivered, DAY_MS)
    const seen = {
      ...row,
      status: 'read' as const,
      delivered_at: iso(delivered),
      read_at: iso(read),
      opted_out: random() < 0.02,
    }
    if (random() >= 0.3) return [seen]
    const responded = next(read, DAY_MS)
    return addEcho(random, outlines, responded, nowMs)
      ? [{ ...seen, responded: true, responded_at: iso(responded) }]
      : [seen]
  })
