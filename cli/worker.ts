import { Command } from 'commander'
import { pino } from 'pino'
import { createApp } from '../server/app.ts'
import { type Config, readConfig } from '../server/config.ts'
import { createMetrics } from '../server/metrics.ts'
import { openMigrated, requireSameSecret, secretOf } from '../server/start.ts'
import { startWebhookWorker } from '../server/webhooks/worker.ts'
import type { Io } from './io.ts'
import { runService, untilSignal } from './service.ts'

type Flags = { data?: string; databaseUrl?: string; json?: boolean }

const command = (io: Io): Command =>
  new Command('wcrm worker')
    .description(
      'Deliver webhooks beside the servers of a PostgreSQL database, which do so too. It listens nowhere.',
    )
    .option('--database-url <url>', 'PostgreSQL 15 or newer (also WCRM_DATABASE_URL)')
    .option('--data <dir>', 'folder of the secret, where WCRM_SECRET is not set (default .wcrm)')
    .option('--json', 'print one JSON line on stdout when ready; logs go to stderr')
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })

/** `wcrm worker`: answers 0 after SIGTERM or SIGINT, when the attempts under way are written. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const read = () => {
    const flags = command(io).parse(argv, { from: 'user' }).opts<Flags>()
    const config = readConfig({ databaseUrl: flags.databaseUrl, dataDir: flags.data }, io.env)
    if (config.databaseUrl === undefined)
      throw new Error(
        'needs PostgreSQL: give --database-url. On the embedded database, wcrm serve delivers by itself.',
      )
    return { config, json: flags.json === true }
  }
  return await runService('wcrm worker', io, read, (config, json) => work(config, json, io))
}

const work = async (config: Config, json: boolean, io: Io): Promise<number> => {
  const log = pino({ level: config.logLevel, base: null }, pino.destination({ fd: 2, sync: false }))
  const storage = await openMigrated(config)
  try {
    const secret = secretOf(config)
    await requireSameSecret(storage, secret)
    const app = createApp({
      storage,
      secret,
      log,
      metrics: createMetrics(),
      config: { ...config, publicUrl: config.publicUrl ?? '' },
    })
    const stop = startWebhookWorker(app)
    // Nothing listens, so this keeps the process alive.
    const alive = setInterval(() => {}, 60_000)
    const signal = untilSignal()
    io.stdout.write(json ? `${JSON.stringify({ ready: true })}\n` : 'wcrm worker is ready.\n')
    log.info({ signal: await signal }, 'stopping')
    clearInterval(alive)
    await stop()
    return 0
  } finally {
    await storage.close()
    log.flush()
  }
}
