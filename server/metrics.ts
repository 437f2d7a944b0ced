import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client'

/** Prometheus metrics: calls by operation, door and code, their duration in seconds, and what the provider sent. */
export type Metrics = {
  registry: Registry
  calls: Counter<'operation' | 'door' | 'code'>
  duration: Histogram<'operation'>
  inbound: Counter<'outcome'>
}

export const createMetrics = (): Metrics => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return {
    registry,
    calls: new Counter({ name: 'wcrm_calls_total', help: 'Calls by operation, door and outcome.', labelNames: ['operation', 'door', 'code'], registers: [registry] }),
    inbound: new Counter({ name: 'wcrm_provider_updates_total', help: 'Updates that the provider sent, by what became of them on arrival.', labelNames: ['outcome'], registers: [registry] }),
    duration: new Histogram({
      name: 'wcrm_call_duration_seconds', help: 'Duration of calls.', labelNames: ['operation'], registers: [registry],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    }),
  }
}
