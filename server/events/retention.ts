import { deleteEventsBefore } from '../../storage/events.ts'
import type { App } from '../core/app.ts'
import { deleteInBatches } from '../jobs/delete-in-batches.ts'
import { daysAgo, maintainPartitions } from '../jobs/partitions.ts'

/**
 * Deletes events older than the configured retention, if there is one, except those that a delivery still
 * needs: whole partitions, then what is too old in the others. Returns the count of the latter.
 */
export const deleteOldEvents = async (app: App, signal?: AbortSignal): Promise<number> => {
  const days = app.config.eventRetentionDays
  await maintainPartitions(app, 'events')
  if (days === undefined) return 0
  const before = daysAgo(app.now(), days)
  return await deleteInBatches((limit) => deleteEventsBefore(app.db, before, limit), signal)
}
