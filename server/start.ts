import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dropExpiredRecords } from '../storage/idempotency.ts'
import { migrate, openStorage, type Location, type Storage } from '../storage/open.ts'
import { dropIdleBuckets } from '../storage/rate-limits.ts'
import { keepSetting } from '../storage/settings.ts'
import type { App } from './app.ts'
import type { Config } from './config.ts'
import { reconcile } from './steps/reconcile.ts'

/** Where the data of this configuration is. */
export const locationOf = (config: Pick<Config, 'databaseUrl' | 'dataDir'>): Location =>
  config.databaseUrl ? { databaseUrl: config.databaseUrl } : { dataDir: config.dataDir }

/** Opens the storage and brings its schema up to date. Migrations may take longer than any request. */
export const openMigrated = async (config: Config): Promise<Storage> => {
  const storage = await openStorage(locationOf(config), { connections: config.databaseConnections, prepare: config.databasePrepare === 'on' })
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
export const fingerprintOf = (secret: string): string => createHash('sha256').update(`wcrm secret ${secret}`).digest('base64url').slice(0, 16)

/** Servers of one database must seal alike; a different secret is found at the start and not at the first broken cursor. */
export const requireSameSecret = async (storage: Storage, secret: string): Promise<void> => {
  const fingerprint = fingerprintOf(secret)
  if ((await keepSetting(storage.db, 'secret_fingerprint', fingerprint)) !== fingerprint) {
    throw new Error('this database was set up with another secret. Set WCRM_SECRET to the one that its other servers use (it may be in the file "secret" of their data folder).')
  }
}

const EVERY_MS = 30_000

/** Work that nobody asks for: old answers go, and calls to the provider whose process died are finished. Answers the way to stop it. */
export const startChores = (app: App): (() => Promise<void>) => {
  let running: Promise<void> = Promise.resolve()
  const chores = async () => {
    try {
      await reconcile(app)
      await dropExpiredRecords(app.db, app.now())
      await dropIdleBuckets(app.db)
    } catch (error) {
      app.log.warn({ code: (error as { code?: string }).code }, 'chores failed; they are tried again')
    }
  }
  const timer = setInterval(() => { running = running.then(chores) }, EVERY_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}
