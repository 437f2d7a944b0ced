import {
  type BroadcastStatus,
  type DemoBroadcast,
  findOrInsertBroadcast,
  type NewDemoRecipient,
} from '../../storage/demo/demo.ts'
import type { Db } from '../../storage/database.ts'
import { type Random, randomInt } from './random.ts'
import { addBroadcastReply, type ConversationOutline } from './outlines.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso } from './time.ts'

/**
 * `atMs`: when it began or will begin, relative to now. `share`: the share of contacts who receive it.
 * `reached`: the share of recipients to whom it was sent so far.
 */
type BroadcastPlan = {
  name: string
  template: string
  status: BroadcastStatus
  atMs: number
  share: number
  reached: number
}

const plans: readonly BroadcastPlan[] = [
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

/** A broadcast, and which of the contacts to create are its recipients. */
export type DemoSending = Pick<BroadcastPlan, 'share' | 'reached'> & { id: string; startedMs: number | null }

/** Returns the broadcasts of a workspace, created where they do not exist. */
export const prepareBroadcasts = async (
  db: Db,
  workspaceId: string,
  channelId: string | null,
  now: string,
): Promise<DemoSending[]> => {
  const sendings: DemoSending[] = []
  for (const { name, template, status, atMs, share, reached } of plans) {
    const at = toIso(Date.parse(now) + atMs)
    const broadcast: DemoBroadcast = {
      name,
      status,
      template_name: template,
      channel_id: channelId,
      scheduled_at: at,
      started_at: status === 'scheduled' ? null : at,
      created_at: toIso(Math.min(Date.parse(at), Date.parse(now)) - DAY_MS),
    }
    const { id, started_at: started } = await findOrInsertBroadcast(db, workspaceId, broadcast)
    sendings.push({ id, share, reached, startedMs: started === null ? null : Date.parse(started) })
  }
  return sendings
}

const PENDING: Omit<NewDemoRecipient, 'broadcast_id'> = {
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
 * Returns one contact's rows as a recipient of broadcasts. A reply is a message in a conversation, so a
 * contact without a suitable conversation does not reply.
 */
export const createRecipients = (
  random: Random,
  sendings: readonly DemoSending[],
  {
    createdMs,
    nowMs,
    outlines,
  }: { createdMs: number; nowMs: number; outlines: readonly ConversationOutline[] },
): NewDemoRecipient[] =>
  sendings.flatMap(({ id, share, reached, startedMs }): NewDemoRecipient[] => {
    if (random() >= share || createdMs > (startedMs ?? nowMs)) return []
    if (startedMs === null || random() >= reached) return [{ broadcast_id: id, ...PENDING }]
    const later = (ms: number, withinMs: number): number =>
      Math.min(nowMs, ms + Math.floor(random() ** 3 * withinMs))
    const sent = Math.min(nowMs, startedMs + randomInt(random, HOUR_MS))
    const progress = random()
    const row = { broadcast_id: id, ...PENDING, status: 'sent' as const, sent_at: toIso(sent) }
    if (progress < 0.03) return [{ ...row, status: 'failed', failed_at: toIso(later(sent, MINUTE_MS)) }]
    if (progress < 0.1) return [row]
    const delivered = later(sent, 10 * MINUTE_MS)
    if (progress < 0.4) return [{ ...row, status: 'delivered', delivered_at: toIso(delivered) }]
    const read = later(delivered, DAY_MS)
    const readRow = {
      ...row,
      status: 'read' as const,
      delivered_at: toIso(delivered),
      read_at: toIso(read),
      opted_out: random() < 0.02,
    }
    if (random() >= 0.3) return [readRow]
    const responded = later(read, DAY_MS)
    return addBroadcastReply(random, outlines, responded, nowMs)
      ? [{ ...readRow, responded: true, responded_at: toIso(responded) }]
      : [readRow]
  })
