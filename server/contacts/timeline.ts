import type { Timeline } from '../../storage/contacts.ts'
import type { Actor, Context } from '../core/context.ts'

/** The conversations that a staff member sees with a contact. */
export const timelineOf = ({ staff }: Actor): Timeline => staff.channelIds ?? 'all'

/** PostgreSQL's error for a lock that was not given in time (`lock_not_available`). */
const LOCKED = '55P03'

/**
 * Reads contacts with their conversations; without them while those are locked as a whole, by a migration
 * or by hand: the contact is worth showing, and
 * `unavailable` says what is missing. Within a transaction nothing can be read after a failure.
 */
export const withTimeline = async <T>(
  { tx, actor }: Context,
  read: (timeline: Timeline) => Promise<T>,
): Promise<T> => {
  try {
    return await read(timelineOf(actor))
  } catch (error) {
    if (tx.isTransaction || (error as { code?: string }).code !== LOCKED) throw error
    return await read('none')
  }
}
