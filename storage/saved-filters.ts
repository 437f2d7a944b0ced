import { sql } from 'kysely'
import type { Db } from './database.ts'
import { storable } from './ids.ts'
import { containsPattern, fold } from './text.ts'

export type SavedFilterRow = {
  id: string
  kind: 'contact' | 'conversation'
  name: string
  description: string | null
  owner_staff_id: string | null
  filter: Record<string, unknown>
  updated_at: string
}

const columns = sql`id, kind, name, description, owner_staff_id, filter, updated_at`

/** Those of these saved filters that there are. */
export const findSavedFilters = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<SavedFilterRow[]> =>
  (
    await sql<SavedFilterRow>`select ${columns} from saved_filters where workspace_id = ${workspaceId} and id = any(${ids.map(storable)}::bigint[])`.execute(
      tx,
    )
  ).rows

/** One saved filter, locked against other changes. */
export const lockSavedFilter = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<SavedFilterRow | undefined> =>
  (
    await sql<SavedFilterRow>`select ${columns} from saved_filters where workspace_id = ${workspaceId} and id = ${storable(id)} for update`.execute(
      tx,
    )
  ).rows[0]

/**
 * Until the transaction ends, nobody else changes what the workspace's saved filters say: two changes at
 * once could close a circle that neither sees.
 */
export const lockSavedFilterReferences = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`saved_filters ${workspaceId}`}, 0))`.execute(tx)
}

const matching = (workspaceId: string, search: string | undefined) =>
  sql`workspace_id = ${workspaceId} ${search === undefined ? sql`` : sql`and name_key like ${containsPattern(fold(search))}`}`

/** A page by name, and by id where names are the same. */
export const pageOfSavedFilters = async (
  tx: Db,
  workspaceId: string,
  search: string | undefined,
  after: { nameKey: string; id: string } | null,
  limit: number,
): Promise<(SavedFilterRow & { name_key: string })[]> =>
  (
    await sql<SavedFilterRow & { name_key: string }>`
    select ${columns}, name_key from saved_filters
    where ${matching(workspaceId, search)} ${after === null ? sql`` : sql`and (name_key, id) > (${after.nameKey} collate "C", ${after.id}::bigint)`}
    order by name_key, saved_filters.id limit ${limit}`.execute(tx)
  ).rows

export const countSavedFilters = async (
  tx: Db,
  workspaceId: string,
  search: string | undefined,
): Promise<number> =>
  Number(
    (
      await sql<{
        n: string
      }>`select count(*) as n from saved_filters where ${matching(workspaceId, search)}`.execute(tx)
    ).rows[0]!.n,
  )

export type NewSavedFilter = Pick<SavedFilterRow, 'name' | 'description' | 'filter'> & {
  owner_staff_id: string
}

export const insertSavedFilter = async (
  tx: Db,
  workspaceId: string,
  { name, description, owner_staff_id, filter }: NewSavedFilter,
  now: string,
): Promise<SavedFilterRow> =>
  (
    await sql<SavedFilterRow>`
    insert into saved_filters (workspace_id, name, name_key, description, owner_staff_id, filter, created_at, updated_at)
    values (${workspaceId}, ${name}, ${fold(name)}, ${description}, ${owner_staff_id}, ${JSON.stringify(filter)}::jsonb, ${now}, ${now})
    returning ${columns}`.execute(tx)
  ).rows[0]!

/** Writes a row that is locked. */
export const updateSavedFilter = async (
  tx: Db,
  workspaceId: string,
  { id, name, description, filter }: SavedFilterRow,
  now: string,
): Promise<SavedFilterRow> =>
  (
    await sql<SavedFilterRow>`
    update saved_filters set name = ${name}, name_key = ${fold(name)}, description = ${description}, filter = ${JSON.stringify(filter)}::jsonb, updated_at = ${now}
    where workspace_id = ${workspaceId} and id = ${id} returning ${columns}`.execute(tx)
  ).rows[0]!

export const deleteSavedFilter = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`delete from saved_filters where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}
