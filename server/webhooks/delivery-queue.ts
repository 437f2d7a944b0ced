import { setTimeout as pause } from 'node:timers/promises'
import {
  type ChangedEndpoint,
  type ClaimedDelivery,
  claimDeliveries,
  MOST_CLAIMED,
  releaseDeliveries,
} from '../../storage/webhook-deliveries.ts'
import type { App } from '../app.ts'
import { attempt, type Attempted } from './send.ts'
import { type Finished, settle } from './record-results.ts'

/** Twice as long as an attempt lasts, so that a lease that ran out means a dead process. */
export const LEASE_SECONDS = 30
/** Attempts under way to one endpoint, so that one that is slow holds no more of what all share. */
const OF_ENDPOINT = 8
/**
 * Deliveries that are leased for an endpoint whose last answer was good and quick: the next attempt then
 * waits for no look into the database. With 8, one endpoint took less than 200 a second on a busy machine.
 */
const OF_QUICK = 32
const QUICK_MS = 100
const MOST_QUICK = 10_000
/** What could not begin for so long is given back, while its lease still covers a whole attempt. */
const STALE_MS = 10_000
const MOST_HELD = 2048
/**
 * Attempts that begin, or whose result is not written yet, at a time; one that lasts longer than a moment
 * gives its place to the next, so that slow endpoints hold up nobody. What a process that is killed has
 * sent and not written is sent twice: this bounds it.
 */
const AT_ONCE = 32
const A_MOMENT_MS = 50
const SETTLE_TRIES = 10
const SETTLE_PAUSE_MS = 1000

type Leased = { delivery: ClaimedDelivery; at: number }
/** `held`: deliveries whose results are not written yet, those in the queue among them. */
type Line = { held: number; underWay: number; queue: Leased[] }

/** What one process has in hand. */
export type Worker = {
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

export const newWorker = (app: App): Worker => ({
  app,
  held: new Map(),
  lines: new Map(),
  turns: new Set(),
  quick: new Set(),
  beginning: 0,
  underWay: 0,
  finished: [],
  unwritten: 0,
  settling: undefined,
  stopped: false,
  wake: () => {},
})

/** How many more may be leased for each endpoint that is known here. */
const free = ({ lines, quick }: Worker): Map<string, number> =>
  new Map(
    [...new Set([...quick, ...lines.keys()])].map((id) => [
      id,
      Math.max(0, (quick.has(id) ? OF_QUICK : OF_ENDPOINT) - (lines.get(id)?.held ?? 0)),
    ]),
  )

/** Leases what is due and has it sent; answers how many. */
export const claim = async (worker: Worker): Promise<number> => {
  if (worker.held.size + MOST_CLAIMED > MOST_HELD) return 0
  const claimed = (await claimDeliveries(worker.app.db, LEASE_SECONDS, OF_ENDPOINT, free(worker))).filter(
    ({ id }) => !worker.held.has(id),
  )
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
  void releaseDeliveries(worker.app.db, deliveries)
    .catch(() => {})
    .then(() => {
      for (const delivery of deliveries) letGo(worker, delivery)
    })
}

/**
 * Tries until the results are written, or until their leases are as good as over; then they are attempted
 * again, and a receiver knows the event by its id.
 */
const settleSurely = async (
  { app }: Worker,
  batch: readonly Finished[],
): Promise<readonly ChangedEndpoint[]> => {
  for (let left = SETTLE_TRIES; ; left--) {
    try {
      return await settle(app, batch)
    } catch (error) {
      app.log.error(
        { deliveries: batch.length, code: (error as { code?: string }).code },
        'results of webhook deliveries could not be written',
      )
      if (left === 1) return []
      await pause(SETTLE_PAUSE_MS)
    }
  }
}

/**
 * Writes results as soon as the ones before are written: those that come meanwhile share the next
 * statement.
 */
const settleFinished = (worker: Worker): void => {
  if (worker.settling || worker.finished.length === 0) return
  const batch = worker.finished.splice(0, MOST_CLAIMED)
  worker.settling = settleSurely(worker, batch).then((changed) => {
    // Whoever is paused is sent one at a time from now on.
    for (const { id, status } of changed)
      if (status !== 'active') giveBack(worker, worker.lines.get(id)?.queue.splice(0) ?? [])
    for (const { delivery } of batch) letGo(worker, delivery)
    worker.unwritten -= batch.length
    beginNext(worker)
    worker.settling = undefined
    settleFinished(worker)
    worker.wake()
  })
}

/** Waits until nothing is under way, or until the time is over. */
export const idle = async (worker: Worker, ms: number): Promise<void> => {
  const until = performance.now() + ms
  while (
    (worker.underWay > 0 || worker.settling || (!worker.stopped && worker.held.size > 0)) &&
    performance.now() < until
  ) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, until - performance.now()))
      worker.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
