import { type RawBuilder, sql } from 'kysely'
import type { FieldRow } from '../contacts/custom-fields.ts'
import type { Db } from '../database.ts'

/** The properties of a custom field that are shown with the values of contacts. */
export type CachedField = Pick<FieldRow, 'id' | 'key' | 'label' | 'type' | 'options' | 'visibility'>
export type NamedRef = { id: string; name: string }
/** `sortKey`: the bytes of the folded name as characters, which compare as collation "C" does. */
type CachedName = NamedRef & { sortKey: string }
type CachedNames = { fields: CachedField[]; tag: Map<string, CachedName>; group: Map<string, CachedName> }

const MAX_CACHED_WORKSPACES = 1000
const MAX_CACHED_NAMES = 20_000

/**
 * What contacts refer to by id and what seldom changes: custom fields, and the names of tags and groups.
 * Without the cache, a third of the time of reading contacts was spent on it. The key is
 * `workspaces.names_version`, a random value that a trigger renews with every change of them, so an entry is
 * never stale, on no server and in no transaction. Because the keys are unique across databases, one cache
 * per process serves every app.
 */
const cache = new Map<string, CachedNames>()

/** SQL for the version, as a column beside the rows that need it. */
export const namesVersionColumn = (workspaceId: string | RawBuilder<unknown>) =>
  sql`(select names_version from workspaces where id = ${workspaceId}) as names_version`

/** Returns the cached names of this version; loads the fields of the current one when it is not cached. */
export const loadNames = async (
  tx: Db,
  workspaceId: string,
  version: string | null,
): Promise<CachedNames> => {
  const cached = version === null ? undefined : cache.get(version)
  if (cached) return cached
  // One statement, so that the fields belong to the version that it returns, even when that is a newer one.
  const {
    rows: [row],
  } = await sql<{ version: string | null; fields: CachedField[] | null }>`
    select (select names_version from workspaces where id = ${workspaceId}) as version,
      (select json_agg(json_build_object('id', f.id::text, 'key', f.key, 'label', f.label, 'type', f.type,
          'options', f.options, 'visibility', f.visibility) order by f.id)
        from custom_fields f where f.workspace_id = ${workspaceId} and f.deleted_at is null)
        as fields`.execute(tx)
  const loaded: CachedNames = { fields: row!.fields ?? [], tag: new Map(), group: new Map() }
  if (row!.version === null) return loaded
  if (cache.size >= MAX_CACHED_WORKSPACES) cache.delete(cache.keys().next().value!)
  cache.set(row!.version, loaded)
  return loaded
}

/** Returns the names of these ids, sorted by name; ids that no longer exist are left out. */
const toSortedRefs = (names: ReadonlyMap<string, CachedName>, ids: readonly string[]): NamedRef[] => {
  const found: CachedName[] = []
  for (const id of ids) {
    const name = names.get(id)
    if (name) found.push(name)
  }
  if (found.length > 1) found.sort((a, b) => (a.sortKey < b.sortKey ? -1 : 1))
  return found.map(({ id, name }) => ({ id, name }))
}

/**
 * Returns the names for each list of tag or group ids. Queries the database only for ids that are not cached
 * yet.
 */
export const resolveNames = async (
  tx: Db,
  workspaceId: string,
  names: CachedNames,
  kind: 'tag' | 'group',
  idLists: readonly (readonly string[])[],
): Promise<NamedRef[][]> => {
  const cached = names[kind]
  const missing = idLists.flatMap((ids) => ids.filter((id) => !cached.has(id)))
  if (missing.length === 0) return idLists.map((ids) => toSortedRefs(cached, ids))
  const alreadyCached = idLists.flat().flatMap((id) => cached.get(id) ?? [])
  const rows = await tx
    .selectFrom(kind === 'tag' ? 'tags' : 'groups')
    .select(['id', 'name', 'name_key'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${[...new Set(missing)]}::bigint[])`)
    .execute()
  const loaded = rows.map(({ id, name, name_key: key }): CachedName => ({
    id,
    name,
    sortKey: Buffer.from(key).toString('latin1'),
  }))
  const byId = new Map([...alreadyCached, ...loaded].map((name) => [name.id, name]))
  if (cached.size > MAX_CACHED_NAMES) cached.clear()
  // A name that is created in a transaction may be rolled back.
  if (!tx.isTransaction) for (const name of loaded) cached.set(name.id, name)
  return idLists.map((ids) => toSortedRefs(byId, ids))
}
