import { existsSync, rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isAlive, readOwner, takeFolder } from './folder.ts'
import { type Deadline, monotonicMs } from './socket-proxy.ts'
import type { WorkerData } from './worker.ts'

export type Embedded = {
  /**
   * A connection to the session; after a statement was cut short it waits until the database is open again.
   */
  connect: () => Promise<Socket>
  /** True while a statement that had its time is cut short, together with every connection. */
  isCutting: () => boolean
  close: () => Promise<void>
}

const WATCH_MS = 200

const startWorker = async (data: WorkerData): Promise<Worker> => {
  const source = new URL('./worker.ts', import.meta.url)
  const worker = new Worker(existsSync(source) ? source : new URL('./worker.js', import.meta.url), {
    workerData: data,
  })
  await new Promise<void>((ready, fail) => {
    worker.once('message', () => ready())
    worker.once('error', fail)
    worker.once('exit', (code) => fail(new Error(`the embedded database stopped while opening (${code})`)))
  })
  worker.removeAllListeners('exit')
  worker.on('error', (error) => {
    throw error
  })
  return worker
}

/**
 * Opens the database in this folder, in a thread of this process, which becomes the folder's owner. A
 * statement that outlasts the `statement_timeout` of its connection ends with the thread, since nothing
 * else stops PGlite; a new thread opens the folder again (docs/decisions/0008).
 */
export const openEmbedded = async (path: string): Promise<Embedded> => {
  const { folder, socket, release } = await takeFolder(path)
  const deadline: Deadline = new BigInt64Array(new SharedArrayBuffer(8))
  const start = () => startWorker({ dataDir: join(folder, 'pgdata'), socket, deadline })
  let cutting = false
  let opened = start()
  try {
    await opened
  } catch (error) {
    release()
    throw error
  }
  const cut = async (): Promise<Worker> => {
    cutting = true
    await (await opened).terminate()
    rmSync(socket, { force: true })
    Atomics.store(deadline, 0, 0n)
    const worker = await start()
    cutting = false
    return worker
  }
  const watch = setInterval(() => {
    const until = Atomics.load(deadline, 0)
    if (cutting || until === 0n || monotonicMs() <= until) return
    opened = cut()
    // A server without its database has nothing to serve.
    opened.catch((error: unknown) => {
      setImmediate(() => {
        throw error
      })
    })
  }, WATCH_MS).unref()
  return {
    connect: async () => {
      await opened
      return createConnection(socket)
    },
    isCutting: () => cutting,
    close: async () => {
      clearInterval(watch)
      const worker = await opened
      const gone = new Promise((resolve) => worker.once('exit', resolve))
      worker.postMessage('close')
      await gone
      release()
    },
  }
}

/** The database of a folder whose owner runs, through the owner's socket; undefined when nobody owns it. */
export const attachEmbedded = async (path: string): Promise<Embedded | undefined> => {
  const owner = readOwner(path)
  if (!owner || !(await isAlive(owner))) return undefined
  return {
    connect: async () => createConnection(owner.socket),
    isCutting: () => false,
    close: async () => {},
  }
}
