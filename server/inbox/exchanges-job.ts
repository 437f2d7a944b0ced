import { setTimeout as pause } from 'node:timers/promises'
import { fillExchanges } from '../../storage/contact-exchanges.ts'
import type { App } from '../core/app.ts'
import type { JobDefinition } from '../jobs/runner.ts'

/** Conversations in a transaction. */
const BATCH = { embedded: 50, server: 500 }
const BATCHES = 10
const PAUSE_MS = 100
const INTERVAL_MS = 60_000

/**
 * Notes when customers wrote in the conversations of a version that did not. Until it is done, filters read the
 * messages themselves (docs/decisions/0066).
 */
export const contactExchangesJob = ({ db, embedded }: App): JobDefinition => {
  let isDone = false
  return {
    name: 'contact-exchanges',
    intervalMs: INTERVAL_MS,
    run: async (signal) => {
      let processed = 0
      for (let n = 0; n < BATCHES && !isDone && !signal.aborted; n++) {
        const startedAt = performance.now()
        const count = await fillExchanges(db, embedded ? BATCH.embedded : BATCH.server)
        processed += count
        isDone = count === 0
        // Leaves the embedded database to the others for as long.
        if (embedded && !isDone) await pause(performance.now() - startedAt)
      }
      return { processed, ...(isDone ? {} : { nextInMs: PAUSE_MS }) }
    },
  }
}
