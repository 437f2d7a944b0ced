import type { Label } from '../../../storage/labels/labels.ts'
import { isObject } from '../../../catalog/values.ts'

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

/** Conditions on the tags of a contact: `{some: {id: {eq: …}, name: {in: […]}}}`. */
const replaceInTags = (conditions: unknown, from: Label, to: Label): unknown =>
  isObject(conditions)
    ? mapMembers(conditions, (_quantifier, tag) =>
        isObject(tag)
          ? mapMembers(tag, (field, tests) =>
              field === 'id' || field === 'name' ? replaceTests(tests, from[field], to[field]) : tests,
            )
          : tag,
      )
    : conditions

/**
 * Returns a filter that names another tag wherever it named one, by its id or by its whole name. Returns the filter
 * itself when it does not name it.
 */
export const replaceTag = (filter: Json, from: Label, to: Label): Json => {
  const replaceIn = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      const mapped = value.map(replaceIn)
      return mapped.every((one, i) => one === value[i]) ? value : mapped
    }
    return isObject(value) ? replaceTag(value, from, to) : value
  }
  return mapMembers(filter, (name, value) =>
    name === 'tags'
      ? replaceInTags(value, from, to)
      : ['and', 'or', 'not'].includes(name)
        ? replaceIn(value)
        : value,
  )
}
