import { migrate, openStorage, type Location, type Storage } from '../storage/open.ts'
import { refreshClock } from './clock.ts'
import type { Service } from './compose.ts'
import type { Config } from './config.ts'
import { stopStreams } from './events/stream.ts'

/** The location of the database: PostgreSQL if it is configured, else the data folder. */
export const toLocation = (config: Pick<Config, 'databaseUrl' | 'dataDir'>): Location =>
  config.databaseUrl ? { databaseUrl: config.databaseUrl } : { dataDir: config.dataDir }

/** Opens the storage and migrates its schema. Migrations have no statement timeout. */
export const openMigrated = async (config: Config): Promise<Storage> => {
  const storage = await openStorage(toLocation(config), {
    connections: config.databaseConnections,
    prepare: config.databasePrepare === 'on',
  })
  const noTimeout = await openStorage(toLocation(config), { attach: true, connections: 1, noTimeout: true })
  try {
    await migrate(noTimeout.db)
  } finally {
    await noTimeout.close()
  }
  return storage
}

/**
 * Starts the background jobs and, where this server plays the provider, the sandbox. Returns the function
 * that stops them: it waits for the work in progress, so that the storage can be closed after it.
 */
export const startBackgroundJobs = async ({
  app,
  sandboxControl,
  sandbox,
}: Service): Promise<() => Promise<void>> => {
  if (sandbox) {
    await refreshClock(app)
    await sandboxControl.syncChanges()
  }
  const stopSandbox = sandbox?.start()
  app.jobs.start()
  return async () => {
    await stopStreams(app)
    // Requests in flight take longest to drain, so this begins first.
    const deliveriesStopped = app.jobs.job('webhook-deliveries').stop()
    // Before the other jobs: what it still sends to this server is processed.
    await stopSandbox?.()
    await Promise.all([app.jobs.stop(), deliveriesStopped])
  }
}
