import type { Worker } from 'node:cluster'
import type { ProcessMetrics } from '../server/metrics.ts'
import type { ToWorker } from '../server/siblings.ts'

/** Metrics of processes that do not answer in time are those of their last answer. */
const GATHER_MS = 1_000

const isCounter = ({ type }: ProcessMetrics[number]): boolean => type === 'counter' || type === 'histogram'

/** Adds counters and histograms to `sum`. */
const addCounters = (sum: ProcessMetrics, metrics: ProcessMetrics): void => {
  for (const metric of metrics.filter(isCounter)) {
    const known = sum.find(({ name }) => name === metric.name)
    if (!known) {
      sum.push({ ...metric, values: metric.values.map((value) => ({ ...value })) })
      continue
    }
    const identify = ({ metricName, labels }: (typeof metric.values)[number]): string =>
      JSON.stringify([metricName, Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))])
    const byId = new Map(known.values.map((value) => [identify(value), value]))
    for (const value of metric.values) {
      const before = byId.get(identify(value))
      if (before) before.value += value.value
      else known.values.push({ ...value })
    }
  }
}

/**
 * Gathers the metrics of all processes for the one that was asked. What counts must never go down, or Prometheus takes
 * it for a restart: the last counters of processes that ended are kept, and those that are late count as in their
 * last answer. Gauges are those of the processes that answer.
 */
export const createMetricsCollector = (
  ready: ReadonlySet<Worker>,
  tell: (worker: Worker, message: ToWorker) => void,
) => {
  const last = new Map<Worker, ProcessMetrics>()
  const ended: ProcessMetrics = []
  const open = new Map<number, { missing: Set<Worker>; finish: () => void }>()
  let lastId = 0
  return {
    /** `metrics` are those of the process that asks; `id` identifies the answer for it. */
    collect: (asker: Worker, id: number, metrics: ProcessMetrics): void => {
      last.set(asker, metrics)
      const others = [...ready].filter((worker) => worker !== asker)
      const missing = new Set(others)
      const gatherId = ++lastId
      const finish = (): void => {
        clearTimeout(timer)
        open.delete(gatherId)
        const found = others.flatMap((worker) => {
          const known = ready.has(worker) ? last.get(worker) : undefined
          return known ? [missing.has(worker) ? known.filter(isCounter) : known] : []
        })
        tell(asker, { kind: 'metrics', id, metrics: [ended, ...found] })
      }
      const timer = setTimeout(finish, GATHER_MS)
      if (others.length === 0) return finish()
      open.set(gatherId, { missing, finish })
      for (const worker of others) tell(worker, { kind: 'gather', id: gatherId })
    },
    receive: (worker: Worker, id: number, metrics: ProcessMetrics): void => {
      // Of one that has ended, what it sent last may arrive after its end.
      if (ready.has(worker)) last.set(worker, metrics)
      const gather = open.get(id)
      if (gather?.missing.delete(worker) && gather.missing.size === 0) gather.finish()
    },
    /** Keeps the counters of a process that ended. */
    keep: (worker: Worker): void => {
      addCounters(ended, last.get(worker) ?? [])
      last.delete(worker)
    },
  }
}
