import type { Kysely } from 'kysely'
import { createIndexConcurrently } from './concurrently.ts'

/**
 * Makes external ids unique in a workspace, and finds contacts by them. Only contacts that have one are in it, so that
 * the others cost no write.
 */
export const up = async (kysely: Kysely<unknown>): Promise<void> => {
  await createIndexConcurrently(
    kysely,
    'contacts_external_id',
    'contacts (workspace_id, external_id) where external_id is not null',
    'unique',
  )
}
