import type { App } from '../app.ts'
import { checkClock } from './clock-guard.ts'
import type { JobDefinition, JobName } from './runner.ts'

const INTERVAL_MS = 30_000

/** Returns how much it deleted. */
export type DeleteOld = (signal: AbortSignal) => Promise<number | void>

/** A job that deletes what is old, or ends what has expired, by the time of the database. */
export const createRetentionJob = (
  app: App,
  name: JobName,
  deleteOld: DeleteOld,
  intervalMs = INTERVAL_MS,
): JobDefinition => ({
  name,
  intervalMs,
  run: async (signal) => {
    await checkClock(app)
    return { processed: (await deleteOld(signal)) ?? 0 }
  },
})
