import type { Logger } from 'pino'
import { createLogger } from '../logger.ts'
import { createMetrics, type Metrics } from '../metrics.ts'

/** What is sent over OTLP. */
export type TelemetrySignals = { traces: boolean; metrics: boolean }

/** What a process says of itself: its log, its metrics and, where an endpoint is set, traces. */
export type Telemetry = {
  log: Logger
  metrics: Metrics
  /** Sends what is left to the endpoint, for two seconds at most. Never rejects. */
  stop: () => Promise<void>
}

type Env = Record<string, string | undefined>

/** Whether a signal has an endpoint, and was not turned off. */
const isSent = (env: Env, signal: 'TRACES' | 'METRICS'): boolean =>
  Boolean(env['OTEL_EXPORTER_OTLP_ENDPOINT'] || env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]) &&
  env[`OTEL_${signal}_EXPORTER`] !== 'none'

/** Reads from the variables of OpenTelemetry what is to be sent; undefined: nothing. */
const readSignals = (env: Env): TelemetrySignals | undefined => {
  const signals = { traces: isSent(env, 'TRACES'), metrics: isSent(env, 'METRICS') }
  const isOff = env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true'
  return isOff || (!signals.traces && !signals.metrics) ? undefined : signals
}

/** Creates the log and the metrics of a process. OpenTelemetry is loaded only where an endpoint is set. */
export const openTelemetry = async (env: Env, logLevel: string): Promise<Telemetry> => {
  const metrics = createMetrics()
  const signals = readSignals(env)
  if (!signals) return { log: createLogger(logLevel), metrics, stop: async () => {} }
  const { startOpenTelemetry } = await import('./start.ts')
  return startOpenTelemetry(signals, metrics, logLevel)
}
