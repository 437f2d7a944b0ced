import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client'

/**
 * Prometheus metrics: calls by operation, door and code, their duration in seconds, calls of the provider and updates
 * from it, calls of the store of files, results of webhook deliveries, and runs of background jobs.
 */
export type Metrics = {
  registry: Registry
  calls: Counter<'operation' | 'door' | 'code'>
  duration: Histogram<'operation'>
  authFailures: Counter<'kind' | 'outcome'>
  inbound: Counter<'outcome'>
  providerCalls: Histogram<'call' | 'outcome'>
  mediaStore: Histogram<'call' | 'outcome'>
  jobRuns: Histogram<'job' | 'outcome'>
  replicaReads: Counter<'outcome'>
  deliveries: Counter<'outcome'>
  deliveryDuration: Histogram
  deliveryWait: Histogram
}

/** A sample every 10 ms, the default, took half of the processor time of an idle server. */
const EVENT_LOOP_SAMPLE_MS = 100

/** `ofProcess`: those of the process too, which are measured as long as it runs. */
export const createMetrics = (ofProcess = true): Metrics => {
  const registry = new Registry()
  if (ofProcess)
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLE_MS })
  return {
    registry,
    calls: new Counter({
      name: 'wcrm_calls_total',
      help: 'Calls by operation, door and outcome.',
      labelNames: ['operation', 'door', 'code'],
      registers: [registry],
    }),
    authFailures: new Counter({
      name: 'wcrm_authentication_failures_total',
      help: 'Credentials that proved nothing, by their kind; throttled ones were not looked up.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    }),
    inbound: new Counter({
      name: 'wcrm_provider_updates_total',
      help: 'Updates that the provider sent, by what became of them on arrival.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    providerCalls: new Histogram({
      name: 'wcrm_provider_call_duration_seconds',
      help: 'Duration of calls of the messaging provider, by what was called: ok, or the code of the problem.',
      labelNames: ['call', 'outcome'],
      registers: [registry],
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    }),
    mediaStore: new Histogram({
      name: 'wcrm_media_store_call_duration_seconds',
      help: 'Duration of calls of the store of received files: ok, refused (the file), unavailable (the store).',
      labelNames: ['call', 'outcome'],
      registers: [registry],
      buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
    }),
    jobRuns: new Histogram({
      name: 'wcrm_job_run_duration_seconds',
      help: 'Duration of runs of background jobs, by how they ended.',
      labelNames: ['job', 'outcome'],
      registers: [registry],
      buckets: [0.01, 0.1, 1, 10, 60],
    }),
    replicaReads: new Counter({
      name: 'wcrm_replica_reads_total',
      help: 'Reads that may go to the replica: those that it was used for, and why others were not.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    deliveries: new Counter({
      name: 'wcrm_webhook_attempts_total',
      help: 'Attempts to deliver webhooks, by what became of the delivery.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    deliveryDuration: new Histogram({
      name: 'wcrm_webhook_attempt_duration_seconds',
      help: 'Duration of attempts to deliver webhooks.',
      registers: [registry],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
    }),
    deliveryWait: new Histogram({
      name: 'wcrm_webhook_first_attempt_delay_seconds',
      help: 'From the event until its first attempt.',
      registers: [registry],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    }),
    duration: new Histogram({
      name: 'wcrm_call_duration_seconds',
      help: 'Duration of calls.',
      labelNames: ['operation'],
      registers: [registry],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    }),
  }
}

type Sample = { value: number; labels: Record<string, string | number>; metricName?: string }

/** The metrics of one process, as JSON. */
export type ProcessMetrics = { name: string; type: string; values: Sample[] }[]

export const readProcessMetrics = async ({ registry }: Metrics): Promise<ProcessMetrics> =>
  // Its types name the numbers of an enum; what it returns has their names.
  (await registry.getMetricsAsJSON()) as unknown as ProcessMetrics
