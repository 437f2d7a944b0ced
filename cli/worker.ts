import { Command, CommanderError } from 'commander'
import { pino } from 'pino'
import { createApp } from '../server/app.ts'
import { type Config, readConfig } from '../server/config.ts'
import { createMetrics } from '../server/metrics.ts'
import { openMigrated, requireSameSecret, secretOf } from '../server/start.ts'
import { startWebhookWorker } from '../server/webhooks/worker.ts'
import type { Io } from './io.ts'

type Flags = { data?: string; databaseUrl?: string; json?: boolean }

const command = (io: Io): Command => new Command('wcrm worker')
  .description('Deliver webhooks beside the servers of a PostgreSQL database, which do so too. It listens nowhere.')
  .option('--database-url <url>', 'PostgreSQL 15 or newer (also WCRM_DATABASE_URL)')
  .option('--data <dir>', 'folder of the secret, where WCRM_SECRET is not set (default .wcrm)')
  .option('--json', 'print one JSON line on stdout when ready; logs go to stderr')
  .exitOverride()
  .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })

/** `wcrm worker`: answers 0 after SIGTERM or SIGINT, when the attempts under way are written. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  let flags: Flags
  let config: Config
  try {
    flags = command(io).parse(argv, { from: 'user' }).opts<Flags>()
    config = readConfig({ databaseUrl: flags.databaseUrl, dataDir: flags.data }, io.env)
    if (config.databaseUrl === undefined) throw new Error('needs PostgreSQL: give --database-url. On the embedded database, wcrm serve delivers by itself.')
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    io.stderr.write(`wcrm worker: ${(error as Error).message}\n`)
    return 2
  }
  try {
    return await work(config, flags.json === true, io)
  } catch (error) {
    io.stderr.write(`wcrm worker: ${(error as Error).message}\n`)
    return 1
  }
}

const work = async (config: Config, json: boolean, io: Io): Promise<number> => {
  const log = pino({ level: config.logLevel, base: null }, pino.destination({ fd: 2, sync: false }))
  const storage = await openMigrated(config)
  try {
    const secret = secretOf(config)
    await requireSameSecret(storage, secret)
    const app = createApp({ storage, secret, log, metrics: createMetrics(), config: { ...config, publicUrl: config.publicUrl ?? '' } })
    const stop = startWebhookWorker(app)
    // Nothing listens, so this keeps the process alive.
    const alive = setInterval(() => {}, 60_000)
    const signal = new Promise<string>((resolve) => { for (const one of ['SIGTERM', 'SIGINT'] as const) process.once(one, () => resolve(one)) })
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
