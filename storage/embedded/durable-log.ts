import { closeSync, fsync, fsyncSync, openSync } from 'node:fs'
import { promisify } from 'node:util'

/**
 * The log of the embedded database, as far as it is on the disk (docs/decisions/0071-power-cuts.md). Positions are
 * bytes since its beginning.
 */
export type DurableLog = {
  /** How often PGlite has asked for a sync. */
  requests: () => number
  /** Waits until all that PGlite has asked for is on the disk; rejects when the disk fails, then and ever after. */
  whenDurable: () => Promise<void>
  /** The log was written up to here. */
  noteWrite: (end: number) => void
  /** PGlite asks for a sync of this file. */
  noteSync: (path: string) => void
  /** Waits in place, for the log up to this position; for all of it when absent. */
  syncBefore: (position?: number) => void
}

const fsyncAsync = promisify(fsync)
const ALL = Infinity

/**
 * The one thread of PGlite would wait for the disk at each commit. So a sync of the log is only noted, and made by
 * another thread while the session goes on; who must not go on before it waits. One sync is for all who wait.
 */
export const createDurableLog = (): DurableLog => {
  /** Each with a descriptor of our own: PGlite may close and rename the file. */
  const waiting = new Map<string, number>()
  let syncing: number[] = []
  let running: Promise<void> | undefined
  /** Why a sync failed. The next one of the same file succeeds, whatever was lost: nothing is durable from then on. */
  let failure: unknown
  let written = 0
  const asked = { requests: 0, end: 0 }
  let durable = { ...asked }

  const takeWaiting = (): number[] => {
    const files = [...waiting.values()]
    waiting.clear()
    return files
  }
  const run = async (): Promise<void> => {
    const upTo = { ...asked }
    syncing = takeWaiting()
    try {
      await Promise.all(syncing.map((file) => fsyncAsync(file)))
      if (upTo.requests > durable.requests) durable = upTo
    } catch (error) {
      failure = error
    } finally {
      for (const file of syncing) closeSync(file)
      syncing = []
      running = undefined
    }
  }
  const requireWorking = (): void => {
    if (failure) throw new Error('the disk of the embedded database fails', { cause: failure })
  }
  return {
    requests: () => asked.requests,
    whenDurable: async () => {
      const wanted = asked.requests
      while (!failure && durable.requests < wanted) await (running ??= run())
      requireWorking()
    },
    noteWrite: (end) => {
      written = Math.max(written, end)
    },
    noteSync: (path) => {
      requireWorking()
      if (!waiting.has(path)) waiting.set(path, openSync(path, 'r+'))
      asked.requests++
      asked.end = written
    },
    syncBefore: (position = ALL) => {
      requireWorking()
      if (durable.requests === asked.requests || position <= durable.end) return
      try {
        for (const file of [...syncing, ...waiting.values()]) fsyncSync(file)
      } catch (error) {
        failure = error
        throw error
      }
      for (const file of takeWaiting()) closeSync(file)
      durable = { ...asked }
    },
  }
}
