import { sql } from 'kysely'
import { deleteCounter } from '../workspace/counters.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold } from '../values/text.ts'

/** Tags and groups are labels of contacts. Both have the same tables under other names. */
export type LabelKind = 'tag' | 'group'

/** Their tables and columns. */
export const labelTables = {
  tag: {
    labels: sql.raw('tags'),
    links: sql.raw('contact_tags'),
    column: sql.raw('tag_id'),
    extra: sql.raw(''),
  },
  group: {
    labels: sql.raw('groups'),
    links: sql.raw('contact_groups'),
    column: sql.raw('group_id'),
    extra: sql.raw(', l.emoji'),
  },
} as const

export type LabelRow = {
  id: string
  name: string
  name_key: string
  created_at: string
  contacts_count: string
  emoji?: string | null
}
export type Label = { id: string; name: string }

export type LabelListRequest = {
  /** Part of the name, ignoring case. */
  search: string | undefined
  after: { nameKey: string; id: string } | null
  limit: number
}

const matchesSearch = (search: string | undefined) =>
  search === undefined ? sql`` : sql`and l.name_key like ${containsPattern(fold(search))}`

/** Lists a page by name: 25 rows cost one index range and as many small count look-ups. */
export const listLabelPage = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  { search, after, limit }: LabelListRequest,
): Promise<LabelRow[]> => {
  const { labels, extra } = labelTables[kind]
  const isAfter =
    after === null ? sql`` : sql`and (l.name_key, l.id) > (${after.nameKey} collate "C", ${after.id}::bigint)`
  const { rows } = await sql<LabelRow>`
    select l.id, l.name, l.name_key, l.created_at${extra},
      coalesce((
        select sum(n) from counters k
        where k.workspace_id = l.workspace_id
          and k.subject = ${`${kind}:`} || l.id), 0)::bigint as contacts_count
    from ${labels} l
    where l.workspace_id = ${workspaceId} ${matchesSearch(search)} ${isAfter}
    order by l.name_key, l.id limit ${limit}`.execute(tx)
  return rows
}

export const countLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  search: string | undefined,
): Promise<number> => {
  const { rows } = await sql<{ n: string }>`
    select count(*) as n from ${labelTables[kind].labels} l
    where l.workspace_id = ${workspaceId} ${matchesSearch(search)}`.execute(tx)
  return Number(rows[0]!.n)
}

/** Lists the names of labels, at most `limit`. */
export const listLabelNames = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  limit: number,
): Promise<string[]> =>
  (
    await tx
      .selectFrom(kind === 'tag' ? 'tags' : 'groups')
      .select('name')
      .where('workspace_id', '=', workspaceId)
      .orderBy('name_key')
      .limit(limit)
      .execute()
  ).map(({ name }) => name)

/** Finds labels by ids or folded names. */
export const findLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  ids: readonly string[],
  nameKeys: readonly string[],
): Promise<(Label & { name_key: string })[]> =>
  (
    await sql<Label & { name_key: string }>`
    select id, name, name_key from ${labelTables[kind].labels}
    where workspace_id = ${workspaceId} and (id = any(${ids.map(toStorableId)}::bigint[])
      or name_key = any(${nameKeys}::text[]))`.execute(tx)
  ).rows

/** Creates the tags that do not exist, in the order of their names, so that two writers cannot deadlock. */
export const insertTags = async (
  tx: Db,
  workspaceId: string,
  names: readonly string[],
  now: string,
): Promise<void> => {
  const sorted = names.map((name) => ({ name, key: fold(name) })).sort((a, b) => (a.key < b.key ? -1 : 1))
  await sql`
    insert into tags (workspace_id, name, name_key, created_at)
    select ${workspaceId}, name, key, ${now}::timestamptz
      from unnest(${sorted.map((t) => t.name)}::text[], ${sorted.map((t) => t.key)}::text[]) as u (name, key)
    on conflict (workspace_id, name_key) do nothing`.execute(tx)
}

export type GroupRow = Label & { emoji: string | null }

const groupColumns = ['id', 'name', 'emoji'] as const

export const findGroupByName = async (
  tx: Db,
  workspaceId: string,
  name: string,
): Promise<GroupRow | undefined> =>
  await tx
    .selectFrom('groups')
    .select(groupColumns)
    .where('workspace_id', '=', workspaceId)
    .where('name_key', '=', fold(name))
    .executeTakeFirst()

/** Inserts a group; undefined when one with this name exists. */
export const insertGroup = async (
  tx: Db,
  workspaceId: string,
  name: string,
  emoji: string | null,
  now: string,
): Promise<GroupRow | undefined> =>
  await tx
    .insertInto('groups')
    .values({ workspace_id: workspaceId, name, name_key: fold(name), emoji, created_at: now })
    .onConflict((conflict) => conflict.columns(['workspace_id', 'name_key']).doNothing())
    .returning(groupColumns)
    .executeTakeFirst()

/** Locks a group, so that it is not deleted while contacts are added; undefined when there is none. */
export const lockGroup = async (
  tx: Db,
  workspaceId: string,
  id: string,
  forDelete = false,
): Promise<GroupRow | undefined> => {
  const query = tx
    .selectFrom('groups')
    .select(groupColumns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
  return await (forDelete ? query.forUpdate() : query.forShare()).executeTakeFirst()
}

/** Locks those of these groups that exist, so that they are not deleted while contacts are added. */
export const lockGroups = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<Label[]> =>
  await tx
    .selectFrom('groups')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids.map(toStorableId)}::bigint[])`)
    .orderBy('id')
    .forKeyShare()
    .execute()

/** Returns the tag, locked for a change. */
export const lockTag = async (tx: Db, workspaceId: string, id: string): Promise<Label | undefined> =>
  await tx
    .selectFrom('tags')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .forUpdate()
    .executeTakeFirst()

/** Finds tags by ids or folded names, locked so that they are not deleted while contacts get them. */
export const lockTags = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
  nameKeys: readonly string[],
): Promise<(Label & { name_key: string })[]> =>
  await tx
    .selectFrom('tags')
    .select(['id', 'name', 'name_key'])
    .where('workspace_id', '=', workspaceId)
    .where((where) =>
      where.or([
        where('id', '=', sql<string>`any(${ids.map(toStorableId)}::bigint[])`),
        where('name_key', '=', sql<string>`any(${nameKeys}::text[])`),
      ]),
    )
    .orderBy('id')
    .forKeyShare()
    .execute()

/** Deletes a locked tag, and removes it from contacts and conversations. */
export const deleteTagRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`
    with c as (delete from contact_tags where workspace_id = ${workspaceId} and tag_id = ${id}),
    v as (delete from conversation_tags where workspace_id = ${workspaceId} and tag_id = ${id})
    delete from tags where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
  await deleteCounter(tx, workspaceId, `tag:${id}`)
}

export const renameTagRow = async (tx: Db, workspaceId: string, id: string, name: string): Promise<void> => {
  await tx
    .updateTable('tags')
    .set({ name, name_key: fold(name) })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

export const updateGroupRow = async (
  tx: Db,
  workspaceId: string,
  { id, name, emoji }: GroupRow,
): Promise<void> => {
  await tx
    .updateTable('groups')
    .set({ name, name_key: fold(name), emoji })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

export const deleteGroupRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`
    with l as (delete from contact_groups where workspace_id = ${workspaceId} and group_id = ${id})
    delete from groups where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
  await deleteCounter(tx, workspaceId, `group:${id}`)
}

/** Whether one of these contacts exists. */
export const hasContacts = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<boolean> =>
  (await tx
    .selectFrom('contacts')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids.map(toStorableId)}::bigint[])`)
    .limit(1)
    .executeTakeFirst()) !== undefined
