import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** What a request for an approval holds sealed: fields of the call that nobody reads. */
export type SealedApproval = { workspace_id: string; id: string; secrets: string }

/** Returns requests whose values another secret sealed than the one with this key id. */
export const listStaleApprovals = async (
  db: Db,
  keyId: string,
  after: SealedApproval | undefined,
  limit: number,
): Promise<SealedApproval[]> =>
  (
    await sql<SealedApproval>`
      select workspace_id, id, secrets from approvals
      where secrets is not null and not starts_with(secrets, ${`${keyId}.`})
        and (workspace_id, id) > (${after?.workspace_id ?? '0'}::bigint, ${after?.id ?? '0'}::bigint)
      order by workspace_id, id limit ${limit}`.execute(db)
  ).rows

/** Replaces sealed values unless they changed, or were erased, meanwhile. Returns whether it did. */
export const replaceSealedApproval = async (
  db: Db,
  before: SealedApproval,
  secrets: string,
): Promise<boolean> => {
  const { numUpdatedRows } = await db
    .updateTable('approvals')
    .set({ secrets })
    .where('workspace_id', '=', before.workspace_id)
    .where('id', '=', before.id)
    .where('secrets', '=', before.secrets)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}
