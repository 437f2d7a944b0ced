import { sql } from 'kysely'
import type { CustomFieldType } from '../catalog/custom-fields.ts'
import type { Db } from './database.ts'
import { storable } from './ids.ts'

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

const columns = sql`id::text as id, key, label, type, options, read_only, visibility, used, created_at`

/** Every live field, in the order they were made; a workspace has at most 200. */
export const listFields = async (tx: Db, workspaceId: string): Promise<FieldRow[]> =>
  (
    await sql<FieldRow>`
    select ${columns} from custom_fields where workspace_id = ${workspaceId} and deleted_at is null order by custom_fields.id`.execute(
      tx,
    )
  ).rows

/** One field, locked against other changes. */
export const lockField = async (tx: Db, workspaceId: string, id: string): Promise<FieldRow | undefined> =>
  (
    await sql<FieldRow>`
    select ${columns} from custom_fields where workspace_id = ${workspaceId} and id = ${storable(id)} and deleted_at is null for update`.execute(
      tx,
    )
  ).rows[0]

export type NewField = Pick<FieldRow, 'key' | 'label' | 'type' | 'options' | 'visibility'>

const optionsJson = (options: FieldOption[] | null) =>
  sql`${options === null ? null : JSON.stringify(options)}::jsonb`

/** Undefined when the key is taken. */
export const insertField = async (
  tx: Db,
  workspaceId: string,
  field: NewField,
  now: string,
): Promise<FieldRow | undefined> =>
  (
    await sql<FieldRow>`
    insert into custom_fields (workspace_id, key, label, type, options, visibility, created_at)
    values (${workspaceId}, ${field.key}, ${field.label}, ${field.type}, ${optionsJson(field.options)}, ${field.visibility}, ${now})
    on conflict (workspace_id, key) where deleted_at is null do nothing returning ${columns}`.execute(tx)
  ).rows[0]

export const updateField = async (
  tx: Db,
  workspaceId: string,
  field: Pick<FieldRow, 'id' | 'label' | 'options' | 'visibility'>,
): Promise<void> => {
  await sql`
    update custom_fields set label = ${field.label}, options = ${optionsJson(field.options)}, visibility = ${field.visibility}
    where workspace_id = ${workspaceId} and id = ${field.id}`.execute(tx)
}

/**
 * Ids are never used again, so the values that contacts still hold under this one can no longer be seen,
 * nor their rows found.
 */
export const deleteField = async (tx: Db, workspaceId: string, id: string, now: string): Promise<void> => {
  await sql`update custom_fields set deleted_at = ${now} where workspace_id = ${workspaceId} and id = ${id}`.execute(
    tx,
  )
}

/**
 * Notes that contacts have values of these fields. Asked for only when a field was not in use yet, so it is
 * written once.
 */
export const markFieldsUsed = async (tx: Db, workspaceId: string, ids: readonly string[]): Promise<void> => {
  await sql`update custom_fields set used = true where workspace_id = ${workspaceId} and id = any(${ids}::bigint[]) and not used`.execute(
    tx,
  )
}
