import type { Context } from '../../handler.ts'
import type { TimelineScope } from '../../../storage/contacts/contacts.ts'
import { errorCode } from '../../../storage/client/error-codes.ts'
import type { Actor } from '../../kernel/context.ts'
import { listVisibleChannels } from '../../visibility/policy.ts'

/** Returns which conversations of a contact the staff member may see. */
export const getTimelineScope = (actor: Actor): TimelineScope => listVisibleChannels(actor) ?? 'all'

/**
 * Reads contacts with their conversations. While the whole table is locked, by a migration or manually, the
 * contacts are returned without them, and `unavailable` says what is missing. Within a transaction the error
 * is thrown, since nothing can be read after it.
 */
export const withTimeline = async <T>(
  { tx, actor }: Context,
  read: (timeline: TimelineScope) => Promise<T>,
): Promise<T> => {
  try {
    return await read(getTimelineScope(actor))
  } catch (error) {
    if (tx.isTransaction || (error as { code?: string }).code !== errorCode.lockNotAvailable) throw error
    return await read('none')
  }
}
