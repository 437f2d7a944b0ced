import { setTimeout as pause } from 'node:timers/promises'
import { Gauge } from 'prom-client'
import { type ChangedEndpoint, type ClaimedDelivery, claimDeliveries, countDue, deleteDeliveriesBefore, MOST_CLAIMED, releaseDeliveries } from '../../storage/webhook-deliveries.ts'
import type { App } from '../app.ts'
import { onEvents } from '../events/signal.ts'
import { attempt, type Attempted } from './send.ts'
import { type Finished, settle } from './settle.ts'

/** Twice as long as an attempt lasts, so that a lease that ran out means a dead process. */
const LEASE_SECONDS = 30
/** Attempts under way to one endpoint, so that one that is slow holds no more of what all share. */
const OF_ENDPOINT = 8
/**
 * Deliveries that are leased for an endpoint whose last answer was good and quick: the next attempt then waits for no look into the database. With 8, one
 * endpoint took less than 200 a second on a busy machine.
 */
const OF_QUICK = 32
const QUICK_MS = 100
const MOST_QUICK = 10_000
/** What could not begin for so long is given back, while its lease still covers a whole attempt. */
const STALE_MS = 10_000
const MOST_HELD = 2048
/**
 * Attempts that begin, or whose result is not written yet, at a time; one that lasts longer than a moment gives its place to the next, so that slow
 * endpoints hold up nobody. What a process that is killed has sent and not written is sent twice: this bounds it.
 */
const AT_ONCE = 32
const A_MOMENT_MS = 50
/** What other servers wrote, and what is due again, is looked for this often. The embedded database has one server, and one session. */
const POLL_MS = { embedded: 500, postgresql: 100 }
/** At least so long from one look to the next, and ten times as long as a look takes. */
const SHORTEST_MS = 8
const SHARE = 10
const DRAIN_MS = 16_000
const SETTLE_TRIES = 10
const SETTLE_PAUSE_MS = 1000
const CLEAN_UP_MS = 60_000

type Leased = { delivery: ClaimedDelivery; at: number }
/** `held`: deliveries whose results are not written yet, those in the queue among them. */
type Line = { held: number; underWay: number; queue: Leased[] }

type Worker = {
  app: App
  /** Leased deliveries whose results are not written yet, by id. */
  held: Map<string, ClaimedDelivery>
  lines: Map<string, Line>
  /** Endpoints that have something to begin with, each once, in turn. */
  turns: Set<string>
  quick: Set<string>
  beginning: number
  underWay: number
  finished: Finished[]
  /** Results that are not written yet. */
  unwritten: number
  settling: Promise<void> | undefined
  stopped: boolean
  wake: () => void
}

const newWorker = (app: App): Worker => ({
  app, held: new Map(), lines: new Map(), turns: new Set(), quick: new Set(), beginning: 0, underWay: 0, finished: [], unwritten: 0, settling: undefined, stopped: false, wake: () => {},
})

const works = new WeakMap<App, Worker>()

/** Looks for deliveries that are due at once; nothing where no worker runs. */
export const kickDeliveries = (app: App): void => works.get(app)?.wake()

/** How many more may be leased for each endpoint that is known here. */
const free = ({ lines, quick }: Worker): Map<string, number> =>
  new Map([...new Set([...quick, ...lines.keys()])].map((id) => [id, Math.max(0, (quick.has(id) ? OF_QUICK : OF_ENDPOINT) - (lines.get(id)?.held ?? 0))]))

/** Leases what is due and has it sent; answers how many. */
const claim = async (worker: Worker): Promise<number> => {
  if (worker.held.size + MOST_CLAIMED > MOST_HELD) return 0
  const claimed = (await claimDeliveries(worker.app.db, LEASE_SECONDS, OF_ENDPOINT, free(worker))).filter(({ id }) => !worker.held.has(id))
  const at = performance.now()
  for (const delivery of claimed) {
    const { id, endpoint_id: endpoint, attempts, waited } = delivery
    const line = worker.lines.get(endpoint) ?? { held: 0, underWay: 0, queue: [] }
    worker.lines.set(endpoint, line)
    worker.held.set(id, delivery)
    line.held++
    line.queue.push({ delivery, at })
    takeTurn(worker, endpoint, line)
    if (attempts === 0) worker.app.metrics.deliveryWait.observe(waited)
  }
  beginNext(worker)
  return claimed.length
}

const takeTurn = (worker: Worker, endpoint: string, line: Line): void => {
  if (line.queue.length > 0 && line.underWay < OF_ENDPOINT) worker.turns.add(endpoint)
}

const beginNext = (worker: Worker): void => {
  while (worker.beginning + worker.unwritten < AT_ONCE && worker.turns.size > 0 && !worker.stopped) {
    const [endpoint] = worker.turns
    worker.turns.delete(endpoint!)
    const line = worker.lines.get(endpoint!)
    const next = line?.queue.shift()
    if (!line || !next) continue
    if (performance.now() - next.at > STALE_MS) giveBack(worker, [next, ...line.queue.splice(0)])
    else begin(worker, line, next.delivery)
    takeTurn(worker, endpoint!, line)
  }
}

const begin = (worker: Worker, line: Line, delivery: ClaimedDelivery): void => {
  const endpoint = delivery.endpoint_id
  worker.beginning++
  worker.underWay++
  line.underWay++
  let beginning = true
  const begun = (): void => {
    if (beginning) worker.beginning--
    beginning = false
    beginNext(worker)
  }
  const moment = setTimeout(begun, A_MOMENT_MS)
  void attempt(worker.app, delivery).then((attempted: Attempted) => {
    clearTimeout(moment)
    const { status, duration_ms: duration } = attempted.result
    worker.app.metrics.deliveryDuration.observe(duration / 1000)
    worker.underWay--
    line.underWay--
    if (worker.quick.size > MOST_QUICK) worker.quick.clear()
    if (status === 'delivered' && duration < QUICK_MS) worker.quick.add(endpoint)
    else worker.quick.delete(endpoint)
    worker.finished.push({ delivery, attempted })
    worker.unwritten++
    takeTurn(worker, endpoint, line)
    begun()
    settleFinished(worker)
  })
}

const letGo = (worker: Worker, { id, endpoint_id: endpoint }: ClaimedDelivery): void => {
  const line = worker.lines.get(endpoint)
  if (!worker.held.delete(id) || !line) return
  if (--line.held === 0) worker.lines.delete(endpoint)
}

/** Gives back what was leased and not sent. */
const giveBack = (worker: Worker, leased: readonly Leased[]): void => {
  if (leased.length === 0) return
  const deliveries = leased.map(({ delivery }) => delivery)
  // Their leases run out if this fails.
  void releaseDeliveries(worker.app.db, deliveries).catch(() => {}).then(() => { for (const delivery of deliveries) letGo(worker, delivery) })
}

/** Tries until the results are written, or until their leases are as good as over; then they are attempted again, and a receiver knows the event by its id. */
const settleSurely = async ({ app }: Worker, batch: readonly Finished[]): Promise<readonly ChangedEndpoint[]> => {
  for (let left = SETTLE_TRIES; ; left--) {
    try {
      return await settle(app, batch)
    } catch (error) {
      app.log.error({ deliveries: batch.length, code: (error as { code?: string }).code }, 'results of webhook deliveries could not be written')
      if (left === 1) return []
      await pause(SETTLE_PAUSE_MS)
    }
  }
}

/** Writes results as soon as the ones before are written: those that come meanwhile share the next statement. */
const settleFinished = (worker: Worker): void => {
  if (worker.settling || worker.finished.length === 0) return
  const batch = worker.finished.splice(0, MOST_CLAIMED)
  worker.settling = settleSurely(worker, batch).then((changed) => {
    // Whoever is paused is sent one at a time from now on.
    for (const { id, status } of changed) if (status !== 'active') giveBack(worker, worker.lines.get(id)?.queue.splice(0) ?? [])
    for (const { delivery } of batch) letGo(worker, delivery)
    worker.unwritten -= batch.length
    beginNext(worker)
    worker.settling = undefined
    settleFinished(worker)
    worker.wake()
  })
}

/** Waits until nothing is under way, or until the time is over. */
const idle = async (worker: Worker, ms: number): Promise<void> => {
  const until = performance.now() + ms
  while ((worker.underWay > 0 || worker.settling || (!worker.stopped && worker.held.size > 0)) && performance.now() < until) {
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
