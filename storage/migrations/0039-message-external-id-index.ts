import type { Kysely } from 'kysely'
import { createIndexConcurrently } from './concurrently.ts'

/** Makes external ids of messages unique in a workspace, and finds messages by them. Only those that have one cost. */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await createIndexConcurrently(
    kysely,
    'messages_external_id',
    'messages (workspace_id, external_id) where external_id is not null',
    'unique',
  )
}
