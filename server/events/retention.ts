import { deleteEventsBefore } from '../../storage/events.ts'
import type { App } from '../core/app.ts'

/** Batches of one run; the next run deletes the rest. */
const MAX_BATCHES = 20

/**
 * Deletes events older than the configured retention, if there is one, except those that a delivery still
 * needs. Returns the count.
 */
export const deleteOldEvents = async (app: App): Promise<number> => {
  const days = app.config.eventRetentionDays
  if (days === undefined) return 0
  const before = new Date(Date.parse(app.now()) - days * 86_400_000).toISOString()
  let deleted = 0
  for (let batch = 0, count = 1; batch < MAX_BATCHES && count > 0; batch++) {
    count = await deleteEventsBefore(app.db, before)
    deleted += count
  }
  return deleted
}
