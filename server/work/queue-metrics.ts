import { Gauge } from 'prom-client'
import { type QueueState, readQueues } from '../../storage/work/queues.ts'
import type { App } from '../app.ts'

const MAX_COUNT = 10_000

/**
 * Adds the queues of background work to the metrics. They are read when the metrics are, and not a number while the
 * database does not answer. To be called once per server or worker.
 */
export const registerQueueGauges = (app: App): void => {
  let read: Promise<QueueState[]> | undefined
  // Both gauges are collected at once, and show the same moment.
  const readOnce = (): Promise<QueueState[]> =>
    (read ??= readQueues(app.db, MAX_COUNT).finally(() => (read = undefined)))
  const register = (name: string, help: string, valueOf: (state: QueueState) => number): void => {
    const names = new Set<string>()
    new Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [app.metrics.registry],
      // Every process counts the same ones.
      aggregator: 'max',
      async collect() {
        const states = await readOnce().catch(() => undefined)
        for (const state of states ?? []) {
          names.add(state.queue)
          this.set({ queue: state.queue }, valueOf(state))
        }
        if (!states) for (const queue of names) this.set({ queue }, Number.NaN)
      },
    })
  }
  register('wcrm_queue_due', `Entries of queues that are due, counted up to ${MAX_COUNT}.`, ({ due }) => due)
  register(
    'wcrm_queue_oldest_seconds',
    'How long the first of them has been due.',
    (state) => state.oldestSeconds,
  )
}
