import { setTimeout as pause } from 'node:timers/promises'
import {
  findNewestMessages,
  indexNewMessages,
  listMessageWriters,
  type NewestMessages,
} from '../../../storage/messages/search-index.ts'
import type { App } from '../../app.ts'
import { getIdleMs, type JobDefinition } from '../../work/runner.ts'

/** Messages are found so soon after they were written. */
const INTERVAL_MS = 2000
/** A transaction of so many messages takes about 50 ms. Others wait for it where they share one connection. */
const BATCH = { embedded: 50, server: 250 }

/**
 * Writes the index of the search in messages. What writes a message tells of an event; what does not is found by
 * looking now and then.
 */
export const messageSearchJob = (app: App): JobDefinition => {
  const { db, embedded, signals } = app
  const batch = embedded ? BATCH.embedded : BATCH.server
  let awaited: NewestMessages | undefined
  /** Returns the id up to which nobody is writing messages any more; 0: not yet, or none is new. */
  const findSettledId = async (): Promise<string> => {
    if (awaited) {
      const running = new Set(await listMessageWriters(db))
      awaited = { ...awaited, writers: awaited.writers.filter((writer) => running.has(writer)) }
    } else awaited = await findNewestMessages(db)
    if (!awaited || awaited.writers.length > 0) return '0'
    const { to } = awaited
    awaited = undefined
    return to
  }
  /** Indexes a batch; then leaves the embedded database to the others for as long. */
  const runBatch = async (settledTo: string): Promise<number> => {
    const startedAt = performance.now()
    const count = await indexNewMessages(db, settledTo, batch)
    if (embedded && count > 0) await pause(performance.now() - startedAt)
    return count
  }
  return {
    name: 'message-search',
    intervalMs: INTERVAL_MS,
    getIntervalMs: () => (signals.areHeard() && !awaited ? getIdleMs(app) : INTERVAL_MS),
    subscribe: (wake) => signals.on('events', wake),
    run: async (signal) => {
      let processed = 0
      const settledTo = await findSettledId()
      for (let count = 1; count > 0 && !signal.aborted; processed += count) count = await runBatch(settledTo)
      return { processed, pauseMs: INTERVAL_MS }
    },
  }
}
