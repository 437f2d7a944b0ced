import { readDatabaseClock } from '../../storage/installation.ts'
import type { App } from '../core/app.ts'

/** Clocks that are set by the network differ by much less. */
const MAX_DIFFERENCE_MS = 60_000
/** Many jobs ask: a wrong clock is logged once per interval. */
const LOG_INTERVAL_MS = 60_000

/**
 * Whether this server may delete what is old by its clock: not when that is ahead of the database's, which all servers
 * share, since it would delete what the others keep. Logs a clock that is wrong either way. It looks at the
 * real clock of the process, not at `app.now()`, which the caller can set.
 */
export const mayDeleteByClock = async ({ db, log, clockCheck }: App): Promise<boolean> => {
  // Read before the query: the time that it takes makes the clock look slow, never fast.
  const ours = new Date().toISOString()
  const startedAt = performance.now()
  const databaseAheadMs = await readDatabaseClock(db, ours)
  const tookMs = performance.now() - startedAt
  const isAhead = -databaseAheadMs > MAX_DIFFERENCE_MS
  const isBehind = databaseAheadMs - tookMs > MAX_DIFFERENCE_MS
  if ((isAhead || isBehind) && startedAt - clockCheck.loggedAt >= LOG_INTERVAL_MS) {
    clockCheck.loggedAt = startedAt
    const databaseTime = new Date(Date.parse(ours) + databaseAheadMs).toISOString()
    log.error({ server_time: ours, database_time: databaseTime }, isAhead ? AHEAD : BEHIND)
  }
  return !isAhead
}

const AHEAD =
  'The clock of this server is ahead of that of the database: it deletes nothing that is old until they agree. ' +
  'Run chrony or systemd-timesyncd on both machines'
const BEHIND =
  'The clock of this server is behind that of the database: keys and URLs that expired still work here. ' +
  'Run chrony or systemd-timesyncd on both machines'
