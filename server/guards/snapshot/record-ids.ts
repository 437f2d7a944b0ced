import type { Plan } from '../../../catalog/plan.ts'
import { isObject } from '../../../catalog/values.ts'

type Json = Record<string, unknown>
type Change = Plan['records'][number]

/** Names of fields that hold ids. */
export const ID = /^(?:.+_)?ids?$/

/**
 * What an id is of, from the name of its field and of the record around it: `contact` for `contact_id`, for
 * `contact_ids`, and for `id` in `contact` or `contacts`. Ids of two tables can be equal.
 */
export const toIdKind = (name: string, record: string): string =>
  (/^ids?$/.test(name) ? record : name.replace(/_ids?$/, '')).replace(/s$/, '')

export const toKnownId = (name: string, record: string, id: unknown): string =>
  `${toIdKind(name, record)} ${id}`

/** Returns the ids in a value, with what they are of: those of its fields `id`, `…_id`, `ids` and `…_ids`. */
export const listKnownIds = (value: unknown, record = ''): string[] => {
  if (Array.isArray(value)) return value.flatMap((one) => listKnownIds(one, record))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) =>
    ID.test(name) ? [member].flat().map((id) => toKnownId(name, record, id)) : listKnownIds(member, name),
  )
}

/**
 * Returns the record after its change, with null for ids of records that the change creates: what is rolled back gives
 * its id to nothing. `exists`: whether there is such a record without the change.
 */
export const withoutNewIds = async (
  { kind, before, after }: Change,
  exists: (kind: string, id: string) => Promise<boolean>,
): Promise<Json | null> => {
  const known = new Set(listKnownIds(before, kind))
  const isNew = async (name: string, record: string, id: unknown): Promise<boolean> =>
    typeof id === 'string' &&
    !known.has(toKnownId(name, record, id)) &&
    !(await exists(toIdKind(name, record), id))
  const show = async (value: unknown, record: string): Promise<unknown> => {
    if (Array.isArray(value)) {
      const shown: unknown[] = []
      for (const one of value) shown.push(await show(one, record))
      return shown
    }
    if (!isObject(value)) return value
    const shown: Json = {}
    for (const [name, member] of Object.entries(value))
      if (!ID.test(name)) shown[name] = await show(member, name)
      else shown[name] = (await isNew(name, record, member)) ? null : member
    return shown
  }
  if (after === null) return null
  const shown = (await show(after, kind)) as Json
  return before === null && 'id' in shown ? { ...shown, id: null } : shown
}
