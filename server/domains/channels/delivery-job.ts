import {
  type ChannelDelivery,
  deleteChannelDelivery,
  findChannelDelivery,
  writeDeliveryError,
} from '../../../storage/channels/deliveries.ts'
import { finishRun, type Run } from '../../../storage/work/runs.ts'
import type { App } from '../../app.ts'
import { createRunJob, type Progress } from '../../work/engine.ts'
import type { JobDefinition } from '../../work/runner.ts'
import { failUnconfirmed, markSent } from '../messaging/message-status.ts'
import { toOutboundId } from './ids.ts'
import { inFlow } from './receive.ts'
import { attemptChannelDelivery, type ChannelAttempt } from './send.ts'

/** Requests in flight to one channel, on all servers together. */
const MAX_PER_CHANNEL = 8
const MAX_IN_FLIGHT = 64

/**
 * Delivers replies on bridged channels to their bridges: the earliest of each conversation, so that they arrive in
 * order. When the job is stopped, requests in flight are finished and recorded.
 */
export const channelDeliveriesJob = (app: App): JobDefinition =>
  createRunJob(app, {
    kind: 'channel_deliveries',
    job: 'channel-deliveries',
    turns: MAX_IN_FLIGHT,
    perQueue: MAX_PER_CHANNEL,
    step: (run) => deliver(app, run),
  })

const deliver = async (app: App, run: Run): Promise<Progress> => {
  const delivery = await findChannelDelivery(app.db, run)
  if (!delivery?.pending) {
    if (delivery) await deleteChannelDelivery(app.db, delivery)
    await finishRun(app.db, run)
    return 'over'
  }
  // The replies of a channel that takes none wait until it does, or until they expire.
  if (delivery.url === null && delivery.expires_in > 0) return { seconds: delivery.expires_in, tries: 0 }
  const attempt = await attemptChannelDelivery(app, { ...delivery, attempts: run.attempts })
  if (attempt.outcome !== 'retry') {
    await recordEnd(app, delivery, attempt)
    return 'over'
  }
  await writeDeliveryError(app.db, delivery, attempt.reason)
  return { seconds: attempt.retryInSeconds, tries: 1 }
}

/**
 * Records how a delivery ended. A success counts also when another process attempts it meanwhile: the bridge
 * recognizes the second one by its id.
 */
const recordEnd = async (
  app: App,
  delivery: ChannelDelivery,
  attempt: Exclude<ChannelAttempt, { outcome: 'retry' }>,
): Promise<void> => {
  const { workspace_id: workspaceId, message_id: id, channel_id: channelId } = delivery
  await inFlow(app, workspaceId, async (flow) => {
    if (attempt.outcome === 'taken') await markSent(flow, { id }, toOutboundId(channelId, id), flow.now)
    else await failUnconfirmed(flow, id, attempt.reason)
    await deleteChannelDelivery(flow.tx, delivery)
  })
}
