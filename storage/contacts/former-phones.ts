import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** Numbers that contacts had until `crm_change_phone` gave them another one, by the keys of their lines. */

/** Of several contacts that had one line, the last counts. */
export const rememberFormerPhone = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
  key: string,
  now: string,
): Promise<void> => {
  await tx
    .insertInto('contact_former_phones')
    .values({ workspace_id: workspaceId, line_key: key, contact_id: contactId, changed_at: now })
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'line_key']).doUpdateSet({ contact_id: contactId, changed_at: now }),
    )
    .execute()
}

/** Forgets a line as a former one: a contact has it again. */
export const forgetFormerPhone = async (tx: Db, workspaceId: string, key: string): Promise<void> => {
  await tx
    .deleteFrom('contact_former_phones')
    .where('workspace_id', '=', workspaceId)
    .where('line_key', '=', key)
    .execute()
}

/** Deletes the numbers that contacts lost before a time, `limit` at most. Returns the count. */
export const deleteFormerPhonesBefore = async (db: Db, before: string, limit: number): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from contact_former_phones p
    using (select workspace_id, line_key from contact_former_phones
      where changed_at < ${before} order by changed_at limit ${limit} for update skip locked) old
    where p.workspace_id = old.workspace_id and p.line_key = old.line_key`.execute(db)
  return Number(numAffectedRows ?? 0)
}
