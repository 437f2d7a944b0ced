import { existsSync, rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isAlive, readOwner, acquireFolder } from './folder.ts'
import { type Deadline, monotonicMs } from './socket-proxy.ts'
import type { WorkerData } from './worker.ts'

export type EmbeddedDatabase = {
  /** Connects to the session; while a statement is aborted, waits until the database is open again. */
  connect: () => Promise<Socket>
  /** True while a statement that timed out is aborted, together with every connection. */
  isAborting: () => boolean
  close: () => Promise<void>
}

const DEADLINE_CHECK_INTERVAL_MS = 200

const startWorker = async (data: WorkerData): Promise<Worker> => {
  const source = new URL('./worker.ts', import.meta.url)
  const worker = new Worker(existsSync(source) ? source : new URL('./worker.js', import.meta.url), {
    workerData: data,
  })
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', (code) =>
      reject(new Error(`the embedded database stopped while opening (exit code ${code})`)),
    )
  })
  worker.removeAllListeners('exit')
  worker.on('error', (error) => {
    throw error
  })
  return worker
}

/**
 * Opens the database in this folder, in a worker thread; this process becomes the folder's owner. A statement
 * that exceeds the `statement_timeout` of its connection is aborted by terminating the thread, since nothing
 * else stops PGlite; a new thread opens the folder again (docs/decisions/0008).
 */
export const openEmbedded = async (path: string): Promise<EmbeddedDatabase> => {
  const { folder, socket, release } = await acquireFolder(path)
  const deadline: Deadline = new BigInt64Array(new SharedArrayBuffer(8))
  const start = () => startWorker({ dataDir: join(folder, 'pgdata'), socket, deadline })
  let isRestarting = false
  let running = start()
  try {
    await running
  } catch (error) {
    release()
    throw error
  }
  const restart = async (): Promise<Worker> => {
    isRestarting = true
    await (await running).terminate()
    rmSync(socket, { force: true })
    Atomics.store(deadline, 0, 0n)
    const worker = await start()
    isRestarting = false
    return worker
  }
  const watchdog = setInterval(() => {
    const deadlineMs = Atomics.load(deadline, 0)
    if (isRestarting || deadlineMs === 0n || monotonicMs() <= deadlineMs) return
    running = restart()
    // A server without its database cannot serve; the error ends the process.
    running.catch((error: unknown) => {
      setImmediate(() => {
        throw error
      })
    })
  }, DEADLINE_CHECK_INTERVAL_MS).unref()
  return {
    connect: async () => {
      await running
      return createConnection(socket)
    },
    isAborting: () => isRestarting,
    close: async () => {
      clearInterval(watchdog)
      const worker = await running
      const exited = new Promise((resolve) => worker.once('exit', resolve))
      worker.postMessage('close')
      await exited
      release()
    },
  }
}

/** Opens the database of a folder through its owner's socket; undefined when no process owns the folder. */
export const attachEmbedded = async (path: string): Promise<EmbeddedDatabase | undefined> => {
  const owner = readOwner(path)
  if (!owner || !(await isAlive(owner))) return undefined
  return {
    connect: async () => createConnection(owner.socket),
    isAborting: () => false,
    close: async () => {},
  }
}
