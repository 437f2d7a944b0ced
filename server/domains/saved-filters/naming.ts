import type { Operation } from '../../../catalog/index.ts'
import { isObject } from '../../../catalog/values.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import type { Db } from '../../../storage/database.ts'
import { findLabels } from '../../../storage/labels/labels.ts'
import { listAllSavedFilters, type SavedFilterRow } from '../../../storage/filters/saved-filters.ts'

/*
 * Saved filters that match others after a call, for everybody who uses them: they name what it deletes, or the name
 * that it gives.
 */

type Json = Record<string, unknown>
/** `isDeletion`: what the input names by its id goes. */
type Change = { input: Json; isDeletion: boolean }
type Scope = { db: Db; workspaceId: string } & Change

/** Conditions compare text with its case. */
const toName = (...parts: readonly string[]): string => JSON.stringify(parts)

const listLabelNames = async (
  { db, workspaceId, input, isDeletion }: Scope,
  kind: 'tag' | 'group',
  id: string,
): Promise<string[]> => {
  const [label] = await findLabels(db, workspaceId, kind, [id], [])
  const { name } = input
  if (!label) return []
  if (isDeletion) return [toName(`${kind}s`, 'id', id), toName(`${kind}s`, 'name', label.name)]
  // Those of the old name follow it; those of the new one find it from then on.
  return typeof name === 'string' && name !== label.name ? [toName(`${kind}s`, 'name', name)] : []
}

/** A field that is deleted, or options that it loses. */
const listFieldNames = async (
  { db, workspaceId, input, isDeletion }: Scope,
  id: string,
): Promise<string[]> => {
  const field = (await listFields(db, workspaceId)).find((one) => one.id === id)
  if (!field) return []
  if (isDeletion) return [toName('attributes', field.key)]
  if (!Array.isArray(input['options'])) return []
  const kept = new Set((input['options'] as { value: string }[]).map(({ value }) => value))
  const lost = (field.options ?? []).filter(({ value }) => !kept.has(value))
  return lost.map(({ value }) => toName('attributes', field.key, value))
}

/** How filters name the record whose id a field of an input holds. */
const fields: Readonly<Record<string, (scope: Scope, id: string) => string[] | Promise<string[]>>> = {
  tag_id: (scope, id) => listLabelNames(scope, 'tag', id),
  other_tag_id: (scope, id) => listLabelNames(scope, 'tag', id),
  group_id: (scope, id) => listLabelNames(scope, 'group', id),
  custom_field_id: listFieldNames,
  saved_filter_id: ({ isDeletion }, id) => (isDeletion ? [toName('savedFilter', id)] : []),
}

/** What a condition compares with; a value alone is compared for equality. */
const listOperands = (tests: unknown): string[] =>
  (isObject(tests) ? Object.values(tests) : [tests]).flat().map(String)

/** Returns the records, and the options of fields, that a part of a filter names. */
const listNamed = (node: unknown): string[] => {
  if (Array.isArray(node)) return node.flatMap(listNamed)
  if (!isObject(node)) return []
  return Object.entries(node).flatMap(([member, value]) => {
    if (member === 'savedFilter') return listOperands(value).map((id) => toName(member, id))
    const related = isObject(value) ? Object.values(value).filter(isObject) : []
    if (member === 'tags' || member === 'groups')
      return related.flatMap((record) =>
        ['id', 'name'].flatMap((field) =>
          listOperands(record[field] ?? []).map((one) => toName(member, field, one)),
        ),
      )
    if (member === 'attributes')
      return related.flatMap(({ attributeName, stringValue = [] }) =>
        listOperands(attributeName).flatMap((key) => [
          toName(member, key),
          ...listOperands(stringValue).map((one) => toName(member, key, one)),
        ]),
      )
    return listNamed(value)
  })
}

/** Returns the saved filters that name a record which a change deletes, a name it gives, or an option it removes. */
export const listFiltersNaming = async (
  db: Db,
  workspaceId: string,
  change: Change,
): Promise<Pick<SavedFilterRow, 'id' | 'name'>[]> => {
  const scope = { db, workspaceId, ...change }
  const gone = new Set<string>()
  for (const [field, listNames] of Object.entries(fields))
    if (change.input[field] !== undefined)
      for (const name of await listNames(scope, String(change.input[field]))) gone.add(name)
  if (gone.size === 0) return []
  const rows = await listAllSavedFilters(db, workspaceId)
  return rows
    .filter(({ filter }) => listNamed(filter).some((name) => gone.has(name)))
    .map(({ id, name }) => ({ id, name }))
}

/** The same for the call of an operation. What a job changes are the contacts of a group or a filter, not these. */
export const listFiltersOfCall = async (
  db: Db,
  workspaceId: string,
  op: Operation,
  input: Json,
): Promise<Pick<SavedFilterRow, 'id' | 'name'>[]> =>
  op.jobs ? [] : await listFiltersNaming(db, workspaceId, { input, isDeletion: op.confirm === 'delete' })
