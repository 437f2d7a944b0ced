import {
  findNewestMessages,
  indexNewMessages,
  indexOldMessages,
  listMessageWriters,
  type NewestMessages,
} from '../../storage/message-search-index.ts'
import type { App } from '../core/app.ts'
import type { JobDefinition } from '../jobs/runner.ts'

const INTERVAL_MS = 2000
/** A transaction of this many messages takes about 50 ms, on the embedded database 200 ms. */
const BATCH = 250
/** Batches of old messages in a run, and the pause after it: other work goes on meanwhile. */
const OLD_BATCHES = 10
const OLD_PAUSE_MS = 250

/** Writes the index of the search in messages: the new ones, then those that a version without the index wrote. */
export const messageSearchJob = ({ db }: App): JobDefinition => {
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
  return {
    name: 'message-search',
    intervalMs: INTERVAL_MS,
    run: async (signal) => {
      let processed = 0
      const settledTo = await findSettledId()
      for (let count = 1; count > 0 && !signal.aborted; processed += count)
        count = await indexNewMessages(db, settledTo, BATCH)
      let old = 1
      for (let n = 0; n < OLD_BATCHES && old > 0 && !signal.aborted; n++, processed += old)
        old = await indexOldMessages(db, BATCH)
      return old > 0 ? { processed, nextInMs: OLD_PAUSE_MS } : { processed }
    },
  }
}
