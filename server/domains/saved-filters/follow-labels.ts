import type { Context } from '../../handler.ts'
import { isObject } from '../../../catalog/values.ts'
import {
  lockFiltersOf,
  lockSavedFilterReferences,
  replaceFilters,
} from '../../../storage/filters/saved-filters.ts'
import type { Label, LabelKind } from '../../../storage/labels/labels.ts'

/* Saved filters name tags and groups as people do, and follow them to another name or into another tag. */

type Json = Record<string, unknown>

/** Operators that compare a whole id or name. */
const WHOLE = ['eq', 'ne', 'in', 'notIn']

const same = (a: unknown, b: string): boolean => String(a) === b

/** Replaces a value, or one in a list, where it would be twice. Returns what was given when nothing differs. */
const replaceOperand = (operand: unknown, from: string, to: string): unknown => {
  if (!Array.isArray(operand)) return same(operand, from) ? to : operand
  if (!operand.some((one) => same(one, from))) return operand
  return [...new Set(operand.map((one: unknown) => (same(one, from) ? to : one)))]
}

/** Maps the members of an object. Returns the object itself when none differs. */
const mapMembers = (record: Json, map: (name: string, value: unknown) => unknown): Json => {
  const mapped = Object.entries(record).map(([name, value]) => [name, map(name, value)] as const)
  return mapped.every(([name, value]) => value === record[name]) ? record : Object.fromEntries(mapped)
}

/** What is no object is a value, which is the same as `eq`. */
const replaceTests = (tests: unknown, from: string, to: string): unknown =>
  isObject(tests)
    ? mapMembers(tests, (op, operand) => (WHOLE.includes(op) ? replaceOperand(operand, from, to) : operand))
    : replaceOperand(tests, from, to)

/** Conditions on the tags or groups of a contact: `{some: {id: {eq: …}, name: {in: […]}}}`. */
const replaceInLabels = (conditions: unknown, from: Label, to: Label): unknown =>
  isObject(conditions)
    ? mapMembers(conditions, (_quantifier, label) =>
        isObject(label)
          ? mapMembers(label, (field, tests) =>
              field === 'id' || field === 'name' ? replaceTests(tests, from[field], to[field]) : tests,
            )
          : label,
      )
    : conditions

type Move = { kind: LabelKind; from: Label; to: Label }

/**
 * Returns a filter that names another label wherever it named one, by its id or by its whole name. Returns the filter
 * itself when it does not name it.
 */
const replaceLabel = (filter: Json, move: Move): Json => {
  const replaceIn = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      const mapped = value.map(replaceIn)
      return mapped.every((one, i) => one === value[i]) ? value : mapped
    }
    return isObject(value) ? replaceLabel(value, move) : value
  }
  return mapMembers(filter, (name, value) =>
    name === `${move.kind}s`
      ? replaceInLabels(value, move.from, move.to)
      : ['and', 'or', 'not'].includes(name)
        ? replaceIn(value)
        : value,
  )
}

/** Makes the saved filters that name a label name it as it is now, or the one it was merged into. Returns them. */
export const moveFilters = async (ctx: Context, move: Move): Promise<{ id: string; name: string }[]> => {
  const workspaceId = ctx.actor.workspace.id
  await lockSavedFilterReferences(ctx.tx, workspaceId)
  const filters = (await lockFiltersOf(ctx.tx, workspaceId, move.kind)).flatMap((row) => {
    const filter = replaceLabel(row.filter, move)
    return filter === row.filter ? [] : [{ ...row, filter }]
  })
  if (filters.length > 0) await replaceFilters(ctx.tx, workspaceId, filters, ctx.now)
  return filters.map(({ id, name }) => ({ id, name }))
}
