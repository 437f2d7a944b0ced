import { randomUUID } from 'node:crypto'
import { getNumberFromEnv, setGlobalErrorHandler } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import { waitAtMost } from '../../storage/client/wait-at-most.ts'
import { createLogger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import { version } from '../version.ts'
import type { Telemetry, TelemetrySignals } from './open.ts'
import { createPrometheusProducer } from './prometheus-producer.ts'
import { traceChannels } from './spans.ts'

/** What a collector that does not answer may delay the end of the process by. */
const STOP_TIMEOUT_MS = 2000
/** Long enough to write the last lines of the log. */
const EXIT_AFTER_MS = 500
/** A collector that is down fails every export: it is logged once per interval. */
const LOG_INTERVAL_MS = 60_000

/** How often metrics are sent, unless `OTEL_METRIC_EXPORT_INTERVAL` says otherwise, and how long that may take. */
const EXPORT_INTERVAL_MS = 60_000
const EXPORT_TIMEOUT_MS = 10_000

const SCOPE = { name: 'wcrm', version }

/** What the operator says in `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` wins. */
const describeProcess = (): Resource =>
  defaultResource()
    .merge(
      resourceFromAttributes({
        'service.name': 'wcrm',
        'service.version': version,
        'service.instance.id': randomUUID(),
      }),
    )
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }))

/**
 * Sends traces and metrics to the collector that OpenTelemetry's variables name; its packages read them. What the
 * collector does not take is dropped. Lines of the log have the ids of the trace that they belong to.
 */
export const startOpenTelemetry = (
  signals: TelemetrySignals,
  metrics: Metrics,
  logLevel: string,
): Telemetry => {
  const resource = describeProcess()
  const tracers = signals.traces ? createTracers(resource) : undefined
  const meters = signals.metrics ? createMeters(metrics, resource) : undefined
  const tracing = tracers && traceChannels(tracers.getTracer(SCOPE.name, SCOPE.version))
  const log = createLogger(logLevel, { mixin: () => tracing?.ids() ?? {} })
  setGlobalErrorHandler(createErrorHandler(log))
  return {
    log,
    metrics,
    stop: async () => {
      tracing?.stop()
      const stopped = Promise.allSettled([tracers?.shutdown(), meters?.shutdown()])
      // Requests that wait for the collector, and their timers, must not keep the process.
      if (!(await waitAtMost(STOP_TIMEOUT_MS, stopped)))
        setTimeout(() => process.exit(), EXIT_AFTER_MS).unref()
    },
  }
}

/** By what `OTEL_TRACES_SAMPLER` names; all traces, unless a caller said otherwise of his own. */
const createSampler = (): Sampler => {
  const { OTEL_TRACES_SAMPLER: name = '', OTEL_TRACES_SAMPLER_ARG: ratio = '1' } = process.env
  const root = name.endsWith('always_off')
    ? new AlwaysOffSampler()
    : name.endsWith('traceidratio')
      ? new TraceIdRatioBasedSampler(Number(ratio))
      : new AlwaysOnSampler()
  return name === '' || name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

const createTracers = (resource: Resource): TracerProvider => {
  const delay = getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY')
  const processor = new BatchSpanProcessor({
    exporter: new OTLPTraceExporter(),
    ...(delay === undefined ? {} : { scheduledDelayMillis: delay }),
  })
  return new TracerProvider({ resource, sampler: createSampler(), spanProcessors: [processor] })
}

const createMeters = ({ registry }: Metrics, resource: Resource): MeterProvider => {
  const interval = getNumberFromEnv('OTEL_METRIC_EXPORT_INTERVAL') ?? EXPORT_INTERVAL_MS
  return new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter(),
        exportIntervalMillis: interval,
        exportTimeoutMillis: Math.min(interval, EXPORT_TIMEOUT_MS),
        metricProducers: [createPrometheusProducer(registry, resource, SCOPE)],
      }),
    ],
  })
}

const createErrorHandler = (log: Logger) => {
  let loggedAt = -Infinity
  return (error: unknown): void => {
    if (performance.now() - loggedAt < LOG_INTERVAL_MS) return
    loggedAt = performance.now()
    const { code, message } = error as { code?: unknown; message?: string }
    log.warn({ code, reason: message }, 'Traces or metrics could not be sent; they are dropped')
  }
}
