import {
  type ClaimedChannelDelivery,
  claimChannelDeliveries,
  deleteChannelDelivery,
  findSecondsUntilNextChannelDelivery,
  postponeChannelDelivery,
} from '../../../storage/channels/deliveries.ts'
import type { App } from '../../app.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import { failUnconfirmed, markSent } from '../messaging/message-status.ts'
import { toOutboundId } from './ids.ts'
import { inFlow } from './receive.ts'
import { attemptChannelDelivery, type ChannelAttempt } from './send.ts'

/** Twice as long as an attempt may take, so that an expired lease means a dead process. */
const LEASE_SECONDS = 30
/** Requests in flight to one channel, on all servers together. */
const MAX_PER_CHANNEL = 8
const MAX_IN_FLIGHT = 64
const MIN_DELAY_MS = 50

/** The replies that one process is delivering. */
type InFlight = Set<Promise<void>>

/**
 * Delivers replies on bridged channels to their bridges. A reply is woken by its commit and by the end of
 * the one before it. When the job is stopped, requests in flight are finished and recorded.
 */
export const channelDeliveriesJob = (app: App): JobDefinition => {
  const inFlight: InFlight = new Set()
  return {
    name: 'channel-deliveries',
    intervalMs: getIdleMs(app),
    run: async (signal) => {
      const processed = signal.aborted ? 0 : await startDue(app, inFlight)
      const seconds = await findSecondsUntilNextChannelDelivery(app.db)
      return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
    },
    drain: async () => {
      await Promise.all(inFlight)
    },
  }
}

/** Leases the replies that are due and starts to deliver them. Returns the count. */
const startDue = async (app: App, inFlight: InFlight): Promise<number> => {
  const room = MAX_IN_FLIGHT - inFlight.size
  if (room <= 0) return 0
  const claimed = await claimChannelDeliveries(app.db, LEASE_SECONDS, MAX_PER_CHANNEL, room)
  for (const delivery of claimed) {
    const done: Promise<void> = deliver(app, delivery).finally(() => {
      inFlight.delete(done)
      // There is room for another, and the next one of the conversation may follow.
      app.jobs.job('channel-deliveries').wake()
    })
    inFlight.add(done)
  }
  return claimed.length
}

/** Makes one attempt and records it. Never rejects: what cannot be recorded is tried again after its lease. */
const deliver = async (app: App, delivery: ClaimedChannelDelivery): Promise<void> => {
  try {
    if (!delivery.pending) return void (await deleteChannelDelivery(app.db, delivery))
    await recordAttempt(app, delivery, await attemptChannelDelivery(app, delivery))
  } catch (error) {
    app.log.error(
      { message: delivery.message_id, ...errorLogDetails(error) },
      'Cannot record the delivery of a reply to its channel; it is tried again',
    )
  }
}

/**
 * Records an attempt. A success counts also when another process has leased the reply meanwhile: the bridge
 * recognizes the second one by its id.
 */
const recordAttempt = async (
  app: App,
  delivery: ClaimedChannelDelivery,
  attempt: ChannelAttempt,
): Promise<void> => {
  const { workspace_id: workspaceId, message_id: id, channel_id: channelId } = delivery
  if (attempt.outcome === 'retry')
    return await postponeChannelDelivery(app.db, delivery, attempt.retryInSeconds, attempt.reason)
  await inFlow(app, workspaceId, async (flow) => {
    if (attempt.outcome === 'taken') await markSent(flow, { id }, toOutboundId(channelId, id), flow.now)
    else await failUnconfirmed(flow, id, attempt.reason)
    await deleteChannelDelivery(flow.tx, delivery)
  })
}
