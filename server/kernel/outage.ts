import type { DiskState, OutageState } from './kernel.ts'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Db } from '../../storage/database.ts'
import { loadServerEncoding } from '../../storage/client/health.ts'
import { waitAtMost } from '../../storage/client/wait-at-most.ts'
import { noteDiskFull } from './disk-full.ts'
import { errorLogDetails } from './log-details.ts'
import { isDatabaseUnreachable } from './deadline.ts'

type Watched = { outage: OutageState; disk: DiskState; db: Db; log: Logger }

const CHECK_MS = 1_000
const ANSWER_MS = 1_500

/** Whether the database answers; undefined once this side has closed it. */
const checkDatabase = async (db: Db): Promise<boolean | undefined> => {
  try {
    return await waitAtMost(ANSWER_MS, loadServerEncoding(db))
  } catch (error) {
    const { code } = error as { code?: string }
    return code === undefined || code === 'CONNECTION_ENDED' ? undefined : false
  }
}

const watchForEnd = async ({ outage, db, log }: Watched, since: number): Promise<void> => {
  let answers: boolean | undefined
  while ((answers = await checkDatabase(db)) === false) await pause(CHECK_MS, undefined, { ref: false })
  outage.since = undefined
  if (answers)
    log.info(
      { seconds: Math.round((performance.now() - since) / 100) / 10 },
      'The database can be reached again',
    )
}

/**
 * Notes an error that comes of an outage of the database, whose beginning and end are logged once for all of them.
 * Returns false for others, such as a connection that was lost while the database goes on.
 */
const noteOutage = async (watched: Watched, error: unknown): Promise<boolean> => {
  const { outage, db, log } = watched
  if (!isDatabaseUnreachable(error)) return false
  if (outage.since !== undefined) return true
  // Only a database that goes on can keep all connections busy.
  if ((error as { code?: string }).code === 'ACQUIRE_TIMEOUT') return false
  // Others have the same code: the provider can refuse a connection too.
  outage.checking ??= checkDatabase(db).finally(() => {
    outage.checking = undefined
  })
  if ((await outage.checking) !== false) return false
  if (outage.since === undefined) {
    outage.since = performance.now()
    log.error(
      errorLogDetails(error),
      'The database cannot be reached: background jobs try again until it can, without a line for each failure',
    )
    void watchForEnd(watched, outage.since)
  }
  return true
}

/**
 * Notes an error of background work that all of it shares, a full disk or an outage of the database. Returns false
 * for others, which the caller logs.
 */
export const noteSharedFailure = async (watched: Watched, error: unknown): Promise<boolean> =>
  noteDiskFull(watched, error) || (await noteOutage(watched, error))
