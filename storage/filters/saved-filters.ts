import { sql } from 'kysely'
import type { Db } from '../database.ts'
import type { LabelKind } from '../labels/labels.ts'
import { deleteMemberships, deleteTracking } from './memberships.ts'
import { toStorableId } from '../values/ids.ts'
import { containsPattern, fold } from '../values/text.ts'

export type SavedFilterRow = {
  id: string
  kind: 'contact' | 'conversation'
  name: string
  description: string | null
  owner_staff_id: string | null
  filter: Record<string, unknown>
  updated_at: string
  version: number
}

const columns = [
  'id',
  'kind',
  'name',
  'description',
  'owner_staff_id',
  'filter',
  'updated_at',
  'version',
] as const

/** Returns those of these saved filters that exist. */
export const findSavedFilters = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<SavedFilterRow[]> =>
  await tx
    .selectFrom('saved_filters')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids.map(toStorableId)}::bigint[])`)
    .$castTo<SavedFilterRow>()
    .execute()

/** Returns a saved filter, locked; undefined when there is none. */
export const lockSavedFilter = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<SavedFilterRow | undefined> =>
  await tx
    .selectFrom('saved_filters')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .forUpdate()
    .$castTo<SavedFilterRow>()
    .executeTakeFirst()

/**
 * Locks what the workspace's saved filters name until the transaction ends: two concurrent changes could otherwise
 * create a cycle that neither of them detects, and a new filter keep a name that a tag has just lost.
 */
export const lockSavedFilterReferences = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`saved_filters ${workspaceId}`}, 0))`.execute(tx)
}

export type SavedFilterListRequest = {
  /** Part of the name, ignoring case. */
  search: string | undefined
  after: { nameKey: string; id: string } | null
  limit: number
}

const selectMatching = (tx: Db, workspaceId: string, search: string | undefined) =>
  tx
    .selectFrom('saved_filters')
    .where('workspace_id', '=', workspaceId)
    .$if(search !== undefined, (query) => query.where('name_key', 'like', containsPattern(fold(search!))))

/** Lists a page by name, and by id where names are the same. */
export const listSavedFilterPage = async (
  tx: Db,
  workspaceId: string,
  { search, after, limit }: SavedFilterListRequest,
): Promise<(SavedFilterRow & { name_key: string })[]> =>
  await selectMatching(tx, workspaceId, search)
    .select([...columns, 'name_key'])
    .$if(after !== null, (query) =>
      query.where(sql<boolean>`(name_key, id) > (${after!.nameKey} collate "C", ${after!.id}::bigint)`),
    )
    .orderBy('name_key')
    .orderBy('id')
    .limit(limit)
    .$castTo<SavedFilterRow & { name_key: string }>()
    .execute()

export const countSavedFilters = async (
  tx: Db,
  workspaceId: string,
  search: string | undefined,
): Promise<number> => {
  const { n } = await selectMatching(tx, workspaceId, search)
    .select(({ fn }) => fn.countAll<string>().as('n'))
    .executeTakeFirstOrThrow()
  return Number(n)
}

export type NewSavedFilter = Pick<SavedFilterRow, 'name' | 'description' | 'filter'> & {
  owner_staff_id: string
}

export const insertSavedFilter = async (
  tx: Db,
  workspaceId: string,
  { name, description, owner_staff_id, filter }: NewSavedFilter,
  now: string,
): Promise<SavedFilterRow> =>
  await tx
    .insertInto('saved_filters')
    .values({
      workspace_id: workspaceId,
      name,
      name_key: fold(name),
      description,
      owner_staff_id,
      filter: sql`${JSON.stringify(filter)}::jsonb`,
      created_at: now,
      updated_at: now,
    })
    .returning(columns)
    .$castTo<SavedFilterRow>()
    .executeTakeFirstOrThrow()

/** Updates a locked row. */
export const updateSavedFilterRow = async (
  tx: Db,
  workspaceId: string,
  { id, name, description, filter }: SavedFilterRow,
  now: string,
): Promise<SavedFilterRow> =>
  await tx
    .updateTable('saved_filters')
    .set({
      name,
      name_key: fold(name),
      description,
      filter: sql`${JSON.stringify(filter)}::jsonb`,
      updated_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning(columns)
    .$castTo<SavedFilterRow>()
    .executeTakeFirstOrThrow()

/** Returns every saved filter of a workspace, by id. */
export const listAllSavedFilters = async (
  tx: Db,
  workspaceId: string,
): Promise<Pick<SavedFilterRow, 'id' | 'name' | 'filter'>[]> =>
  await tx
    .selectFrom('saved_filters')
    .select(['id', 'name', 'filter'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .$castTo<Pick<SavedFilterRow, 'id' | 'name' | 'filter'>>()
    .execute()

/** Locks the saved filters that test tags or groups, in the order of their ids. */
export const lockFiltersOf = async (
  tx: Db,
  workspaceId: string,
  kind: LabelKind,
): Promise<Pick<SavedFilterRow, 'id' | 'name' | 'filter'>[]> =>
  await tx
    .selectFrom('saved_filters')
    .select(['id', 'name', 'filter'])
    .where('workspace_id', '=', workspaceId)
    .where(sql<boolean>`filter::text like ${`%"${kind}s":%`}`)
    .orderBy('id')
    .forUpdate()
    .$castTo<Pick<SavedFilterRow, 'id' | 'name' | 'filter'>>()
    .execute()

/** Replaces the conditions of locked saved filters. */
export const replaceFilters = async (
  tx: Db,
  workspaceId: string,
  rows: readonly Pick<SavedFilterRow, 'id' | 'filter'>[],
  now: string,
): Promise<void> => {
  await sql`
    update saved_filters f set filter = u.filter::jsonb, updated_at = ${now}::timestamptz
    from unnest(${rows.map(({ id }) => id)}::bigint[], ${rows.map(({ filter }) => JSON.stringify(filter))}::text[])
      as u (id, filter)
    where f.workspace_id = ${workspaceId} and f.id = u.id`.execute(tx)
}

export const deleteSavedFilterRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await tx.deleteFrom('saved_filters').where('workspace_id', '=', workspaceId).where('id', '=', id).execute()
  await deleteTracking(tx, workspaceId, id)
  await deleteMemberships(tx, workspaceId, { filterId: id })
}
