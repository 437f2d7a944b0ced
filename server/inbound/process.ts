import type { Db } from '../../storage/database.ts'
import {
  type ClaimedUpdate,
  claimUpdate,
  claimUpdates,
  deleteUpdatesBefore,
  nextUpdateIn,
  postponeUpdates,
  setAsideUpdates,
} from '../../storage/provider-updates.ts'
import type { App } from '../app.ts'
import { announceEvents } from '../events/signal.ts'
import { isRetryable } from '../core/steps/deadline.ts'
import { kickMedia } from '../media/fetch.ts'
import { workOff } from './work.ts'

/** Updates that are worked off in one transaction; the embedded database lets nobody else in meanwhile. */
const BATCH = { embedded: 25, postgresql: 100 }
const ATTEMPTS = 3
/** Seconds until an update that failed is tried again, and how often before it is set aside. */
const BACKOFF = [5, 30, 120, 600, 1800, 3600, 7200, 14_400]
/** Whoever waits longer is found by the chores. */
const LONGEST_TIMER_SECONDS = 60

type Work = { running?: Promise<number>; next?: Promise<number>; timer?: NodeJS.Timeout; stopped?: true }
const works = new WeakMap<App, Work>()

const workOf = (app: App): Work => {
  const known = works.get(app)
  if (known) return known
  const work: Work = {}
  works.set(app, work)
  return work
}

/**
 * Works off stored updates until none is due; answers how many. One run at a time: who asks meanwhile gets
 * the run after it.
 */
export const processUpdates = (app: App): Promise<number> => {
  const work = workOf(app)
  if (work.stopped) return Promise.resolve(0)
  if (!work.running) {
    work.running = drain(app).finally(() => {
      delete work.running
    })
    return work.running
  }
  work.next ??= work.running
    .catch(() => 0)
    .then(() => {
      delete work.next
      return processUpdates(app)
    })
  return work.next
}

/** The same without waiting for it; chores try again what fails. */
export const kickUpdates = (app: App): void => {
  processUpdates(app).catch((error: unknown) => {
    app.log.warn(
      { code: (error as { code?: string }).code },
      'updates of the provider could not be worked off; they are tried again',
    )
  })
}

/** Waits for the run under way and begins no other, before the storage is closed. */
export const stopUpdates = async (app: App): Promise<void> => {
  const work = workOf(app)
  work.stopped = true
  clearTimeout(work.timer)
  await work.running?.catch(() => {})
}

const drain = async (app: App): Promise<number> => {
  const most = app.embedded ? BATCH.embedded : BATCH.postgresql
  let total = 0
  let media = false
  for (let full = true; full && !workOf(app).stopped;) {
    const batch = await runBatch(app, most)
    total += batch.length
    if (batch.length > 0) announceEvents(app)
    full = batch.length === most
    media ||= batch.some(({ kind }) => kind === 'message')
  }
  if (media) kickMedia(app)
  await wakeForNext(app)
  return total
}

const inTransaction = async <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.transaction().execute(work)
    } catch (error) {
      if (attempt >= ATTEMPTS || !isRetryable(error)) throw error
    }
  }
}

/**
 * One transaction for all that is claimed; when it fails, one for each, so that a bad update stops no
 * other.
 */
const runBatch = async (app: App, most: number): Promise<ClaimedUpdate[]> => {
  let claimed: ClaimedUpdate[] = []
  try {
    return await inTransaction(app.db, async (tx) => {
      claimed = await claimUpdates(tx, most)
      if (claimed.length > 0) await workOff(tx, claimed, app.now())
      return claimed
    })
  } catch (error) {
    if (claimed.length === 0) throw error
    for (const { id } of claimed) await runOne(app, id)
    return claimed
  }
}

const runOne = async (app: App, id: string): Promise<void> => {
  let claimed: ClaimedUpdate | undefined
  try {
    await inTransaction(app.db, async (tx) => {
      claimed = await claimUpdate(tx, id)
      if (claimed) await workOff(tx, [claimed], app.now())
    })
  } catch (error) {
    if (!claimed) throw error
    const { kind, attempts } = claimed
    const seconds = BACKOFF[attempts]
    // Neither the update nor the text of the error, which may quote it, is logged: they hold what customers
    // wrote.
    const {
      code,
      table_name: table,
      constraint_name: constraint,
      routine,
      stack,
    } = error as Record<string, string | undefined>
    app.log.error(
      {
        update: id,
        kind,
        attempts: attempts + 1,
        cause: code ? { code, table, constraint, routine } : { stack },
      },
      seconds === undefined
        ? 'an update of the provider failed for good'
        : 'an update of the provider failed',
    )
    await (seconds === undefined
      ? setAsideUpdates(app.db, [id], 'failed')
      : postponeUpdates(app.db, [{ id, seconds }]))
  }
}

/** Comes back when the next update that was put off is due. */
const wakeForNext = async (app: App): Promise<void> => {
  const work = workOf(app)
  const seconds = await nextUpdateIn(app.db)
  clearTimeout(work.timer)
  if (seconds === undefined || seconds > LONGEST_TIMER_SECONDS || work.stopped) return
  work.timer = setTimeout(() => kickUpdates(app), Math.max(50, seconds * 1000))
  work.timer.unref()
}

const KEPT_DAYS = 8

/** Forgets updates that the provider cannot repeat any more (it does for seven days). Answers how many. */
export const dropOldUpdates = (app: App): Promise<number> =>
  deleteUpdatesBefore(app.db, new Date(Date.parse(app.now()) - KEPT_DAYS * 86_400_000).toISOString())
