import { markIncompleteConsumers } from '../../../storage/events/consumers.ts'
import { deleteEventsBefore } from '../../../storage/events/deletions.ts'
import type { App } from '../../app.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { daysAgo, maintainPartitions } from '../../work/partitions.ts'

/**
 * Consumers are marked so long before what they have not acknowledged is deleted: one that comes back to an old event
 * is marked by the next run, and its events are there until then.
 */
const MARGIN_DAYS = 10 / (24 * 60)

/**
 * Deletes events older than the configured retention, if there is one, except those that a delivery still
 * needs: whole partitions, then what is too old in the others. Returns the count of the latter.
 */
export const deleteOldEvents = async (app: App, signal?: AbortSignal): Promise<number> => {
  const days = app.config.eventRetentionDays
  if (days !== null) await markIncompleteConsumers(app.db, daysAgo(app.now(), days - MARGIN_DAYS))
  await maintainPartitions(app, 'events')
  if (days === null) return 0
  const before = daysAgo(app.now(), days)
  return await changeInBatches((limit) => deleteEventsBefore(app.db, before, limit), signal)
}
