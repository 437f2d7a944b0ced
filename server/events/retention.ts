import { deleteEventsBefore } from '../../storage/events.ts'
import type { App } from '../app.ts'

/** Rounds of one cleaning; the rest waits for the next one. */
const MOST_ROUNDS = 20

/**
 * Forgets events older than the server keeps them, where it does not keep them for ever. Those that a
 * delivery waits for stay.
 */
export const dropOldEvents = async (app: App): Promise<void> => {
  const days = app.config.eventRetentionDays
  if (days === undefined) return
  const before = new Date(Date.parse(app.now()) - days * 86_400_000).toISOString()
  for (let round = 0; round < MOST_ROUNDS && (await deleteEventsBefore(app.db, before)) > 0; round++);
}
