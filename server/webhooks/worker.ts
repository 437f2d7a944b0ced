import { Gauge } from 'prom-client'
import {
  countDue,
  deleteDeliveriesBefore,
  releaseDeliveries,
  skipDeliveriesOfDeleted,
} from '../../storage/webhook-deliveries.ts'
import type { App } from '../app.ts'
import { onEvents } from '../events/signal.ts'
import { claim, idle, LEASE_SECONDS, newWorker, type Worker } from './delivery-queue.ts'

/**
 * What other servers wrote, and what is due again, is looked for this often. The embedded database has one
 * server, and one session.
 */
const POLL_MS = { embedded: 500, postgresql: 100 }
/** At least so long from one look to the next, and ten times as long as a look takes. */
const SHORTEST_MS = 8
const SHARE = 10
const DRAIN_MS = 16_000
const CLEAN_UP_MS = 60_000

const works = new WeakMap<App, Worker>()

/**
 * Makes deliveries that are due, until none is or `most` were made, and answers how many: what a worker
 * does, once. For tests.
 */
export const deliverDue = async (app: App, most = 10_000): Promise<number> => {
  const worker = newWorker(app)
  let made = 0
  for (let claimed = 1; claimed > 0 && made < most; made += claimed) {
    claimed = await claim(worker)
    await idle(worker, 2 * LEASE_SECONDS * 1000)
  }
  return made
}

/** Sleeps until woken, but not before `least`; at most `most` milliseconds. */
const doze = (worker: Worker, least: number, most: number): Promise<void> =>
  new Promise((resolve) => {
    const begun = performance.now()
    let timer = setTimeout(resolve, most)
    worker.wake = () => {
      worker.wake = () => {}
      clearTimeout(timer)
      timer = setTimeout(resolve, Math.max(0, least - (performance.now() - begun)))
    }
  })

const run = async (worker: Worker): Promise<void> => {
  const { app } = worker
  const poll = app.embedded ? POLL_MS.embedded : POLL_MS.postgresql
  while (!worker.stopped) {
    const begun = performance.now()
    let woken = false
    // A wake-up during the look is for what the look may not have seen.
    worker.wake = () => {
      woken = true
    }
    try {
      await claim(worker)
    } catch (error) {
      app.log.warn(
        { code: (error as { code?: string }).code },
        'webhook deliveries could not be looked for; it is tried again',
      )
    }
    const took = performance.now() - begun
    const rest = doze(worker, Math.max(SHORTEST_MS, took), Math.max(poll, SHARE * took))
    if (woken || worker.stopped) worker.wake()
    await rest
  }
}

const gauges = new WeakSet<App>()

/** The number of deliveries that are due is asked for when metrics are read. */
const watchBacklog = (app: App): void => {
  if (gauges.has(app)) return
  gauges.add(app)
  new Gauge({
    name: 'wcrm_webhook_due',
    help: 'Webhook deliveries of active endpoints whose time has come, at most 100000.',
    registers: [app.metrics.registry],
    async collect() {
      this.set(await countDue(app.db, 100_000).catch(() => Number.NaN))
    },
  })
}

/**
 * Forgets deliveries that are over after their time, some at a time, and drops what nobody is left to take.
 */
export const dropOldDeliveries = async (app: App): Promise<void> => {
  const before = new Date(Date.parse(app.now()) - app.config.webhookRetentionDays * 86_400_000).toISOString()
  await skipDeliveriesOfDeleted(app.db)
  while ((await deleteDeliveriesBefore(app.db, before)) > 0 && !works.get(app)?.stopped);
}

/**
 * Delivers until stopped. What is under way when it is stopped is ended and written; what has not begun is
 * given back to other servers.
 */
export const startWebhookWorker = (app: App): (() => Promise<void>) => {
  const worker = newWorker(app)
  works.set(app, worker)
  watchBacklog(app)
  const off = onEvents(app, () => worker.wake())
  let cleaning: Promise<void> | undefined
  const cleanUp = setInterval(() => {
    cleaning ??= dropOldDeliveries(app)
      .catch((error: unknown) => {
        app.log.warn(
          { code: (error as { code?: string }).code },
          'old webhook deliveries could not be removed',
        )
      })
      .finally(() => {
        cleaning = undefined
      })
  }, CLEAN_UP_MS)
  cleanUp.unref()
  const running = run(worker)
  return async () => {
    off()
    clearInterval(cleanUp)
    worker.stopped = true
    worker.wake()
    await running
    await cleaning
    await idle(worker, DRAIN_MS)
    await releaseDeliveries(app.db, [...worker.held.values()]).catch(() => {})
    await worker.settling
  }
}
