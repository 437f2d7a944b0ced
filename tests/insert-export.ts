import { sql } from 'kysely'
import type { Db } from '../storage/database.ts'

/** Inserts an export of a contact whose file was deleted. */
export const insertExpiredExport = async (
  tx: Db,
  { workspaceId, staffId, contactId }: { workspaceId: string; staffId: string; contactId: string },
  now: string,
): Promise<void> => {
  await sql`
    insert into exports (workspace_id, kind, contact_id, state, staff_id, created_at, finished_at, step, counts)
    values (${workspaceId}, 'person', ${contactId}::bigint, 'expired', ${staffId}, ${now}, ${now}, 100,
      ${JSON.stringify({ contacts: 1, messages: 12 })}::text::jsonb)`.execute(tx)
}
