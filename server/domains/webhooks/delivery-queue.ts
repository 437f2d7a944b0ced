import { setTimeout as delay } from 'node:timers/promises'
import {
  type ClaimedDelivery,
  claimDeliveries,
  MAX_CLAIMED,
  releaseDeliveries,
} from '../../../storage/webhooks/deliveries.ts'
import type { ChangedEndpoint } from '../../../storage/webhooks/results.ts'
import type { App } from '../../app.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { noteSharedFailure } from '../../kernel/outage.ts'
import { type FinishedAttempt, recordResults } from './record-results.ts'
import { attemptDelivery } from './send.ts'

/** Twice as long as an attempt may take, so that an expired lease means a dead process. */
const LEASE_SECONDS = 30
/** Requests in flight to one endpoint, so that a slow endpoint cannot use up the shared capacity. */
const MAX_IN_FLIGHT_PER_ENDPOINT = 8
/**
 * Deliveries leased for an endpoint whose last response was good and fast: its next attempt then waits for
 * no query. With 8, one endpoint received less than 200 deliveries a second on a busy machine.
 */
const PREFETCH_FAST_ENDPOINT = 32
const FAST_RESPONSE_MS = 100
const MAX_FAST_ENDPOINTS = 10_000
/** A delivery that waited this long to start is released, while its lease still covers a whole attempt. */
const MAX_QUEUED_MS = 10_000
const MAX_LEASED = 2048
/**
 * Attempts that are starting, or whose result is not recorded yet. An attempt that takes longer than
 * `SLOW_START_MS` no longer counts as starting, so that slow endpoints do not delay others. This bounds the
 * number of deliveries that are sent twice because the process was killed before it recorded them.
 */
const MAX_CONCURRENT_STARTS = 32
const SLOW_START_MS = 50
const MAX_RECORD_ATTEMPTS = 10
const RECORD_RETRY_MS = 1000

type QueuedDelivery = { delivery: ClaimedDelivery; queuedAt: number }
/** `leased`: deliveries whose results are not recorded yet, the waiting ones included. */
type EndpointQueue = { leased: number; inFlight: number; waiting: QueuedDelivery[] }

/** The deliveries that one process has leased. */
export type DeliveryQueue = {
  readonly app: App
  /** Leased deliveries whose results are not recorded yet, by id. */
  readonly leased: Map<string, ClaimedDelivery>
  readonly endpoints: Map<string, EndpointQueue>
  /** Ids of endpoints that have an attempt to start, each once, in round-robin order. */
  readonly ready: Set<string>
  readonly fastEndpoints: Set<string>
  readonly finished: FinishedAttempt[]
  starting: number
  inFlight: number
  /** Attempts that ended and whose results are not recorded yet. */
  unrecorded: number
  recording: Promise<void> | undefined
  /** When it is aborted, no other attempt is started. */
  signal: AbortSignal | undefined
  /** Called when results were recorded: there is room for more deliveries. */
  onProgress: () => void
}

export const createDeliveryQueue = (app: App): DeliveryQueue => ({
  app,
  leased: new Map(),
  endpoints: new Map(),
  ready: new Set(),
  fastEndpoints: new Set(),
  finished: [],
  starting: 0,
  inFlight: 0,
  unrecorded: 0,
  recording: undefined,
  signal: undefined,
  onProgress: () => {},
})

/** How many more deliveries may be leased, for each endpoint that is known here. */
const countFreeSlots = ({ endpoints, fastEndpoints }: DeliveryQueue): Map<string, number> =>
  new Map(
    [...new Set([...fastEndpoints, ...endpoints.keys()])].map((id) => {
      const limit = fastEndpoints.has(id) ? PREFETCH_FAST_ENDPOINT : MAX_IN_FLIGHT_PER_ENDPOINT
      return [id, Math.max(0, limit - (endpoints.get(id)?.leased ?? 0))]
    }),
  )

/** Leases deliveries that are due and starts to send them. Returns the count. */
export const claimDueDeliveries = async (queue: DeliveryQueue): Promise<number> => {
  if (queue.leased.size + MAX_CLAIMED > MAX_LEASED) return 0
  const claimed = (
    await claimDeliveries(queue.app.db, LEASE_SECONDS, MAX_IN_FLIGHT_PER_ENDPOINT, countFreeSlots(queue))
  ).filter(({ id }) => !queue.leased.has(id))
  const queuedAt = performance.now()
  for (const delivery of claimed) {
    const { id, endpoint_id: endpointId, attempts, waited } = delivery
    const endpoint = queue.endpoints.get(endpointId) ?? { leased: 0, inFlight: 0, waiting: [] }
    queue.endpoints.set(endpointId, endpoint)
    queue.leased.set(id, delivery)
    endpoint.leased++
    endpoint.waiting.push({ delivery, queuedAt })
    markReady(queue, endpointId, endpoint)
    if (attempts === 0) queue.app.metrics.deliveryWait.observe(waited)
  }
  startNext(queue)
  return claimed.length
}

/** Puts an endpoint at the end of the round-robin order when it may start another attempt. */
const markReady = (queue: DeliveryQueue, endpointId: string, endpoint: EndpointQueue): void => {
  if (endpoint.waiting.length > 0 && endpoint.inFlight < MAX_IN_FLIGHT_PER_ENDPOINT)
    queue.ready.add(endpointId)
}

const startNext = (queue: DeliveryQueue): void => {
  while (queue.starting + queue.unrecorded < MAX_CONCURRENT_STARTS && !queue.signal?.aborted) {
    const [endpointId] = queue.ready
    if (endpointId === undefined) return
    queue.ready.delete(endpointId)
    const endpoint = queue.endpoints.get(endpointId)
    const next = endpoint?.waiting.shift()
    if (!endpoint || !next) continue
    if (performance.now() - next.queuedAt > MAX_QUEUED_MS)
      release(queue, [next, ...endpoint.waiting.splice(0)])
    else startAttempt(queue, endpoint, next.delivery)
    markReady(queue, endpointId, endpoint)
  }
}

const startAttempt = (queue: DeliveryQueue, endpoint: EndpointQueue, delivery: ClaimedDelivery): void => {
  const { endpoint_id: endpointId } = delivery
  queue.starting++
  queue.inFlight++
  endpoint.inFlight++
  let isStarting = true
  const onStarted = (): void => {
    if (isStarting) queue.starting--
    isStarting = false
    startNext(queue)
  }
  const slowStart = setTimeout(onStarted, SLOW_START_MS)
  void attemptDelivery(queue.app, delivery).then((attempt) => {
    clearTimeout(slowStart)
    const { status, duration_ms: durationMs } = attempt.result
    queue.app.metrics.deliveryDuration.observe(durationMs / 1000)
    queue.inFlight--
    endpoint.inFlight--
    if (queue.fastEndpoints.size > MAX_FAST_ENDPOINTS) queue.fastEndpoints.clear()
    if (status === 'delivered' && durationMs < FAST_RESPONSE_MS) queue.fastEndpoints.add(endpointId)
    else queue.fastEndpoints.delete(endpointId)
    queue.finished.push({ delivery, attempt })
    queue.unrecorded++
    markReady(queue, endpointId, endpoint)
    onStarted()
    recordFinished(queue)
  })
}

const forget = (queue: DeliveryQueue, { id, endpoint_id: endpointId }: ClaimedDelivery): void => {
  const endpoint = queue.endpoints.get(endpointId)
  if (!queue.leased.delete(id) || !endpoint) return
  if (--endpoint.leased === 0) queue.endpoints.delete(endpointId)
}

/** Gives up the leases of deliveries that were not sent. */
const release = (queue: DeliveryQueue, queued: readonly QueuedDelivery[]): void => {
  if (queued.length === 0) return
  const deliveries = queued.map(({ delivery }) => delivery)
  // Their leases expire if this fails.
  void releaseDeliveries(queue.app.db, deliveries)
    .catch(() => {})
    .then(() => {
      for (const delivery of deliveries) forget(queue, delivery)
    })
}

/**
 * Retries until the results are recorded, or until their leases have nearly expired; then the deliveries
 * are attempted again, and a receiver recognizes the event by its id.
 */
const recordWithRetry = async (
  { app }: DeliveryQueue,
  batch: readonly FinishedAttempt[],
): Promise<readonly ChangedEndpoint[]> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await recordResults(app, batch)
    } catch (error) {
      if (!(await noteSharedFailure(app, error)))
        app.log.error(
          { deliveries: batch.length, attempt, ...errorLogDetails(error) },
          'Cannot record the results of webhook deliveries; retrying',
        )
      if (attempt === MAX_RECORD_ATTEMPTS) return []
      await delay(RECORD_RETRY_MS)
    }
  }
}

/** Records results batch by batch: results that arrive during one statement share the next. */
const recordFinished = (queue: DeliveryQueue): void => {
  if (queue.recording || queue.finished.length === 0) return
  const batch = queue.finished.splice(0, MAX_CLAIMED)
  queue.recording = recordWithRetry(queue, batch).then((changed) => {
    // A paused endpoint is sent one delivery at a time from now on.
    for (const { id, status } of changed)
      if (status !== 'active') release(queue, queue.endpoints.get(id)?.waiting.splice(0) ?? [])
    for (const { delivery } of batch) forget(queue, delivery)
    queue.unrecorded -= batch.length
    startNext(queue)
    queue.recording = undefined
    recordFinished(queue)
    queue.onProgress()
  })
}

/** Resolves when results were recorded, at the latest after `ms`. */
const waitForProgress = (queue: DeliveryQueue, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    queue.onProgress = () => {
      clearTimeout(timer)
      resolve()
    }
  })

/** Waits until nothing is in flight, at most `ms`. Replaces `onProgress`. */
export const waitUntilIdle = async (queue: DeliveryQueue, ms: number): Promise<void> => {
  const deadline = performance.now() + ms
  while (
    (queue.inFlight > 0 || queue.recording || (!queue.signal?.aborted && queue.leased.size > 0)) &&
    performance.now() < deadline
  )
    await waitForProgress(queue, Math.max(1, deadline - performance.now()))
}
