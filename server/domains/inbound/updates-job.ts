import type { Db } from '../../../storage/database.ts'
import {
  type ClaimedUpdate,
  claimUpdate,
  claimUpdates,
  findSecondsUntilNextUpdate,
  postponeProviderUpdates,
  retryUnmatchedUpdates,
  setAsideProviderUpdates,
} from '../../../storage/channels/provider-updates.ts'
import type { App } from '../../app.ts'
import { withRetries } from '../../kernel/retry.ts'
import { notifyEvents } from '../events/signal.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import { applyUpdates, type UnreadMessage } from './apply-updates.ts'

/** Updates per transaction. The embedded database has one session, which a transaction blocks for others. */
const BATCH_SIZE = { embedded: 25, postgresql: 100 }
const MAX_TRANSACTION_ATTEMPTS = 3
/** Seconds until an update that failed is retried; after the last one it is set aside as failed. */
const RETRY_DELAYS_SECONDS = [5, 30, 120, 600, 1800, 3600, 7200, 14_400]
const MIN_DELAY_MS = 50

/** Applies stored updates of the provider until none is due. The webhook wakes it after each body. */
export const providerUpdatesJob = (app: App): JobDefinition => {
  const report = createUnreadReport(app)
  let isStart = true
  const run: JobDefinition['run'] = async (signal) => {
    // What another version could not read, this one may.
    if (isStart) await retryUnmatchedUpdates(app.db, null)
    isStart = false
    const limit = app.embedded ? BATCH_SIZE.embedded : BATCH_SIZE.postgresql
    let processed = 0
    const kinds = new Set<ClaimedUpdate['kind']>()
    for (let isFull = true; isFull && !signal.aborted;) {
      const batch = await processBatch(app, limit, report)
      processed += batch.length
      isFull = batch.length === limit
      for (const { kind } of batch) kinds.add(kind)
    }
    // A deletion of a message comes as a message.
    if (kinds.has('message') && app.media)
      for (const name of ['media-downloads', 'file-removal'] as const) app.jobs.job(name).wake()
    if (kinds.has('template')) app.jobs.job('template-reads').wake()
    const seconds = await findSecondsUntilNextUpdate(app.db)
    return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
  }
  return { name: 'provider-updates', intervalMs: getIdleMs(app), run }
}

type ReportUnread = (unread: readonly UnreadMessage[]) => void

/** Counts messages that nobody sees yet, and logs one line for each number and reason. */
const createUnreadReport = (app: App): ReportUnread => {
  const reported = new Set<string>()
  return (unread) => {
    for (const { number, why } of unread) {
      app.metrics.inbound.inc({ outcome: why })
      if (reported.has(`${number} ${why}`)) continue
      reported.add(`${number} ${why}`)
      app.log.warn(
        { number, why },
        why === 'no_channel'
          ? 'Messages arrive for a number without a channel; they are kept until it has one'
          : 'A message has a sender of unknown form; it is kept for a later version',
      )
    }
  }
}

const inTransaction = <T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> =>
  withRetries(() => db.transaction().execute(work), MAX_TRANSACTION_ATTEMPTS)

/**
 * Processes all claimed updates in one transaction; when it fails, each in a transaction of its own, so
 * that a bad update holds up no other.
 */
const processBatch = async (app: App, limit: number, report: ReportUnread): Promise<ClaimedUpdate[]> => {
  let claimed: ClaimedUpdate[] = []
  try {
    const applied = await inTransaction(app.db, async (tx) => {
      claimed = await claimUpdates(tx, limit)
      return await applyUpdates(tx, claimed, app)
    })
    report(applied.unread)
    for (const each of applied.news) notifyEvents(app, each)
    return claimed
  } catch (error) {
    if (claimed.length === 0) throw error
    for (const { id } of claimed) await processOne(app, id, report)
    return claimed
  }
}

const processOne = async (app: App, id: string, report: ReportUnread): Promise<void> => {
  let claimed: ClaimedUpdate | undefined
  try {
    const applied = await inTransaction(app.db, async (tx) => {
      claimed = await claimUpdate(tx, id)
      return await applyUpdates(tx, claimed ? [claimed] : [], app)
    })
    report(applied.unread)
    for (const each of applied.news) notifyEvents(app, each)
  } catch (error) {
    if (!claimed) throw error
    const { kind, attempts } = claimed
    const seconds = RETRY_DELAYS_SECONDS[attempts]
    // The update itself is not logged: it holds what customers wrote.
    app.log.error(
      { update: id, kind, attempts: attempts + 1, cause: errorLogDetails(error) },
      seconds === undefined
        ? 'Cannot process an update of the provider; giving up'
        : 'Cannot process an update of the provider; retrying',
    )
    await (seconds === undefined
      ? setAsideProviderUpdates(app.db, [id], 'failed')
      : postponeProviderUpdates(app.db, [{ id, seconds }]))
  }
}
