import { sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

export type FieldOption = { label: string; value: string }
export type FieldRow = {
  id: string
  key: string
  label: string
  type: CustomFieldType
  options: FieldOption[] | null
  read_only: boolean
  visibility: 'visible_to_all' | 'manager_only'
  used: boolean
  created_at: string
}

const columns = [
  'id',
  'key',
  'label',
  'type',
  'options',
  'read_only',
  'visibility',
  'used',
  'created_at',
] as const

/** Lists every live field in creation order; a workspace has at most 200. */
export const listFields = async (tx: Db, workspaceId: string): Promise<FieldRow[]> =>
  await tx
    .selectFrom('custom_fields')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .$castTo<FieldRow>()
    .execute()

/** One writer at a time may add fields, so that their count is exact. */
export const lockFieldLimit = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`custom_fields ${workspaceId}`}, 0))`.execute(tx)
}

/** Lists the keys that manager-only fields have or, when deleted, had. */
export const listManagerOnlyKeys = async (db: Db, workspaceId: string): Promise<string[]> => {
  const rows = await db
    .selectFrom('custom_fields')
    .select('key')
    .distinct()
    .where('workspace_id', '=', workspaceId)
    .where('visibility', '=', 'manager_only')
    .orderBy('key')
    .execute()
  return rows.map(({ key }) => key)
}

/**
 * Lists the ids of the fields that some contact has a value of. `used` alone tells that one had: it is written
 * once, so that changes of contacts need not count.
 */
export const listFieldsInUse = async (tx: Db, workspaceId: string): Promise<ReadonlySet<string>> => {
  // In the order of the index, which `exists` would drop: without it the planner hopes for an early row of the table,
  // and reads all of it for a field that has no value of this kind.
  const hasValue = (column: string, order = sql.ref(`a.${column}`)) => sql`
    (select true from contact_attributes a where a.workspace_id = c.workspace_id
      and a.field_id = c.id and a.${sql.ref(column)} is not null order by ${order} limit 1)`
  const kinds = [
    hasValue('text_key', sql`left(a.text_key, 200)`),
    ...['number_value', 'bool_value', 'time_value'].map((column) => hasValue(column)),
  ]
  const { rows } = await sql<{ id: string }>`
    select c.id from custom_fields c
    where c.workspace_id = ${workspaceId} and c.deleted_at is null and c.used
      and (${sql.join(kinds, sql` or `)})`.execute(tx)
  return new Set(rows.map(({ id }) => id))
}

/** Returns a field, locked; undefined when there is none. */
export const lockField = async (tx: Db, workspaceId: string, id: string): Promise<FieldRow | undefined> =>
  await tx
    .selectFrom('custom_fields')
    .select(columns)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', toStorableId(id))
    .where('deleted_at', 'is', null)
    .forUpdate()
    .$castTo<FieldRow>()
    .executeTakeFirst()

export type NewField = Pick<FieldRow, 'key' | 'label' | 'type' | 'options' | 'visibility'>

const toOptionsJson = (options: FieldOption[] | null) =>
  sql`${options === null ? null : JSON.stringify(options)}::jsonb`

/** Inserts a field; undefined when the key is taken. */
export const insertField = async (
  tx: Db,
  workspaceId: string,
  field: NewField,
  now: string,
): Promise<FieldRow | undefined> =>
  await tx
    .insertInto('custom_fields')
    .values({
      workspace_id: workspaceId,
      key: field.key,
      label: field.label,
      type: field.type,
      options: toOptionsJson(field.options),
      visibility: field.visibility,
      created_at: now,
    })
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'key']).where('deleted_at', 'is', null).doNothing(),
    )
    .returning(columns)
    .$castTo<FieldRow>()
    .executeTakeFirst()

export const updateField = async (
  tx: Db,
  workspaceId: string,
  field: Pick<FieldRow, 'id' | 'label' | 'options' | 'visibility'>,
): Promise<void> => {
  await tx
    .updateTable('custom_fields')
    .set({ label: field.label, options: toOptionsJson(field.options), visibility: field.visibility })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', field.id)
    .execute()
}

/**
 * Marks a field as deleted. Ids are never used again, so the values that contacts still hold under this id
 * can no longer be seen, nor their rows found.
 */
export const deleteField = async (tx: Db, workspaceId: string, id: string, now: string): Promise<void> => {
  await tx
    .updateTable('custom_fields')
    .set({ deleted_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Records that contacts have values of these fields. Called only for unused ones, so it is written once. */
export const markFieldsUsed = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<void> => {
  await tx
    .updateTable('custom_fields')
    .set({ used: true })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${ids}::bigint[])`)
    .where('used', '=', false)
    .execute()
}
