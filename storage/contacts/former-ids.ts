import { sql } from 'kysely'
import type { Db } from '../database.ts'

/**
 * Numbers, by the keys of their lines, and user ids that contacts had until they got others. `left_at`: until when the
 * provider says that it was theirs; null where staff changed the number.
 */
export type FormerId = { id_key: string; contact_id: string; left_at: string | null }

/** Of several contacts that had one number or user id, the last counts. */
export const rememberFormerId = async (
  tx: Db,
  workspaceId: string,
  former: FormerId,
  now: string,
): Promise<void> => {
  const { id_key: _, ...rest } = former
  await tx
    .insertInto('contact_former_ids')
    .values({ workspace_id: workspaceId, ...former, changed_at: now })
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'id_key']).doUpdateSet({ ...rest, changed_at: now }),
    )
    .execute()
}

/** Forgets a line as a former one: a contact has it again. */
export const forgetFormerPhone = async (tx: Db, workspaceId: string, key: string): Promise<void> => {
  await tx
    .deleteFrom('contact_former_ids')
    .where('workspace_id', '=', workspaceId)
    .where('id_key', '=', key)
    .execute()
}

/** Deletes the numbers and user ids that contacts lost before a time, `limit` at most. Returns the count. */
export const deleteFormerIdsBefore = async (db: Db, before: string, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from contact_former_ids p
    using (select workspace_id, id_key from contact_former_ids
      where changed_at < ${before} order by changed_at limit ${limit} for update skip locked) old
    where p.workspace_id = old.workspace_id and p.id_key = old.id_key`.execute(db)
  return Number(numAffectedRows ?? 0)
}
