import { setTimeout as pause } from 'node:timers/promises'
import { Gauge } from 'prom-client'
import { type ClaimedDelivery, claimDeliveries, countDue, deleteDeliveriesBefore, MOST_CLAIMED, releaseDeliveries } from '../../storage/webhook-deliveries.ts'
import type { App } from '../app.ts'
import { onEvents } from '../events/signal.ts'
import { attempt, type Attempted } from './send.ts'
import { type Finished, settle } from './settle.ts'

/** Twice as long as an attempt lasts, so that a lease that ran out means a dead process. */
const LEASE_SECONDS = 30
/** Attempts under way to one endpoint, so that one that is slow holds no more of what all share. */
const OF_ENDPOINT = 8
const MOST_UNDER_WAY = 2048
/**
 * Attempts that begin at a time; one that lasts longer than a moment gives its place to the next, so that slow endpoints hold up nobody. A short queue in
 * the process and not at the receivers: what a process that is killed has sent and not written is sent twice.
 */
const AT_ONCE = 32
const A_MOMENT_MS = 50
/** What other servers wrote, and what is due again, is looked for this often. The embedded database has one server, and one session. */
const POLL_MS = { embedded: 500, postgresql: 100 }
/** At least so long from one look to the next, and ten times as long as a look takes. */
const SHORTEST_MS = 4
const SHARE = 10
const DRAIN_MS = 16_000
const SETTLE_TRIES = 10
const SETTLE_PAUSE_MS = 1000
const CLEAN_UP_MS = 60_000

type Worker = {
  app: App
  /** Leased deliveries whose results are not written yet, by id. */
  held: Map<string, ClaimedDelivery>
  ofEndpoint: Map<string, number>
  waiting: ClaimedDelivery[]
  beginning: number
  finished: Finished[]
  settling: Promise<void> | undefined
  stopped: boolean
  wake: () => void
}

const newWorker = (app: App): Worker => ({
  app, held: new Map(), ofEndpoint: new Map(), waiting: [], beginning: 0, finished: [], settling: undefined, stopped: false, wake: () => {},
})

const works = new WeakMap<App, Worker>()

/** Looks for deliveries that are due at once; nothing where no worker runs. */
export const kickDeliveries = (app: App): void => works.get(app)?.wake()

const free = ({ ofEndpoint }: Worker): Map<string, number> => new Map([...ofEndpoint].map(([id, n]) => [id, Math.max(0, OF_ENDPOINT - n)]))

/** Leases what is due and has it sent; answers how many. */
const claim = async (worker: Worker): Promise<number> => {
  if (worker.held.size + MOST_CLAIMED > MOST_UNDER_WAY) return 0
  const claimed = (await claimDeliveries(worker.app.db, LEASE_SECONDS, OF_ENDPOINT, free(worker))).filter(({ id }) => !worker.held.has(id))
  for (const delivery of claimed) {
    worker.held.set(delivery.id, delivery)
    worker.ofEndpoint.set(delivery.endpoint_id, (worker.ofEndpoint.get(delivery.endpoint_id) ?? 0) + 1)
    worker.waiting.push(delivery)
    if (delivery.attempts === 0) worker.app.metrics.deliveryWait.observe(delivery.waited)
  }
  beginWaiting(worker)
  return claimed.length
}

const beginWaiting = (worker: Worker): void => {
  while (worker.beginning < AT_ONCE && worker.waiting.length > 0 && !worker.stopped) begin(worker, worker.waiting.shift()!)
}

const begin = (worker: Worker, delivery: ClaimedDelivery): void => {
  const time = worker.app.metrics.deliveryDuration.startTimer()
  worker.beginning++
  let beginning = true
  const begun = (): void => {
    if (!beginning) return
    beginning = false
    worker.beginning--
    beginWaiting(worker)
  }
  const moment = setTimeout(begun, A_MOMENT_MS)
  void attempt(worker.app, delivery).then((attempted: Attempted) => {
    clearTimeout(moment)
    time()
    worker.finished.push({ delivery, attempted })
    begun()
    settleFinished(worker)
  })
}

/** Tries until the results are written, or until their leases are as good as over; then they are attempted again, and a receiver knows the event by its id. */
const settleSurely = async ({ app }: Worker, batch: readonly Finished[]): Promise<void> => {
  for (let left = SETTLE_TRIES; ; left--) {
    try {
      return await settle(app, batch)
    } catch (error) {
      app.log.error({ deliveries: batch.length, code: (error as { code?: string }).code }, 'results of webhook deliveries could not be written')
      if (left === 1) return
      await pause(SETTLE_PAUSE_MS)
    }
  }
}

/** Writes results as soon as the ones before are written: those that come meanwhile share the next statement. */
const settleFinished = (worker: Worker): void => {
  if (worker.settling || worker.finished.length === 0) return
  const batch = worker.finished.splice(0, MOST_CLAIMED)
  worker.settling = settleSurely(worker, batch).then(() => {
    for (const { delivery: { id, endpoint_id: endpoint } } of batch) {
      worker.held.delete(id)
      const left = worker.ofEndpoint.get(endpoint)! - 1
      if (left > 0) worker.ofEndpoint.set(endpoint, left)
      else worker.ofEndpoint.delete(endpoint)
    }
    worker.settling = undefined
    settleFinished(worker)
    worker.wake()
  })
}

/** Waits until nothing is under way, or until the time is over. */
const idle = async (worker: Worker, ms: number): Promise<void> => {
  const until = performance.now() + ms
  while (worker.held.size > worker.waiting.length && performance.now() < until) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, until - performance.now()))
      worker.wake = () => { clearTimeout(timer); resolve() }
    })
  }
}

/** Makes deliveries that are due, until none is or `most` were made, and answers how many: what a worker does, once. For tests. */
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
const doze = (worker: Worker, least: number, most: number): Promise<void> => new Promise((resolve) => {
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
    worker.wake = () => { woken = true }
    try {
      await claim(worker)
    } catch (error) {
      app.log.warn({ code: (error as { code?: string }).code }, 'webhook deliveries could not be looked for; it is tried again')
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
    name: 'wcrm_webhook_due', help: 'Webhook deliveries of active endpoints whose time has come, at most 100000.', registers: [app.metrics.registry],
    async collect() { this.set(await countDue(app.db, 100_000).catch(() => Number.NaN)) },
  })
}

/** Forgets deliveries that are over after their time, some at a time. */
export const dropOldDeliveries = async (app: App): Promise<void> => {
  const before = new Date(Date.parse(app.now()) - app.config.webhookRetentionDays * 86_400_000).toISOString()
  while (await deleteDeliveriesBefore(app.db, before) > 0 && !works.get(app)?.stopped);
}

/** Delivers until stopped. What is under way when it is stopped is ended and written; what has not begun is given back to other servers. */
export const startWebhookWorker = (app: App): (() => Promise<void>) => {
  const worker = newWorker(app)
  works.set(app, worker)
  watchBacklog(app)
  const off = onEvents(app, () => worker.wake())
  let cleaning: Promise<void> | undefined
  const cleanUp = setInterval(() => {
    cleaning ??= dropOldDeliveries(app).catch((error: unknown) => { app.log.warn({ code: (error as { code?: string }).code }, 'old webhook deliveries could not be removed') }).finally(() => { cleaning = undefined })
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
