import {
  findSecondsUntilNextDelivery,
  deleteDeliveriesBefore,
  releaseDeliveries,
  resumeDeliveries,
  skipDeliveries,
} from '../../../storage/webhooks/deliveries.ts'
import { deleteExpiredSecrets } from '../../../storage/webhooks/webhooks.ts'
import type { App } from '../../app.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { daysAgo, maintainPartitions } from '../../work/partitions.ts'
import { createRetentionJob } from '../../work/retention-job.ts'
import { getIdleMs, type JobDefinition } from '../../work/runner.ts'
import { claimDueDeliveries, createDeliveryQueue, waitUntilIdle } from './delivery-queue.ts'

/**
 * How often deliveries are looked for where signals of other servers do not arrive, such as behind a pooler.
 * Doubled with each look that finds nothing.
 */
const UNHEARD_MS = { first: 100, last: 2000 }
/** Minimum pause between claims; a slow claim is followed by a pause of its own duration. */
const MIN_PAUSE_MS = 8
/** Without a wake-up, at most a tenth of the time is spent on claims. */
const MAX_SHARE = 0.1
const DRAIN_MS = 16_000
const RETENTION_INTERVAL_MS = 60_000

/**
 * Delivers webhooks. Woken by changes with events for an endpoint, of every process, and by recorded
 * results, which make room for more; it runs again when the next retry or probe is due.
 * When it is stopped, requests in flight are finished and recorded, and deliveries that were not sent are
 * released for other servers.
 */
export const webhookDeliveriesJob = (app: App): JobDefinition => {
  const queue = createDeliveryQueue(app)
  const idleMs = getIdleMs(app)
  let unheardMs = UNHEARD_MS.first
  /** Milliseconds until something may be due that no signal announces. */
  const findPause = async (processed: number): Promise<number> => {
    const seconds = processed > 0 ? 0 : await findSecondsUntilNextDelivery(app.db, idleMs / 1000)
    unheardMs = processed > 0 ? UNHEARD_MS.first : Math.min(2 * unheardMs, UNHEARD_MS.last)
    return Math.min(seconds * 1000, app.signals.areHeard() ? idleMs : unheardMs)
  }
  return {
    name: 'webhook-deliveries',
    intervalMs: UNHEARD_MS.first,
    subscribe: (wake) => {
      queue.onProgress = wake
      return () => {}
    },
    run: async (signal) => {
      queue.signal = signal
      const startedAt = performance.now()
      const processed = await claimDueDeliveries(queue)
      const tookMs = performance.now() - startedAt
      return {
        processed,
        pauseMs: Math.max(MIN_PAUSE_MS, tookMs),
        nextInMs: Math.max(UNHEARD_MS.first, await findPause(processed), tookMs / MAX_SHARE),
      }
    },
    drain: async () => {
      await waitUntilIdle(queue, DRAIN_MS)
      // Their leases expire if this fails.
      await releaseDeliveries(app.db, [...queue.leased.values()]).catch(() => {})
      await queue.recording
    },
  }
}

/**
 * Makes due what is left of the backlogs of endpoints that were enabled, and deletes secrets that no longer sign. Both
 * go by the clock of the database, so that a wrong clock of this server need not hold them up.
 */
const finishEndpointChanges = async ({ db }: App, signal: AbortSignal): Promise<void> => {
  await changeInBatches((limit) => resumeDeliveries(db, limit), signal)
  await deleteExpiredSecrets(db)
}

/**
 * Deletes finished deliveries after their retention period, and skips those of endpoints that are deleted, or disabled
 * for as long. Returns how many deliveries were deleted.
 */
export const deleteOldDeliveries = async (app: App, signal?: AbortSignal): Promise<number> => {
  const before = daysAgo(app.now(), app.config.webhookRetentionDays)
  await changeInBatches((limit) => skipDeliveries(app.db, before, limit), signal)
  const deleted = await changeInBatches((limit) => deleteDeliveriesBefore(app.db, before, limit), signal)
  await maintainPartitions(app, 'webhook_attempts')
  return deleted
}

export const webhookDeliveryRetentionJob = (app: App): JobDefinition => {
  const deletion = createRetentionJob(
    app,
    'webhook-delivery-retention',
    (signal) => deleteOldDeliveries(app, signal),
    RETENTION_INTERVAL_MS,
  )
  return {
    ...deletion,
    run: async (signal) => {
      await finishEndpointChanges(app, signal)
      return await deletion.run(signal)
    },
  }
}
