import { existsSync } from 'node:fs'
import { makeDataFolderPrivate } from '../storage/embedded/private-files.ts'
import { compareSchema, migrate, requireMigrated } from '../storage/migrations/migrate.ts'
import type { Db } from '../storage/database.ts'
import { openStorage, type Location, type Storage } from '../storage/open.ts'
import { waitAtMost } from '../storage/client/wait-at-most.ts'
import { refreshClocks } from './clock.ts'
import type { Service } from './compose.ts'
import type { Config } from './config.ts'
import type { App } from './app.ts'
import { stopStreams } from './http/event-stream.ts'
import { errorLogDetails } from './kernel/log-details.ts'
import { createAllPartitions } from './work/partitions.ts'

/** The location of the database: PostgreSQL if it is configured, else the data folder. */
export const toLocation = (config: Pick<Config, 'databaseUrl' | 'dataDir'>): Location =>
  config.databaseUrl ? { databaseUrl: config.databaseUrl } : { dataDir: config.dataDir }

const NO_PREPARED_STATEMENTS =
  'The pooler before the database does not know prepared statements, so none are used. PgBouncer 1.21 and ' +
  'newer does with max_prepared_statements; each statement then takes one round trip instead of two.'

/** Up to nine processes stay together below the 100 connections of a PostgreSQL that nobody configured. */
const CONNECTIONS = { each: 18, least: 10, all: 90 }

const defaultConnections = (processes: number): number =>
  Math.min(CONNECTIONS.each, Math.max(CONNECTIONS.least, Math.floor(CONNECTIONS.all / processes)))

/**
 * Opens the storage and migrates its schema, or refuses one that is older where it must not migrate. Migrations
 * have no statement timeout. `warn` gets what an administrator should know, now or later. `processes`: how many
 * of them the server has.
 */
export const openMigrated = async (
  config: Config,
  warn: (message: string) => void,
  processes = 1,
): Promise<Storage> => {
  // With PostgreSQL, the folder may hold the secret and received files.
  if (config.databaseUrl && existsSync(config.dataDir)) makeDataFolderPrivate(config.dataDir, warn)
  const storage = await openStorage(toLocation(config), {
    warn,
    connections: config.databaseConnections ?? defaultConnections(processes),
    prepare: config.databasePrepare,
    readUrl: config.databaseReadUrl,
  })
  if (config.databasePrepare === 'auto' && !storage.access.prepare) warn(NO_PREPARED_STATEMENTS)
  try {
    const noTimeout = await openStorage(toLocation(config), {
      attach: true,
      connections: 2,
      noTimeout: true,
      prepare: config.databasePrepare,
    })
    try {
      await prepareSchema(noTimeout.db, config, warn)
      await createAllPartitions(noTimeout.db, config, new Date().toISOString())
    } finally {
      await noTimeout.close()
    }
    return storage
  } catch (error) {
    await storage.close()
    throw error
  }
}

const prepareSchema = async (
  db: Db,
  config: Pick<Config, 'migrate'>,
  warn: (message: string) => void,
): Promise<void> => {
  if (config.migrate) await migrate(db, { say: warn })
  const schema = await compareSchema(db)
  requireMigrated(schema)
  if (schema.state === 'ahead')
    warn(
      `A newer version has migrated the database (${schema.unknown.join(', ')}); it lets this version run until it ` +
        'is replaced',
    )
}

/** Less than the time that a supervisor such as Docker or Kubernetes is usually told to wait. */
const STOP_TIMEOUT_MS = 20_000

/**
 * Waits until background work has stopped, so that the storage can be closed after it, but not for ever: what
 * is cut off is found again in the database by its lease. Never rejects.
 */
export const waitUntilStopped = async (
  { log }: Pick<App, 'log'>,
  stopped: Promise<unknown>,
): Promise<void> => {
  const failure = stopped.then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  const inTime = await waitAtMost(STOP_TIMEOUT_MS, failure)
  const failed = inTime ? await failure : undefined
  if (!inTime) log.warn('Background jobs did not stop in time; their work is taken up after the next start')
  else if (failed) log.warn(errorLogDetails(failed.error), 'Background jobs stopped with an error')
}

/**
 * Starts the background jobs and, where this server plays the provider, the sandbox. Returns the function
 * that stops them: it waits for the work in progress, so that the storage can be closed after it. `lead`: of
 * several processes; until it resolves, another one does the work that one does for all.
 */
export const startBackgroundJobs = async (
  { app, sandboxControl, sandbox }: Service,
  lead?: Promise<void>,
): Promise<() => Promise<void>> => {
  if (sandbox) {
    await refreshClocks(app)
    if (!lead) await sandboxControl?.syncChanges()
  }
  let stopSandbox: (() => Promise<void>) | undefined
  let isStopping = false
  const start = (): void => {
    if (isStopping) return
    stopSandbox = sandbox?.start()
    app.jobs.start()
  }
  if (lead) {
    app.jobs.follow()
    void lead.then(start)
  } else start()
  const stop = async (): Promise<void> => {
    isStopping = true
    // Requests in flight take longest to drain, so this begins first.
    const deliveriesStopped = app.jobs.job('webhook-deliveries').stop()
    const streamsStopped = stopStreams(app)
    // Before the other jobs: what it still sends to this server is processed.
    await stopSandbox?.()
    await Promise.all([app.jobs.stop(), deliveriesStopped, streamsStopped])
  }
  return () => waitUntilStopped(app, stop())
}
