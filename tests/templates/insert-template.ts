import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'

/** A template in any state; `components` are in the provider's shape. */
export type NewTemplate = {
  account_id: string | null
  account_name?: string | null
  provider_id?: string | null
  name: string
  language: string
  category: string | null
  sub_category?: string | null
  status: string
  rejection_reason?: string | null
  components: readonly unknown[]
  submitted_by?: string | null
}

/** Returns the id. Violates the unique key when the account has a template of this name and language. */
export const insertTemplate = async (
  tx: Db,
  workspaceId: string,
  template: NewTemplate,
  now: string,
): Promise<string> => {
  const { components, ...columns } = template
  const { id } = await tx
    .insertInto('templates')
    .values({
      account_name: null,
      provider_id: null,
      sub_category: null,
      rejection_reason: null,
      submitted_by: null,
      meta_errors: null,
      archived_at: null,
      ...columns,
      workspace_id: workspaceId,
      components: sql`${JSON.stringify(components)}::jsonb`,
      created_at: now,
      updated_at: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}
