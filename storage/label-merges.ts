import { sql } from 'kysely'
import { addToCounters, deleteCounter } from './counters.ts'
import type { Db } from './database.ts'
import { toStorableId } from './ids.ts'
import type { Label } from './labels.ts'

/** Merges of tags, and the locks that keep labels while contacts that have them are merged or deleted. */

/** Locks the groups of a contact against deletion, so that they can be given to another one. */
export const lockGroupsOf = async (tx: Db, workspaceId: string, contactId: string): Promise<void> => {
  await tx
    .selectFrom('groups')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', (groupIds) =>
      groupIds
        .selectFrom('contact_groups')
        .select('group_id')
        .where('workspace_id', '=', workspaceId)
        .where('contact_id', '=', contactId),
    )
    .orderBy('id')
    .forKeyShare()
    .execute()
}

/** Locks the tags of contacts against deletion, so that they can be given to others. */
export const lockTagsOf = async (
  tx: Db,
  workspaceId: string,
  contactIds: readonly string[],
): Promise<void> => {
  await tx
    .selectFrom('tags')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', (tagIds) =>
      tagIds
        .selectFrom('contact_tags')
        .select('tag_id')
        .where('workspace_id', '=', workspaceId)
        .where('contact_id', '=', sql<string>`any(${contactIds}::bigint[])`),
    )
    .orderBy('id')
    .forKeyShare()
    .execute()
}

/** How many contacts and conversations got a tag that was merged into another one, without those that had both. */
export type MergedTag = { contacts: number; conversations: number }

/** Deletes a locked tag, and gives what has it another locked one. */
export const mergeTagRow = async (
  tx: Db,
  workspaceId: string,
  otherId: string,
  intoId: string,
): Promise<MergedTag> => {
  const { rows } = await sql<MergedTag>`
    with c as (delete from contact_tags where workspace_id = ${workspaceId} and tag_id = ${otherId}
      returning contact_id),
    nc as (insert into contact_tags (workspace_id, tag_id, contact_id)
      select ${workspaceId}::bigint, ${intoId}::bigint, contact_id from c on conflict do nothing returning 1),
    v as (delete from conversation_tags where workspace_id = ${workspaceId} and tag_id = ${otherId}
      returning conversation_id),
    nv as (insert into conversation_tags (workspace_id, conversation_id, tag_id)
      select ${workspaceId}::bigint, conversation_id, ${intoId}::bigint from v on conflict do nothing returning 1),
    t as (delete from tags where workspace_id = ${workspaceId} and id = ${otherId})
    select (select count(*)::int from nc) as contacts, (select count(*)::int from nv) as conversations`.execute(
    tx,
  )
  const merged = rows[0]!
  if (merged.contacts > 0) await addToCounters(tx, workspaceId, new Map([[`tag:${intoId}`, merged.contacts]]))
  await deleteCounter(tx, workspaceId, `tag:${otherId}`)
  return merged
}

/** Locks tags for a change, in the order of their ids. Returns those that exist. */
export const lockTagsForChange = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<Label[]> =>
  await tx
    .selectFrom('tags')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids.map(toStorableId)}::bigint[])`)
    .orderBy('id')
    .forUpdate()
    .execute()
