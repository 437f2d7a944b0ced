import { searchText } from '../contacts/contacts.ts'
import { moveContactRecords } from '../contacts/merge.ts'
import { recordMerge, recordMergeResult } from '../contacts/merges.ts'
import { addToCounters } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import { fold } from '../values/text.ts'

/** Inserts a contact that was merged into another one, which gained nothing by it. */
export const insertDemoMerge = async (
  tx: Db,
  workspaceId: string,
  { name, intoId }: { name: string; intoId: string },
  now: string,
): Promise<void> => {
  const { id } = await tx
    .insertInto('contacts')
    .values({
      workspace_id: workspaceId,
      name,
      name_key: fold(name),
      search: searchText(name, null),
      created_at: now,
      updated_at: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  await addToCounters(tx, workspaceId, new Map([['contacts', 1]]))
  await recordMerge(tx, workspaceId, { fromId: id, intoId }, now)
  await moveContactRecords(tx, workspaceId, id, intoId)
  await recordMergeResult(tx, workspaceId, id)
}
