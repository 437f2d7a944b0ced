import { readDatabaseClock } from '../storage/workspace/installation.ts'
import type { Db } from '../storage/database.ts'

export type DatabaseTime = {
  /**
   * The time of the database when it was last read, `performance.now()` at that moment, and by how much the clock of
   * this process was ahead of it; all in milliseconds. Undefined until it was read.
   */
  last: { ms: number; readAt: number; fastMs: number } | undefined
  /** By how many milliseconds its clock was set back, which the job `server-clock` has not seen to yet. */
  setBackMs: number
}

/** Clocks that are set by the network are corrected by much less. */
const MIN_SET_BACK_MS = 5 * 60_000

/** How the clock of this process compares to the database's. */
export type ClockComparison = {
  /** The time of this process, ISO 8601 UTC. */
  ours: string
  databaseAheadMs: number
  /** How long the query took: the database may be ahead by so much less. */
  tookMs: number
}

/** Compares the clocks, and keeps the database's time for `readRealTime`. It looks at the real clock of the process. */
export const compareClocks = async ({
  db,
  databaseTime,
}: {
  readonly db: Db
  readonly databaseTime: DatabaseTime
}): Promise<ClockComparison> => {
  // Read before the query: the time that it takes makes the clock look slow, never fast.
  const ours = new Date().toISOString()
  const startedAt = performance.now()
  const databaseAheadMs = await readDatabaseClock(db, ours)
  const readAt = performance.now()
  const ms = Date.parse(ours) + databaseAheadMs
  const { last } = databaseTime
  // As of before the query: however long that takes, it does not look as if the clock was set back.
  const setBackMs = last ? last.ms + (startedAt - last.readAt) - ms : 0
  if (setBackMs >= MIN_SET_BACK_MS) databaseTime.setBackMs += setBackMs
  databaseTime.last = { ms, readAt, fastMs: Math.max(0, -databaseAheadMs) }
  return { ours, databaseAheadMs, tookMs: readAt - startedAt }
}

/**
 * Real time, ISO 8601 UTC: the database's, whichever way the clock of this process is wrong, so that what expires works
 * neither longer nor shorter than on other servers. Between two readings it goes on by the clock of the process, which
 * a machine that slept has set, and no slower than by `performance.now()`, which nobody sets back.
 */
export const readRealTime = ({ last }: DatabaseTime): string =>
  new Date(
    last ? Math.max(Date.now() - last.fastMs, last.ms + (performance.now() - last.readAt)) : Date.now(),
  ).toISOString()
