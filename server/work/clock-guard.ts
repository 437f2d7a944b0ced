import { moveDueTimes } from '../../storage/work/due-times.ts'
import type { App } from '../app.ts'
import { compareClocks } from '../real-time.ts'
import { getIdleMs, type JobDefinition } from './runner.ts'

/** Clocks that are set by the network differ by much less. */
const MAX_DIFFERENCE_MS = 60_000
/** Many jobs ask: a wrong clock is logged once per interval. */
const LOG_INTERVAL_MS = 60_000

/** Compares the clocks, and logs that of this process if it is wrong. */
export const checkClock = async (app: App): Promise<void> => {
  const { log, clockCheck } = app
  const { ours, databaseAheadMs, tookMs } = await compareClocks(app)
  const isWrong = Math.max(-databaseAheadMs, databaseAheadMs - tookMs) > MAX_DIFFERENCE_MS
  const now = performance.now()
  if (isWrong && now - clockCheck.loggedAt >= LOG_INTERVAL_MS) {
    clockCheck.loggedAt = now
    const databaseTime = new Date(Date.parse(ours) + databaseAheadMs).toISOString()
    log.error({ server_time: ours, database_time: databaseTime }, WRONG)
  }
}

const WRONG =
  "The clock of this server differs from that of the database: it takes the database's time until they agree. " +
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
