import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deleteAuditBefore } from '../storage/audit.ts'
import { dropExpiredRecords } from '../storage/idempotency.ts'
import { migrate, openStorage, type Location, type Storage } from '../storage/open.ts'
import { dropIdleBuckets } from '../storage/rate-limits.ts'
import { keepSetting } from '../storage/settings.ts'
import { refreshClock } from './clock.ts'
import type { Service } from './compose.ts'
import type { Config } from './config.ts'
import { dropOldEvents } from './events/retention.ts'
import { stopStreams } from './events/stream.ts'
import { dropOldUpdates, processUpdates, stopUpdates } from './inbound/process.ts'
import { kickMedia, stopMedia } from './media/fetch.ts'
import { nightlyReports } from './reports/generate.ts'
import { reconcile } from './jobs/reconcile.ts'
import { startWebhookWorker } from './webhooks/worker.ts'

/** Where the data of this configuration is. */
export const locationOf = (config: Pick<Config, 'databaseUrl' | 'dataDir'>): Location =>
  config.databaseUrl ? { databaseUrl: config.databaseUrl } : { dataDir: config.dataDir }

/** Opens the storage and brings its schema up to date. Migrations may take longer than any request. */
export const openMigrated = async (config: Config): Promise<Storage> => {
  const storage = await openStorage(locationOf(config), {
    connections: config.databaseConnections,
    prepare: config.databasePrepare === 'on',
  })
  const unhurried = await openStorage(locationOf(config), { attach: true, connections: 1, unhurried: true })
  try {
    await migrate(unhurried.db)
  } finally {
    await unhurried.close()
  }
  return storage
}

/** The configured secret, or the one kept in the data folder, made on the first start. */
export const secretOf = (config: Pick<Config, 'secret' | 'dataDir'>): string => {
  if (config.secret) return config.secret
  const file = join(config.dataDir, 'secret')
  if (!existsSync(file)) {
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
    try {
      writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return readFileSync(file, 'utf8').trim()
}

/** Tells secrets apart without showing them. */
export const fingerprintOf = (secret: string): string =>
  createHash('sha256').update(`wcrm secret ${secret}`).digest('base64url').slice(0, 16)

/**
 * Servers of one database must seal alike; a different secret is found at the start and not at the first
 * broken cursor.
 */
export const requireSameSecret = async (storage: Storage, secret: string): Promise<void> => {
  const fingerprint = fingerprintOf(secret)
  if ((await keepSetting(storage.db, 'secret_fingerprint', fingerprint)) !== fingerprint) {
    throw new Error(
      'this database was set up with another secret. Set WCRM_SECRET to the one that its other servers use (it may be in the file "secret" of their data folder).',
    )
  }
}

/** Repeats work until stopped, never two at a time. A failure is told and tried again. */
const every = (
  ms: number,
  name: string,
  { app }: Service,
  work: () => Promise<unknown>,
): (() => Promise<void>) => {
  let running: Promise<void> | undefined
  const run = async (): Promise<void> => {
    try {
      await work()
    } catch (error) {
      app.log.warn(
        { work: name, code: (error as { code?: string }).code },
        'background work failed; it is tried again',
      )
    }
  }
  const timer = setInterval(() => {
    running ??= run().finally(() => {
      running = undefined
    })
  }, ms)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

/**
 * Work that nobody asks for. Calls to the provider whose process died are finished, what the provider told
 * is taken in, files are fetched, webhooks are delivered, old answers go; with the sandbox, its clock and
 * its numbers are kept up with. Answers the way to stop it.
 */
export const startChores = async (service: Service): Promise<() => Promise<void>> => {
  const { app, driver, sandbox } = service
  if (sandbox) {
    await refreshClock(app)
    await driver.keepUp()
  }
  const stopSandbox = sandbox?.start()
  const stopWebhooks = startWebhookWorker(app)
  const stops = [
    every(1_000, 'clock', service, async () => {
      if (await driver.isSandbox()) await refreshClock(app)
    }),
    every(5_000, 'reconcile', service, () => reconcile(app)),
    every(5_000, 'updates', service, () => processUpdates(app)),
    every(5_000, 'media', service, async () => kickMedia(app)),
    every(5_000, 'sandbox numbers', service, async () => {
      if (await driver.isSandbox()) await driver.keepUp()
    }),
    every(60_000, 'staff reports', service, nightlyReports(app)),
    every(30_000, 'clean up', service, async () => {
      await dropExpiredRecords(app.db, app.now())
      await dropIdleBuckets(app.db)
      await dropOldUpdates(app)
      await dropOldEvents(app)
      await deleteAuditBefore(
        app.db,
        new Date(Date.parse(app.now()) - app.config.auditRetentionDays * 86_400_000).toISOString(),
      )
    }),
  ]
  return async () => {
    await stopStreams(app)
    const stoppedWebhooks = stopWebhooks()
    await stopSandbox?.()
    await Promise.all(stops.map((stop) => stop()))
    await stopUpdates(app)
    await stopMedia(app)
    await stoppedWebhooks
  }
}
