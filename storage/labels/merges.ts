import { sql } from 'kysely'
import { addToCounters, deleteCounter } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
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

/** One statement for a tag of everybody would take longer than a statement may. */
const MAX_MOVED = 50_000
const MAX_ID = '9223372036854775807'

const tagLinks = {
  contacts: { links: sql.raw('contact_tags'), column: sql.raw('contact_id') },
  conversations: { links: sql.raw('conversation_tags'), column: sql.raw('conversation_id') },
} as const

/** Lists the ids that end each range of `MAX_MOVED` links of a tag, and the highest id. */
const listRangeEnds = async (
  tx: Db,
  workspaceId: string,
  { links, column }: (typeof tagLinks)[keyof typeof tagLinks],
  tagId: string,
): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    select id from (
      select ${column} as id, row_number() over (order by ${column}) as n from ${links}
      where workspace_id = ${workspaceId} and tag_id = ${tagId}
    ) as l
    where n % ${MAX_MOVED}::int = 0 order by id`.execute(tx)
  return [...rows.map(({ id }) => id), MAX_ID]
}

/**
 * Gives what has a locked tag another locked one, in statements of `MAX_MOVED` links. Returns how many did not have
 * it. Who gives a tag locks it first, so that nothing gets the other one behind the range. All give a tag in the order
 * of the ids, so that none waits for another in a circle.
 */
const moveLinks = async (
  tx: Db,
  workspaceId: string,
  of: keyof typeof tagLinks,
  otherId: string,
  intoId: string,
): Promise<number> => {
  const { links, column } = tagLinks[of]
  let moved = 0
  let after = '0'
  for (const end of await listRangeEnds(tx, workspaceId, tagLinks[of], otherId)) {
    const { rows } = await sql<{ n: number }>`
      with d as (delete from ${links} where workspace_id = ${workspaceId} and tag_id = ${otherId}
        and ${column} > ${after}::bigint and ${column} <= ${end}::bigint returning ${column} as id),
      m as (insert into ${links} (workspace_id, tag_id, ${column})
        select ${workspaceId}::bigint, ${intoId}::bigint, id from d order by id on conflict do nothing returning 1)
      select count(*)::int as n from m`.execute(tx)
    moved += rows[0]!.n
    after = end
  }
  return moved
}

/** Deletes a locked tag, and gives what has it another locked one. */
export const mergeTagRow = async (
  tx: Db,
  workspaceId: string,
  otherId: string,
  intoId: string,
): Promise<MergedTag> => {
  const contacts = await moveLinks(tx, workspaceId, 'contacts', otherId, intoId)
  const conversations = await moveLinks(tx, workspaceId, 'conversations', otherId, intoId)
  await tx.deleteFrom('tags').where('workspace_id', '=', workspaceId).where('id', '=', otherId).execute()
  if (contacts > 0) await addToCounters(tx, workspaceId, new Map([[`tag:${intoId}`, contacts]]))
  await deleteCounter(tx, workspaceId, `tag:${otherId}`)
  return { contacts, conversations }
}

/**
 * Locks two tags for a merge, in the order of their ids: the other one against any use, and the one that stays against
 * changes and deletion alone, so that it is given to contacts meanwhile. Returns those that exist.
 */
export const lockTagsForMerge = async (
  tx: Db,
  workspaceId: string,
  intoId: string,
  otherId: string,
): Promise<Label[]> => {
  const found: Label[] = []
  for (const id of [intoId, otherId].map(toStorableId).sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))) {
    const query = tx
      .selectFrom('tags')
      .select(['id', 'name'])
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
    const isOther = id === toStorableId(otherId)
    const tag = await (isOther ? query.forUpdate() : query.forNoKeyUpdate()).executeTakeFirst()
    if (tag) found.push(tag)
  }
  return found
}
