import { filterLimits } from '../../catalog/filters.ts'
import type { FieldRow } from '../../storage/custom-fields.ts'
import type { Filter } from '../../storage/filters/filter.ts'
import { phonesHidden, seesManagerFields } from '../core/context.ts'
import { type Leaf, leaves, nodeKeys, operators, relations } from './grammar.ts'
import { noteLabels } from './labels.ts'
import { type Reading, type ReadTest, readTest, requireListLength } from './operands.ts'
import { fault, hidden, isObject, overLimit, type Path, unknownName, type Walk } from './walk.ts'
import { warnOfCombined, warnOfNot, warnOfRecord, warnOfTests } from './warnings.ts'

/** A part of a filter, read: as storage asks it, and as it is kept. */
type Read = { filter: Filter; absolute: unknown }

const everyone = (): Filter => ({ kind: 'and', of: [] })
/** What stands for a part that is wrong: its fault is noted, and the whole is refused. */
const nothing = (raw: unknown): Read => ({ filter: everyone(), absolute: raw })
const all = (parts: readonly Filter[]): Filter =>
  parts.length === 1 ? parts[0]! : { kind: 'and', of: parts }

/**
 * Reads a node. `level`: how many combinators and quantifiers it stands in; `absent`: fields whose absence
 * an `or` around it asks for as well.
 */
export const readNode = (
  walk: Walk,
  raw: unknown,
  path: Path,
  level: number,
  absent: readonly string[] = [],
): Read => {
  if (!isObject(raw)) {
    fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be an object',
      fix: 'Send {field: {operator: value}}.',
    })
    return nothing(raw)
  }
  const parts = Object.entries(raw).map(
    ([key, value]) => [key, readMember(walk, key, value, [...path, key], level, absent)] as const,
  )
  return {
    filter: all(parts.map(([, part]) => part.filter)),
    absolute: Object.fromEntries(parts.map(([key, part]) => [key, part.absolute])),
  }
}

const readMember = (
  walk: Walk,
  key: string,
  raw: unknown,
  path: Path,
  level: number,
  absent: readonly string[],
): Read => {
  if (key === 'and' || key === 'or') return readCombined(walk, key, raw, path, level)
  if (key === 'not') return readNot(walk, raw, path, level)
  if (key === 'savedFilter') return readReference(walk, raw, path, level)
  if (Object.hasOwn(leaves, key)) return readField(walk, key, raw, path, level, absent.includes(key))
  if (Object.hasOwn(relations, key)) return readRelation(walk, key, raw, path, level)
  unknownName(walk, path, 'field', key, nodeKeys)
  return nothing(raw)
}

const noteDepth = (walk: Walk, depth: number, path: Path): void => {
  if (depth > filterLimits.depth) {
    throw overLimit(
      walk,
      path,
      'filter_too_deep',
      `is ${depth} deep`,
      `Nest at most ${filterLimits.depth} deep; conditions that must all hold can stand side by side in one object.`,
    )
  }
  walk.depth = Math.max(walk.depth, depth)
}

const noteCondition = (walk: Walk, path: Path): void => {
  if (++walk.conditions > filterLimits.conditions) {
    const fix = `Send at most ${filterLimits.conditions} conditions; in takes a list of values as one.`
    throw overLimit(
      walk,
      path,
      'filter_too_many_conditions',
      `is the condition number ${walk.conditions}`,
      fix,
    )
  }
}

const readCombined = (walk: Walk, kind: 'and' | 'or', raw: unknown, path: Path, level: number): Read => {
  noteDepth(walk, level + 1, path)
  if (!Array.isArray(raw) || raw.length === 0) {
    fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be a list of at least one filter',
      fix: `Send {"${kind}": [{…}, {…}]}.`,
    })
    return nothing(raw)
  }
  requireListLength(walk, raw, path)
  warnOfCombined(walk, kind, raw, path)
  const absent = kind === 'or' ? raw.flatMap(absentIn) : []
  const parts = raw.map((item, n) => readNode(walk, item, [...path, n], level + 1, absent))
  return {
    filter: parts.length === 1 ? parts[0]!.filter : { kind, of: parts.map((part) => part.filter) },
    absolute: parts.map((part) => part.absolute),
  }
}

/** The fields whose absence a node asks for. */
const absentIn = (raw: unknown): string[] =>
  isObject(raw)
    ? Object.keys(raw).filter((field) => isObject(raw[field]) && raw[field]['isNull'] === true)
    : []

const readNot = (walk: Walk, raw: unknown, path: Path, level: number): Read => {
  noteDepth(walk, level + 1, path)
  const part = readNode(walk, raw, path, level + 1)
  warnOfNot(walk, raw, path)
  return { filter: { kind: 'not', of: part.filter }, absolute: part.absolute }
}

const readReference = (walk: Walk, raw: unknown, path: Path, level: number): Read => {
  const [test] = readTests(walk, { kind: 'id' }, raw, path, level, ['eq'])
  if (!test) return nothing(raw)
  const standIn = everyone()
  walk.references.push({
    id: (test.test as { value: string }).value,
    path: walk.within?.path ?? [...path, 'eq'],
    level,
    standIn,
  })
  return { filter: standIn, absolute: raw }
}

const readField = (
  walk: Walk,
  field: string,
  raw: unknown,
  path: Path,
  level: number,
  absentToo: boolean,
): Read => {
  const leaf = leaves[field]!
  if (leaf.phone && phonesHidden(walk.ctx.actor)) throw hidden(walk, path, 'phone_hidden', 'Phone numbers')
  if (
    field === 'email' &&
    !seesManagerFields(walk.ctx.actor) &&
    walk.fields.some((f) => f.key === 'email' && f.visibility === 'manager_only')
  ) {
    throw hidden(walk, path, 'field_hidden', 'Email addresses')
  }
  const tests = readTests(walk, { ...leaf, digits: field === 'phoneNumber' }, raw, path, level)
  warnOfTests(walk, { field, leaf, path, tests, absentToo })
  // The table of the grammar gives each field the tests of its kind.
  const of = tests.map(({ test }) => ({ kind: leaf.kind, field, test }) as unknown as Filter)
  return { filter: all(of), absolute: absoluteOf(tests) }
}

const absoluteOf = (tests: readonly ReadTest[]): Record<string, unknown> =>
  Object.fromEntries(tests.map(({ op, absolute }) => [op, absolute]))

/** Reads the operators of a field; those that are wrong are noted and left out. */
const readTests = (
  walk: Walk,
  leaf: Reading,
  raw: unknown,
  path: Path,
  level: number,
  valid: readonly string[] = operators[leaf.kind],
): ReadTest[] => {
  noteDepth(walk, level + 1, path)
  if (!isObject(raw)) {
    const fix =
      raw === null
        ? 'To find what is absent, send {"isNull": true}.'
        : `Send {"${Array.isArray(raw) && valid.includes('in') ? 'in' : 'eq'}": …}.`
    fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be an object with an operator',
      fix,
      allowed: valid,
    })
    return []
  }
  const entries = Object.entries(raw)
  if (entries.length === 0)
    fault(walk, path, {
      code: 'required',
      detail: 'has no operator',
      fix: `Add one of ${valid.join(', ')}, or leave the field out.`,
      allowed: valid,
    })
  return entries.flatMap(([op, value]) => {
    noteCondition(walk, [...path, op])
    if (valid.includes(op)) return readTest(walk, leaf, op, value, [...path, op]) ?? []
    unknownName(walk, [...path, op], 'operator', op, valid)
    return []
  })
}

const readRelation = (walk: Walk, key: string, raw: unknown, path: Path, level: number): Read => {
  const { quantifiers } = relations[key]!
  if (!isObject(raw) || Object.keys(raw).length === 0) {
    fault(walk, path, {
      code: 'required',
      detail: `must be an object with ${quantifiers.join(' or ')}`,
      fix: `Send {"${key}": {"some": {…}}}.`,
      allowed: quantifiers,
    })
    return nothing(raw)
  }
  const parts = Object.entries(raw).map(
    ([quantifier, where]) =>
      [quantifier, readRecord(walk, key, quantifier, where, [...path, quantifier], level)] as const,
  )
  return {
    filter: all(parts.map(([, part]) => part.filter)),
    absolute: Object.fromEntries(parts.map(([quantifier, part]) => [quantifier, part.absolute])),
  }
}

/** The conditions on one related record. */
const readRecord = (
  walk: Walk,
  key: string,
  quantifier: string,
  raw: unknown,
  path: Path,
  level: number,
): Read => {
  const { quantifiers, fields } = relations[key]!
  noteDepth(walk, level + 1, path)
  if (!quantifiers.includes(quantifier)) {
    const bare = Object.hasOwn(fields, quantifier) || (key === 'attributes' && quantifier === 'attributeName')
    if (!bare) unknownName(walk, path, 'quantifier', quantifier, quantifiers)
    else {
      const fix = `Say of which ${key}: {"some": {"${quantifier}": …}}, or with ${quantifiers.slice(1).join(' or ')}.`
      fault(walk, path, {
        code: 'unknown_quantifier',
        detail: 'is not a quantifier',
        fix,
        allowed: quantifiers,
      })
    }
    return nothing(raw)
  }
  if (!isObject(raw)) {
    fault(walk, path, {
      code: 'invalid_type',
      detail: 'must be an object',
      fix: `Send {${Object.keys(fields)[0]}: {operator: value}}.`,
    })
    return nothing(raw)
  }
  // One that asks whether there is any is a condition too.
  if (Object.keys(raw).length === 0 && key !== 'attributes') noteCondition(walk, path)
  const attribute = key === 'attributes' ? readAttributeName(walk, raw, path, level + 1) : undefined
  const conditions = Object.entries(raw)
    .filter(([field]) => !(field === 'attributeName' && key === 'attributes'))
    .map(([field, value]) => {
      const place = [...path, field]
      if (!Object.hasOwn(fields, field)) {
        unknownName(walk, place, 'field', field, [
          ...(key === 'attributes' ? ['attributeName'] : []),
          ...Object.keys(fields),
        ])
        return { field, tests: [], absolute: value }
      }
      const leaf: Leaf = fields[field]!
      const reading = {
        ...leaf,
        days: leaf.kind === 'time' && attribute?.type === 'date',
        digits: leaf.kind === 'text' && attribute?.type === 'phone',
      }
      const tests = readTests(walk, reading, value, place, level + 1)
      warnOfTests(walk, {
        field,
        leaf,
        path: place,
        tests,
        absentToo: false,
        relation: key,
        quantifier,
        attribute,
      })
      if (key === 'tags' || key === 'groups')
        noteLabels(walk, key === 'tags' ? 'tag' : 'group', field, tests, place)
      return { field, tests, absolute: absoluteOf(tests) }
    })
  warnOfRecord(walk, { relation: key, quantifier, path, conditions })
  const where = conditions.flatMap(({ field, tests }) =>
    tests.map(({ test }) => (attribute ? { as: valueFields[field], test } : { field, test })),
  )
  const record = {
    kind: key,
    quantifier,
    where,
    ...(attribute ? { field: { id: attribute.id, type: attribute.type } } : {}),
  }
  return {
    filter: record as unknown as Filter,
    absolute: {
      ...(attribute ? { attributeName: raw['attributeName'] } : {}),
      ...Object.fromEntries(conditions.map(({ field, absolute }) => [field, absolute])),
    },
  }
}

const valueFields: Readonly<Record<string, string>> = {
  stringValue: 'string',
  numberValue: 'number',
  booleanValue: 'boolean',
  dateValue: 'date',
}

/**
 * The custom field that the conditions are about. To an agent a manager-only field is as if it were not
 * there.
 */
const readAttributeName = (
  walk: Walk,
  record: Record<string, unknown>,
  path: Path,
  level: number,
): FieldRow | undefined => {
  if (record['attributeName'] === undefined) {
    return fault(walk, [...path, 'attributeName'], {
      code: 'required',
      detail: 'is required',
      fix: 'Send {"attributeName": {"eq": key}} with the key of a custom field.',
    })
  }
  const place = [...path, 'attributeName']
  const [test] = readTests(walk, { kind: 'text' }, record['attributeName'], place, level, ['eq'])
  if (!test) return undefined
  const key = (test.test as { value: string }).value
  const { actor } = walk.ctx
  const field = walk.fields.find((f) => f.key === key)
  const secret = field?.visibility === 'manager_only' && !seesManagerFields(actor)
  if (secret && walk.within) throw hidden(walk, place, 'field_hidden', 'Manager-only fields')
  if (!field || secret) {
    const visible = walk.fields.filter((f) => f.visibility !== 'manager_only' || seesManagerFields(actor))
    return unknownName(
      walk,
      [...place, 'eq'],
      'custom field',
      key,
      visible.map((f) => f.key),
      'unknown_attribute',
    )
  }
  if (field.type === 'phone' && phonesHidden(actor))
    throw hidden(walk, place, 'phone_hidden', 'Phone numbers')
  return field
}
