import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { isAlive, readOwner, takeFolder } from './folder.ts'

export type Embedded = { socket: string; close: () => Promise<void> }

/** Opens the database in this folder, in a thread of this process, which becomes the folder's owner. */
export const openEmbedded = async (path: string): Promise<Embedded> => {
  const { folder, socket, release } = await takeFolder(path)
  const source = new URL('./worker.ts', import.meta.url)
  const worker = new Worker(existsSync(source) ? source : new URL('./worker.js', import.meta.url), {
    workerData: { dataDir: join(folder, 'pgdata'), socket },
  })
  try {
    await new Promise<void>((ready, fail) => {
      worker.once('message', () => ready())
      worker.once('error', fail)
      worker.once('exit', (code) => fail(new Error(`the embedded database stopped while opening (${code})`)))
    })
  } catch (error) {
    release()
    throw error
  }
  worker.removeAllListeners('exit')
  worker.on('error', (error) => { throw error })
  return {
    socket,
    close: async () => {
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
  return { socket: owner.socket, close: async () => {} }
}
