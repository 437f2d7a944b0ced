import { sql } from 'kysely'
import { addToCounters, dropCounter } from './counters.ts'
import type { Db } from './database.ts'
import { storable } from './ids.ts'
import { containsPattern, fold } from './text.ts'

/** Tags and groups: names that contacts carry. Both have the same tables under other names. */
export type LabelKind = 'tag' | 'group'

const tables = {
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

/** A page by name: 25 rows cost one index range and as many small count look-ups. */
export const pageOfLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  search: string | undefined,
  after: { nameKey: string; id: string } | null,
  limit: number,
): Promise<LabelRow[]> => {
  const { labels, extra } = tables[kind]
  const pattern = search === undefined ? null : containsPattern(fold(search))
  const { rows } = await sql<LabelRow>`
    select l.id, l.name, l.name_key, l.created_at${extra},
      coalesce((select sum(n) from counters k where k.workspace_id = l.workspace_id and k.subject = ${`${kind}:`} || l.id), 0)::bigint as contacts_count
    from ${labels} l
    where l.workspace_id = ${workspaceId} ${pattern === null ? sql`` : sql`and l.name_key like ${pattern}`}
      ${after === null ? sql`` : sql`and (l.name_key, l.id) > (${after.nameKey} collate "C", ${after.id}::bigint)`}
    order by l.name_key, l.id limit ${limit}`.execute(tx)
  return rows
}

export const countLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  search: string | undefined,
): Promise<number> => {
  const pattern = search === undefined ? null : containsPattern(fold(search))
  const { rows } = await sql<{ n: string }>`
    select count(*) as n from ${tables[kind].labels} l where l.workspace_id = ${workspaceId} ${pattern === null ? sql`` : sql`and l.name_key like ${pattern}`}`.execute(
    tx,
  )
  return Number(rows[0]!.n)
}

/** Labels with one of these ids or names (folded). */
export const findLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  ids: readonly string[],
  nameKeys: readonly string[],
): Promise<(Label & { name_key: string })[]> =>
  (
    await sql<Label & { name_key: string }>`
    select id, name, name_key from ${tables[kind].labels}
    where workspace_id = ${workspaceId} and (id = any(${ids.map(storable)}::bigint[]) or name_key = any(${nameKeys}::text[]))`.execute(
      tx,
    )
  ).rows

/**
 * Creates the tags that are not there, in the order of their names so that two writers never wait in a
 * circle. Answers the ones created here.
 */
export const insertTags = async (
  tx: Db,
  workspaceId: string,
  names: readonly string[],
  now: string,
): Promise<void> => {
  const sorted = names.map((name) => ({ name, key: fold(name) })).sort((a, b) => (a.key < b.key ? -1 : 1))
  await sql`
    insert into tags (workspace_id, name, name_key, created_at)
    select ${workspaceId}, name, key, ${now}::timestamptz from unnest(${sorted.map((t) => t.name)}::text[], ${sorted.map((t) => t.key)}::text[]) as u (name, key)
    on conflict (workspace_id, name_key) do nothing`.execute(tx)
}

export type GroupRow = Label & { emoji: string | null }

export const findGroupByName = async (
  tx: Db,
  workspaceId: string,
  name: string,
): Promise<GroupRow | undefined> =>
  (
    await sql<GroupRow>`select id, name, emoji from groups where workspace_id = ${workspaceId} and name_key = ${fold(name)}`.execute(
      tx,
    )
  ).rows[0]

/** Undefined when a group of this name is there already. */
export const insertGroup = async (
  tx: Db,
  workspaceId: string,
  name: string,
  emoji: string | null,
  now: string,
): Promise<GroupRow | undefined> =>
  (
    await sql<GroupRow>`
    insert into groups (workspace_id, name, name_key, emoji, created_at) values (${workspaceId}, ${name}, ${fold(name)}, ${emoji}, ${now})
    on conflict (workspace_id, name_key) do nothing returning id, name, emoji`.execute(tx)
  ).rows[0]

/** A group that stays while contacts are put into it. */
export const lockGroup = async (
  tx: Db,
  workspaceId: string,
  id: string,
  forDelete = false,
): Promise<GroupRow | undefined> =>
  (
    await sql<GroupRow>`
    select id, name, emoji from groups where workspace_id = ${workspaceId} and id = ${storable(id)} ${forDelete ? sql`for update` : sql`for share`}`.execute(
      tx,
    )
  ).rows[0]

/** Those of these groups that there are; they stay until contacts are in them. */
export const lockGroups = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<Label[]> =>
  (
    await sql<Label>`
    select id, name from groups where workspace_id = ${workspaceId} and id = any(${ids.map(storable)}::bigint[]) order by groups.id for key share`.execute(
      tx,
    )
  ).rows

export const deleteGroupRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`
    with l as (delete from contact_groups where workspace_id = ${workspaceId} and group_id = ${id})
    delete from groups where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
  await dropCounter(tx, workspaceId, `group:${id}`)
}

/**
 * Which of these contacts there are, locked in the order of their ids so that they stay until the labels
 * are written.
 */
export const lockContacts = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`
    select id from contacts where workspace_id = ${workspaceId} and id = any(${ids.map(storable)}::bigint[]) order by contacts.id for no key update`.execute(
    tx,
  )
  return rows.map((row) => row.id)
}

/** Puts every label on every contact. Answers the pairs that are new. */
export const linkLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  labelIds: readonly string[],
  contactIds: readonly string[],
): Promise<{ label: string; contact: string }[]> => {
  const { links, column } = tables[kind]
  const { rows } = await sql<{ label: string; contact: string }>`
    insert into ${links} (workspace_id, ${column}, contact_id)
    select ${workspaceId}, l, c from unnest(${labelIds}::bigint[]) as l, unnest(${contactIds}::bigint[]) as c order by l, c
    on conflict do nothing returning ${column} as label, contact_id as contact`.execute(tx)
  await addToCounters(tx, workspaceId, tally(kind, rows, 1))
  return rows
}

/** Takes every label off every contact. Answers the pairs that were there. */
export const unlinkLabels = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
  labelIds: readonly string[],
  contactIds: readonly string[],
): Promise<{ label: string; contact: string }[]> => {
  const { links, column } = tables[kind]
  const { rows } = await sql<{ label: string; contact: string }>`
    delete from ${links} where workspace_id = ${workspaceId} and ${column} = any(${labelIds}::bigint[]) and contact_id = any(${contactIds}::bigint[])
    returning ${column} as label, contact_id as contact`.execute(tx)
  await addToCounters(tx, workspaceId, tally(kind, rows, -1))
  return rows
}

const tally = (kind: LabelKind, pairs: readonly { label: string }[], by: 1 | -1): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const { label } of pairs) counts.set(`${kind}:${label}`, (counts.get(`${kind}:${label}`) ?? 0) + by)
  return counts
}
