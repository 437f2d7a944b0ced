import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { btree_gin } from '@electric-sql/pglite/contrib/btree_gin'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { type Deadline, startSocketProxy } from './socket-proxy.ts'

export type WorkerData = { dataDir: string; socket: string; deadline: Deadline }

/** The worker thread that runs PGlite: a query blocks its thread, which therefore must not serve requests. */
const { dataDir, socket, deadline } = workerData as WorkerData

const db = await PGlite.create({ dataDir, extensions: { pg_trgm, btree_gin } })
await db.exec(`set timezone to 'UTC'`)
const server = await startSocketProxy(db, socket, deadline)

const close = async (): Promise<void> => {
  server.close()
  await db.close()
  parentPort!.close()
}

parentPort!.on('message', () => {
  void close()
})
parentPort!.postMessage('ready')
