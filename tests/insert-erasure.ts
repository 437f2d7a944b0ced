import { reserveContactIds } from '../storage/contacts/contacts.ts'
import type { Db } from '../storage/database.ts'
import { erasureVersions } from '../server/domains/erasures/steps.ts'
import { finishErasure, insertErasure } from '../storage/privacy/erasures.ts'
import { cancelRun } from '../storage/work/runs.ts'

/** Inserts the receipt of an erasure that is done, of a contact that never was. */
export const insertDoneErasure = async (
  tx: Db,
  { workspaceId, staffId }: { workspaceId: string; staffId: string },
  now: string,
): Promise<void> => {
  const [contactId] = await reserveContactIds(tx, 1)
  const id = await insertErasure(tx, {
    workspace_id: workspaceId,
    contact_id: contactId!,
    staff_id: staffId,
    created_at: now,
    counts: { contacts: { deleted: 1 }, messages: { cleared: 12 }, events: { cleared: 14 } },
    subject: {
      contactIds: [],
      conversationIds: [],
      phones: [],
      texts: [],
      names: [],
      lastUpdateId: '0',
    },
    needs_version: erasureVersions.at(-1)!,
  })
  await cancelRun(tx, { workspace_id: workspaceId, kind: 'erasures', subject: id })
  await finishErasure(tx, workspaceId, id, now)
}
