import { sql } from 'kysely'
import type { CustomFieldType } from '../catalog/custom-fields.ts'
import type { Attrs, StoredValue } from './contacts.ts'
import type { Db } from './database.ts'
import { valueKinds } from './filters/filter.ts'
import { fold } from './text.ts'
import { storableTime } from './times.ts'

/** A row of `contact_attributes` but for its workspace and contact, as JSON for `jsonb_to_recordset`. */
export type ValueRow = {
  field_id: string
  n: number
  text_key: string | null
  free: boolean
  number_value: string | null
  bool_value: boolean | null
  time_value: string | null
}

/** The types of some custom fields by id. */
export type FieldTypes = ReadonlyMap<string, CustomFieldType>

/** Types whose values are options, not text that people write. */
export const OPTIONS: readonly CustomFieldType[] = ['select', 'radio', 'multiselect']

/**
 * The rows by which one value is found; none for a value that its field's type does not hold. Days stand
 * for their midnight in UTC.
 */
const valueRows = (fieldId: string, type: CustomFieldType, stored: StoredValue): ValueRow[] => {
  const row = {
    field_id: fieldId,
    n: 0,
    text_key: null,
    free: false,
    number_value: null,
    bool_value: null,
    time_value: null,
  }
  switch (valueKinds[type]) {
    case 'string':
      return (Array.isArray(stored) ? stored : [stored]).map((text, n) => ({
        ...row,
        n,
        text_key: fold(String(text)),
        free: !OPTIONS.includes(type),
      }))
    case 'number':
      return typeof stored === 'number' || typeof stored === 'string'
        ? [{ ...row, number_value: String(stored) }]
        : []
    case 'boolean':
      return typeof stored === 'boolean' ? [{ ...row, bool_value: stored }] : []
    case 'date':
      return typeof stored === 'string' ? [{ ...row, time_value: storableTime(stored) }] : []
  }
}

/** The rows of the values of a contact that are of these fields. */
export const rowsOfAttrs = (types: FieldTypes, attrs: Attrs): ValueRow[] =>
  Object.entries(attrs).flatMap(([id, stored]) => {
    const type = types.get(id)
    return type === undefined ? [] : valueRows(id, type, stored)
  })

/** SQL for the columns of such rows, and for the same with their types, from JSON. */
export const valueNames = sql.raw('field_id, n, text_key, free, number_value, bool_value, time_value')
const valueColumns = sql.raw(
  'field_id bigint, n smallint, text_key text, free boolean, number_value numeric, bool_value boolean, time_value timestamptz',
)

/** SQL that writes the values of a new contact; `source` is a common table expression with its id. */
export const insertValues = (workspaceId: string, source: string, rows: readonly ValueRow[]) => sql`
  insert into contact_attributes (workspace_id, contact_id, ${valueNames})
  select ${workspaceId}, id, v.* from ${sql.raw(source)}, jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as v (${valueColumns})`

/**
 * Writes the values of a locked contact; the rows of the fields in `changed` are brought in step, others
 * stay as they are.
 */
export const writeValues = async (
  tx: Db,
  workspaceId: string,
  contactId: string,
  attrs: Attrs,
  changed: FieldTypes,
): Promise<void> => {
  await sql`with ${valueParts(workspaceId, [{ contactId, attrs, changed }])} select 1`.execute(tx)
}

/** The values of a contact as they will be, and the types of the fields whose value differs. */
export type ValueChange = { contactId: string; attrs: Attrs; changed: FieldTypes; fresh?: boolean }

/** Common table expressions that do the same for many locked contacts; `fresh` ones have no values yet. */
export const valueParts = (workspaceId: string, changes: readonly ValueChange[]) => {
  const facts = changes.map(({ contactId, attrs }) => ({ contact_id: contactId, attrs }))
  const rowsOf = (some: readonly ValueChange[]) =>
    some.flatMap(({ contactId, attrs, changed }) =>
      rowsOfAttrs(changed, attrs).map((row) => ({ contact_id: contactId, ...row })),
    )
  const source = (some: readonly ValueChange[]) => sql`
    select ${workspaceId}::bigint, v.* from jsonb_to_recordset(${JSON.stringify(rowsOf(some))}::jsonb) as v (contact_id bigint, ${valueColumns})`
  const fresh = changes.filter((change) => change.fresh)
  const old = changes.filter((change) => !change.fresh)
  // Sorted, neighbours in an index come one after the other: measured up to twice as fast.
  return sql`
    value_facts as (
      insert into contact_facts (workspace_id, contact_id, attrs)
      select ${workspaceId}::bigint, f.* from jsonb_to_recordset(${JSON.stringify(facts)}::jsonb) as f (contact_id bigint, attrs jsonb)
      on conflict (workspace_id, contact_id) do update set attrs = excluded.attrs
    )
    ${
      fresh.length === 0
        ? sql``
        : sql`, values_new as (
      insert into contact_attributes (workspace_id, contact_id, ${valueNames}) ${source(fresh)}
      order by field_id, text_key, number_value
    )`
    }
    ${
      old.length === 0
        ? sql``
        : sql`, ${valuesGone(workspaceId, old)}, values_changed as (
      insert into contact_attributes (workspace_id, contact_id, ${valueNames}) ${source(old)}
      on conflict (workspace_id, contact_id, field_id, n) do update
        set text_key = excluded.text_key, number_value = excluded.number_value, bool_value = excluded.bool_value, time_value = excluded.time_value
    )`
    }`
}

/**
 * Takes away the rows beyond those that a value has now: never one that is written, since the parts of a
 * statement have no order.
 */
const valuesGone = (workspaceId: string, changes: readonly ValueChange[]) => {
  const kept = changes.flatMap(({ contactId, attrs, changed }) =>
    [...changed].map(([field, type]) => {
      const stored = attrs[field]
      return { contactId, field, rows: stored === undefined ? 0 : valueRows(field, type, stored).length }
    }),
  )
  return sql`values_gone as (
    delete from contact_attributes a using unnest(${kept.map((k) => k.contactId)}::bigint[], ${kept.map((k) => k.field)}::bigint[], ${kept.map((k) => k.rows)}::int[]) as k (contact_id, field_id, n)
    where a.workspace_id = ${workspaceId} and a.contact_id = k.contact_id and a.field_id = k.field_id and a.n >= k.n
  )`
}

const BATCH = 5000

/** Writes the rows of every value there is, for a database from before there were any. */
export const indexAllValues = async (db: Db): Promise<void> => {
  const fields = await sql<{
    id: string
    type: CustomFieldType
  }>`select id, type from custom_fields where deleted_at is null`.execute(db)
  const types = new Map(fields.rows.map((field) => [field.id, field.type]))
  let after = { workspace_id: '0', contact_id: '0' }
  for (;;) {
    const { rows } = await sql<{ workspace_id: string; contact_id: string; attrs: Attrs }>`
      select workspace_id, contact_id, attrs from contact_facts where (workspace_id, contact_id) > (${after.workspace_id}::bigint, ${after.contact_id}::bigint)
      order by workspace_id, contact_id limit ${BATCH}`.execute(db)
    if (rows.length === 0) return
    const values = rows.flatMap(({ workspace_id, contact_id, attrs }) =>
      rowsOfAttrs(types, attrs).map((row) => ({ workspace_id, contact_id, ...row })),
    )
    await sql`
      insert into contact_attributes (workspace_id, contact_id, ${valueNames})
      select * from jsonb_to_recordset(${JSON.stringify(values)}::jsonb) as v (workspace_id bigint, contact_id bigint, ${valueColumns})`.execute(
      db,
    )
    after = rows.at(-1)!
  }
}
