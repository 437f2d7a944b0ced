import { sql } from 'kysely'
import type { FieldRow } from './custom-fields.ts'
import type { Db } from './database.ts'

/**
 * What contacts mention by id and what seldom changes: custom fields, and the names of tags and groups.
 * Reading it beside every contact took a third of the time of a read. It is remembered under
 * `workspaces.names_version`, which is random and which a trigger renews with every change of them, so that
 * what is remembered is never stale, on no server and in no transaction.
 */
export type ShownField = Pick<FieldRow, 'id' | 'key' | 'label' | 'type' | 'options' | 'visibility'>
export type Ref = { id: string; name: string }
type Name = Ref & { order: string }
type Known = { fields: ShownField[]; tag: Map<string, Name>; group: Map<string, Name> }

const MOST_WORKSPACES = 1000
const MOST_NAMES = 20_000
const memory = new Map<string, Known>()

/** SQL for the version, as a column beside the rows that need it. */
export const versionColumn = (workspaceId: string) =>
  sql`(select names_version from workspaces where id = ${workspaceId}) as names_version`

/** The fields of this version, from memory or the database. */
export const knownOf = async (tx: Db, workspaceId: string, version: string | null): Promise<Known> => {
  const known = version === null ? undefined : memory.get(version)
  if (known) return known
  // One statement, so that the fields are of the version that it answers, even when that is a newer one.
  const {
    rows: [row],
  } = await sql<{ version: string | null; fields: ShownField[] | null }>`
    select (select names_version from workspaces where id = ${workspaceId}) as version,
      (select json_agg(json_build_object('id', f.id::text, 'key', f.key, 'label', f.label, 'type', f.type, 'options', f.options, 'visibility', f.visibility) order by f.id)
        from custom_fields f where f.workspace_id = ${workspaceId} and f.deleted_at is null) as fields`.execute(
    tx,
  )
  const read: Known = { fields: row!.fields ?? [], tag: new Map(), group: new Map() }
  if (row!.version === null) return read
  if (memory.size >= MOST_WORKSPACES) memory.delete(memory.keys().next().value!)
  memory.set(row!.version, read)
  return read
}

/** Their names, in the order of the names; ids that name nothing any more are left out. */
const refsOf = (names: ReadonlyMap<string, Name>, ids: readonly string[]): Ref[] => {
  const found: Name[] = []
  for (const id of ids) {
    const name = names.get(id)
    if (name) found.push(name)
  }
  if (found.length > 1) found.sort((a, b) => (a.order < b.order ? -1 : 1))
  return found.map(({ id, name }) => ({ id, name }))
}

/**
 * For each list of ids of tags or groups, their names. Asks the database only for those never seen before.
 */
export const namesOf = async (
  tx: Db,
  workspaceId: string,
  known: Known,
  kind: 'tag' | 'group',
  lists: readonly (readonly string[])[],
): Promise<Ref[][]> => {
  const missing = lists.flatMap((ids) => ids.filter((id) => !known[kind].has(id)))
  if (missing.length === 0) return lists.map((ids) => refsOf(known[kind], ids))
  const atHand = lists.flat().flatMap((id) => known[kind].get(id) ?? [])
  const { rows } = await sql<Ref & { name_key: string }>`
    select id, name, name_key from ${kind === 'tag' ? sql`tags` : sql`groups`} where workspace_id = ${workspaceId} and id = any(${[...new Set(missing)]}::bigint[])`.execute(
    tx,
  )
  // Bytes as characters, so that they compare as collation "C" does.
  const read = rows.map(({ id, name, name_key: key }): Name => ({
    id,
    name,
    order: Buffer.from(key).toString('latin1'),
  }))
  const names = new Map([...atHand, ...read].map((name) => [name.id, name]))
  if (known[kind].size > MOST_NAMES) known[kind].clear()
  // What is made in a transaction may be taken back.
  if (!tx.isTransaction) for (const name of read) known[kind].set(name.id, name)
  return lists.map((ids) => refsOf(names, ids))
}
