import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createDiskMonitor } from './disk-monitor.ts'
import { acquireFolder, findOwnerSocket, type OwnerOptions } from './folder.ts'
import { makeContentPrivate } from './private-files.ts'
import { createSharedState, DEADLINE, monotonicMs } from './shared-state.ts'
import type { WorkerData, WorkerMessage } from './worker.ts'

export type EmbeddedDatabase = {
  /** Connects to the session; while the database restarts, waits until it is open again. */
  connect: () => Promise<Socket>
  /** Why the database restarts, and with it every connection is lost; undefined when it does not. */
  restartReason: () => RestartReason | undefined
  /** True while only reads are allowed, for want of disk space. */
  isDiskFull: () => boolean
  close: () => Promise<void>
}

/** `timeout`: a statement had to be aborted. Otherwise the database stopped by itself. */
export type RestartReason = 'timeout' | 'disk_full' | 'stopped'

const WATCH_INTERVAL_MS = 200
/** Of so many looks, one is at the disk while nothing runs. Only statements fill it quickly. */
const LOOKS_PER_QUIET_CHECK = 5
const REOPEN_INTERVAL_MS = 1_000

type RunningWorker = {
  worker: Worker
  /** Becomes true when the database in it can only be opened again. */
  isBroken: () => boolean
}

const startWorker = async (data: WorkerData): Promise<RunningWorker> => {
  const source = new URL('./worker.ts', import.meta.url)
  const worker = new Worker(existsSync(source) ? source : new URL('./worker.js', import.meta.url), {
    workerData: data,
    // PGlite's memory is outside of the heap; what is young in it is the data of one message.
    resourceLimits: { maxYoungGenerationSizeMb: 4 },
  })
  let isBroken = false
  await new Promise<void>((resolve, reject) => {
    worker.on('message', (message: WorkerMessage) => {
      if (message === 'ready') resolve()
      else isBroken = true
    })
    worker.on('error', (error) => {
      isBroken = true
      reject(error)
    })
    worker.on('exit', (code) => {
      isBroken = true
      reject(new Error(`the embedded database stopped while opening (exit code ${code})`))
    })
  })
  return { worker, isBroken: () => isBroken }
}

/**
 * Opens the database in this folder, in a worker thread; this process becomes the folder's owner. A statement
 * that exceeds the `statement_timeout` of its connection is aborted by terminating the thread, since nothing
 * else stops PGlite; a new thread opens the folder again (docs/decisions/0008). So it does when the database
 * stopped for lack of disk space (docs/decisions/0016). `warn` gets what an administrator should know.
 */
export const openEmbedded = async (path: string, options: OwnerOptions): Promise<EmbeddedDatabase> => {
  const owned = await acquireFolder(path, options)
  if (!owned) return attachTo(await findOwnerSocket(path))
  const { folder, socket, space, release } = owned
  const shared = createSharedState()
  const dataDir = join(folder, 'pgdata')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const start = () => startWorker({ dataDir, socket, shared })
  const monitor = createDiskMonitor(folder, space, shared, options.warn)
  let restarting: RestartReason | undefined
  let running = start()
  try {
    await running
    // Its own set-up creates files that anyone may read, in a folder that only we may enter.
    makeContentPrivate(dataDir)
    monitor.check()
  } catch (error) {
    release()
    throw error
  }

  const reopen = async (): Promise<RunningWorker> => {
    for (;;) {
      rmSync(socket, { force: true })
      Atomics.store(shared, DEADLINE, 0n)
      space.release()
      try {
        return await start()
      } catch (error) {
        // A server without its database cannot serve; but space may be freed at any time.
        if (!space.isFull()) throw error
      }
      await pause(REOPEN_INTERVAL_MS)
    }
  }
  const restart = async (reason: RestartReason): Promise<RunningWorker> => {
    restarting = reason
    await (await running).worker.terminate()
    if (reason !== 'timeout') options.warn('the embedded database stopped, and is opened again')
    const reopened = await reopen()
    restarting = undefined
    return reopened
  }
  let looks = 0
  const watch = async (): Promise<void> => {
    const deadlineMs = Atomics.load(shared, DEADLINE)
    if (deadlineMs !== 0n || ++looks % LOOKS_PER_QUIET_CHECK === 0) monitor.check()
    if (restarting) return
    const { isBroken } = await running
    const isLate = deadlineMs !== 0n && monotonicMs() > deadlineMs
    if (restarting || (!isBroken() && !isLate)) return
    running = restart(!isBroken() ? 'timeout' : space.isFull() ? 'disk_full' : 'stopped')
    // Nothing can be served any more; the error ends the process.
    running.catch((error: unknown) => {
      setImmediate(() => {
        throw error
      })
    })
  }
  const watchdog = setInterval(() => void watch(), WATCH_INTERVAL_MS).unref()
  return {
    connect: async () => {
      await running
      return createConnection(socket)
    },
    restartReason: () => restarting,
    isDiskFull: monitor.isFull,
    close: async () => {
      clearInterval(watchdog)
      const { worker } = await running
      const exited = new Promise((resolve) => worker.once('exit', resolve))
      worker.postMessage('close')
      await exited
      release()
    },
  }
}

/** The database of a folder that another process, or another part of this one, owns. */
const attachTo = (socket: string): EmbeddedDatabase => ({
  connect: async () => createConnection(socket),
  restartReason: () => undefined,
  isDiskFull: () => false,
  close: async () => {},
})
