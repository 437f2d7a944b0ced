import { moveDueTimes } from '../../storage/due-times.ts'
import type { App } from '../core/app.ts'
import { compareClocks } from '../real-time.ts'
import { getIdleMs, type JobDefinition } from './runner.ts'

/** Clocks that are set by the network differ by much less. */
const MAX_DIFFERENCE_MS = 60_000
/** Many jobs ask: a wrong clock is logged once per interval. */
const LOG_INTERVAL_MS = 60_000

/**
 * Whether this server may delete what is old by its clock: not when that is ahead of the database's, which all servers
 * share, since it would delete what the others keep. Logs a clock that is wrong either way. It looks at the
 * real clock of the process, not at `app.now()`, which the caller can set.
 */
export const mayDeleteByClock = async (app: App): Promise<boolean> => {
  const { log, clockCheck } = app
  const { ours, databaseAheadMs, tookMs } = await compareClocks(app)
  const isAhead = -databaseAheadMs > MAX_DIFFERENCE_MS
  const isBehind = databaseAheadMs - tookMs > MAX_DIFFERENCE_MS
  const now = performance.now()
  if ((isAhead || isBehind) && now - clockCheck.loggedAt >= LOG_INTERVAL_MS) {
    clockCheck.loggedAt = now
    const databaseTime = new Date(Date.parse(ours) + databaseAheadMs).toISOString()
    log.error({ server_time: ours, database_time: databaseTime }, isAhead ? AHEAD : BEHIND)
  }
  return !isAhead
}

const AHEAD =
  'The clock of this server is ahead of that of the database: it deletes nothing that is old until they agree. ' +
  'Run chrony or systemd-timesyncd on both machines'
const BEHIND =
  "The clock of this server is behind that of the database: it takes the database's time instead until they agree. " +
  'Run chrony or systemd-timesyncd on both machines'

const SET_BACK =
  'The clock of the database was set back: what waited for a time of before is due earlier by as much. ' +
  'Records that were made meanwhile keep their later times'

/**
 * Sees to a clock of the database that was set back. Retries, probes and leases would otherwise wait for longer by as
 * much: by hours where a machine began with a wrong time zone.
 */
const seeToClockSetBack = async ({ db, log, databaseTime }: App): Promise<void> => {
  const { setBackMs } = databaseTime
  if (setBackMs === 0) return
  const isMoved = await moveDueTimes(db, setBackMs)
  databaseTime.setBackMs = 0
  if (isMoved) log.warn({ seconds: Math.round(setBackMs / 1000) }, SET_BACK)
}

/** Compares the clocks in every process, whether or not it is the one that deletes. */
export const serverClockJob = (app: App): JobDefinition => ({
  name: 'server-clock',
  intervalMs: getIdleMs(app),
  everywhere: true,
  run: async () => {
    await compareClocks(app)
    await seeToClockSetBack(app)
    return {}
  },
})
