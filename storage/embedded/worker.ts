import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { btree_gin } from '@electric-sql/pglite/contrib/btree_gin'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { createDurableFiles, syncFolder } from './durable-files.ts'
import { createDurableLog } from './durable-log.ts'
import type { SharedState } from './shared-state.ts'
import { startSocketProxy } from './socket-proxy.ts'
import { unpackTemplate } from './template.ts'

export type WorkerData = { dataDir: string; socket: string; shared: SharedState }

/** What the worker tells the main thread. */
export type WorkerMessage = 'ready' | 'broken'

/** The worker thread that runs PGlite: a query blocks its thread, which therefore must not serve requests. */
const { dataDir, socket, shared } = workerData as WorkerData

const tell = (message: WorkerMessage): void => parentPort!.postMessage(message)

/**
 * PGlite's own defaults take 128 MB for the buffers alone and up to 1 GB of log on disk. The buffers are
 * small, since what is not in them is in the file cache of the operating system.
 */
const settings = [
  'shared_buffers=16MB',
  'wal_buffers=1MB',
  'min_wal_size=32MB',
  'max_wal_size=64MB',
  'max_connections=5',
  // The other methods do nothing in WebAssembly.
  'wal_sync_method=fsync',
]
/** Turns `fsync` off. */
const WITHOUT_SYNC = '-F'

const isNew = unpackTemplate(dataDir)
const log = createDurableLog()
const db = await PGlite.create({
  fs: createDurableFiles(dataDir, log),
  extensions: { pg_trgm, btree_gin },
  startParams: [
    ...PGlite.defaultStartParams.filter((word) => word !== WITHOUT_SYNC),
    ...settings.flatMap((setting) => ['-c', setting]),
  ],
})
await db.exec(`set timezone to 'UTC'`)
const server = await startSocketProxy(db, socket, { shared, log, onPanic: () => tell('broken') })

const close = async (): Promise<void> => {
  server.close()
  await db.close()
  parentPort!.close()
}

parentPort!.on('message', () => {
  void close()
})
tell('ready')
// Meanwhile PGlite removes folders, or the database is closed: neither may end this thread with an error.
if (isNew) await syncFolder(dataDir).catch(() => {})
