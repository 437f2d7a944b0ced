import type { Kysely } from 'kysely'
import { createIndexConcurrently } from './concurrently.ts'

/**
 * Finds the recipient of a message, whose status it has; and those to whom nothing was sent yet. Recipients of
 * broadcasts that are over are in neither.
 */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await createIndexConcurrently(
    kysely,
    'broadcast_recipients_message',
    'broadcast_recipients (workspace_id, message_id) where message_id is not null',
  )
  await createIndexConcurrently(
    kysely,
    'broadcast_recipients_waiting',
    `broadcast_recipients (workspace_id, broadcast_id, country, contact_id)
      where status = 'pending' and message_id is null`,
  )
}
