import type { Database } from './database.ts'

type Label = { id: string; name: string; sortKey: string }
export type Field = {
  id: string
  key: string
  label: string
  type: string
  options: { value: string; label: string }[] | null
}
export type Names = { fields: Field[]; tags: Map<string, Label>; groups: Map<string, Label> }

/** The column that tells whether the names in memory are current. `$1`: the workspace. */
export const versionColumn = '(select names_version from workspaces where id = $1) as names_version'

type LoadedLabel = { id: string; name: string; key: string }
const toMap = (labels: LoadedLabel[] | null): Map<string, Label> =>
  new Map(
    (labels ?? []).map(({ id, name, key }) => [
      id,
      { id, name, sortKey: Buffer.from(key).toString('latin1') },
    ]),
  )

const loadNames = async ({ quick, workspaceId }: Database): Promise<[version: string, Names]> => {
  const labels = (table: string) => `(select json_agg(json_build_object('id', id::text, 'name', name,
    'key', name_key)) from ${table} where workspace_id = $1)`
  const [row] = await quick(
    `select ${versionColumn}, (select json_agg(json_build_object('id', id::text, 'key', key, 'label', label,
        'type', type, 'options', options) order by id)
        from custom_fields where workspace_id = $1 and deleted_at is null) as fields,
      ${labels('tags')} as tags, ${labels('groups')} as groups`,
    [workspaceId],
  )
  const { names_version, fields, tags, groups } = row as {
    names_version: string
    fields: Field[] | null
    tags: LoadedLabel[] | null
    groups: LoadedLabel[] | null
  }
  return [names_version, { fields: fields ?? [], tags: toMap(tags), groups: toMap(groups) }]
}

/** Remembers the custom fields and the names of tags and groups until their version changes. */
export const createNamesCache = (database: Database) => {
  let version: unknown
  let names: Names | undefined
  return async (current: unknown): Promise<Names> => {
    if (names === undefined || version !== current) [version, names] = await loadNames(database)
    return names
  }
}
export type NamesCache = ReturnType<typeof createNamesCache>

/** Returns the names of these ids, sorted by name. */
export const toRefs = (labels: Map<string, Label>, ids: readonly string[]): { id: string; name: string }[] =>
  ids
    .map((id) => labels.get(id)!)
    .sort((a, b) => (a.sortKey < b.sortKey ? -1 : 1))
    .map(({ id, name }) => ({ id, name }))
