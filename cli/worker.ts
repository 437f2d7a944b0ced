import { Command } from 'commander'
import { createApp } from '../server/create-app.ts'
import { type Config, listIgnoredVariables, readConfig } from '../server/config.ts'
import { serverClockJob } from '../server/work/clock-guard.ts'
import { registerQueueGauges } from '../server/work/queue-metrics.ts'
import { compareClocks } from '../server/real-time.ts'
import { secretRotationJob } from '../server/jobs/reseal.ts'
import { createSecretRing, loadSecrets, requireKnownSecret } from '../server/secret.ts'
import { openTelemetry } from '../server/telemetry/open.ts'
import { openMigrated, waitUntilStopped } from '../server/start.ts'
import { webhookDeliveriesJob, webhookDeliveryRetentionJob } from '../server/domains/webhooks/delivery-job.ts'
import type { Io } from './io.ts'
import { serveMetricsPort } from './listeners.ts'
import { parseFlags, runService, waitForStopSignal } from './service.ts'

type WorkerFlags = { data?: string; databaseUrl?: string; json?: boolean; migrate: boolean }

/** The command with its flags, also for its manual page. */
export const createCommand = (): Command =>
  new Command('wcrm worker')
    .description(
      'Deliver webhooks in addition to the servers of a PostgreSQL database. It listens on no port, unless ' +
        'WCRM_METRICS_LISTEN names an address or a port for /metrics, /healthz and /readyz.',
    )
    .option('--database-url <url>', 'PostgreSQL 15 or newer (also WCRM_DATABASE_URL)')
    .option('--data <dir>', 'folder of the secret, if WCRM_SECRET is not set (default .wcrm)')
    .option('--no-migrate', 'refuse a database with an older schema instead of migrating it')
    .option('--json', 'print one JSON line on stdout when ready; logs go to stderr')

/** `wcrm worker`: returns 0 after SIGTERM or SIGINT, when the attempts in flight are recorded. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const read = async () => {
    const flags = await parseFlags<WorkerFlags>(createCommand(), argv, io)
    const config = readConfig(
      {
        databaseUrl: flags.databaseUrl,
        dataDir: flags.data,
        migrate: flags.migrate ? undefined : 'false',
      },
      io.env,
    )
    if (config.databaseUrl === undefined)
      throw new Error(
        'needs PostgreSQL: give --database-url. On the embedded database, wcrm serve delivers by itself.',
      )
    return { config, json: flags.json === true }
  }
  return await runService('wcrm worker', io, read, (config, json) => runWorker(config, json, io))
}

const runWorker = async (config: Config, json: boolean, io: Io): Promise<number> => {
  const { log, metrics, stop: stopTelemetry } = await openTelemetry(io.env, config.logLevel)
  for (const name of listIgnoredVariables(io.env))
    log.warn({ name }, 'A variable that is not a setting is ignored')
  const storage = await openMigrated(config, (message) => log.warn(message))
  try {
    const secrets = createSecretRing(loadSecrets(config))
    await requireKnownSecret(storage, secrets)
    const app = createApp({
      storage,
      secrets,
      log,
      metrics,
      config: { ...config, publicUrl: config.publicUrl ?? '' },
    })
    app.jobs.add(webhookDeliveriesJob(app))
    app.jobs.add(webhookDeliveryRetentionJob(app))
    app.jobs.add(secretRotationJob(app))
    app.jobs.add(serverClockJob(app))
    registerQueueGauges(app)
    const metricsPort = await serveMetricsPort(config, app)
    await compareClocks(app)
    app.jobs.start()
    // Nothing listens, and the timers of jobs keep no process alive.
    const keepAlive = setInterval(() => {}, 60_000)
    const signal = waitForStopSignal()
    io.stdout.write(
      json
        ? `${JSON.stringify({ ready: true, metrics_url: metricsPort?.url })}\n`
        : 'wcrm worker is ready.\n',
    )
    log.info({ signal: await signal }, 'stopping')
    app.isStopping = true
    clearInterval(keepAlive)
    await waitUntilStopped(app, app.jobs.stop())
    await metricsPort?.listener.drain()
    return 0
  } finally {
    await storage.close()
    await stopTelemetry()
    log.flush()
  }
}
