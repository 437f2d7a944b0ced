import { filterLimits } from '../../../catalog/filters.ts'
import type { FieldRow } from '../../../storage/contacts/custom-fields.ts'
import type { ContactFilter, FlagTest, IdTest, TextTest, TimeTest } from '../../../storage/filters/filter.ts'
import { type FilterField, contactFields, nodeKeys, operators, relations, valueKindOf } from './grammar.ts'
import { collectLabels } from './labels.ts'
import { type OperandRules, type ParsedTest, parseTest, requireListLength } from './operands.ts'
import { isObject } from '../../../catalog/values.ts'
import {
  addError,
  createHiddenFieldProblem,
  createLimitProblem,
  type FilterPath,
  addUnknownName,
  type ParseState,
} from './parse-state.ts'
import { toCountryFilter } from './phone-countries.ts'
import { matchSpellings } from './phone-spellings.ts'
import { conversationFields, listChannelLimits } from './visible-channels.ts'
import { warnAboutCombined, warnAboutNot, warnAboutRecord, warnAboutTests } from './warnings.ts'
import { isNameTestHidden } from '../../visibility/phones.ts'
import { canSeeField, hasHiddenPhones } from '../../visibility/policy.ts'

/** A parsed part of a filter: as storage runs it, and as it is stored. */
type ParsedNode = { filter: ContactFilter; absolute: unknown }

const createMatchAll = (): ContactFilter => ({ kind: 'and', of: [] })
/** Stands for an invalid part: its error is recorded, and the whole filter is refused. */
const createPlaceholder = (raw: unknown): ParsedNode => ({ filter: createMatchAll(), absolute: raw })
const all = (parts: readonly ContactFilter[]): ContactFilter =>
  parts.length === 1 ? parts[0]! : { kind: 'and', of: parts }

/**
 * The position of a part of a filter. `level`: the number of combinators and quantifiers around it;
 * `absentFields`: fields whose absence an `or` around it also matches.
 */
type NodePosition = {
  readonly path: FilterPath
  readonly level: number
  readonly absentFields?: readonly string[]
}

/** Parses a node. */
export const parseNode = (state: ParseState, raw: unknown, position: NodePosition): ParsedNode => {
  const { path } = position
  if (!isObject(raw)) {
    addError(state, path, {
      code: 'invalid_type',
      detail: 'must be an object',
      fix: 'Send {field: {operator: value}}.',
    })
    return createPlaceholder(raw)
  }
  const parts = Object.entries(raw).map(
    ([key, value]) => [key, parseMember(state, key, value, { ...position, path: [...path, key] })] as const,
  )
  return {
    filter: all(parts.map(([, part]) => part.filter)),
    absolute: Object.fromEntries(parts.map(([key, part]) => [key, part.absolute])),
  }
}

const parseMember = (state: ParseState, key: string, raw: unknown, position: NodePosition): ParsedNode => {
  if (key === 'and' || key === 'or') return parseCombined(state, key, raw, position)
  if (key === 'not') return parseNot(state, raw, position)
  if (key === 'savedFilter') return parseReference(state, raw, position)
  if (Object.hasOwn(contactFields, key)) return parseField(state, key, raw, position)
  if (Object.hasOwn(relations, key)) return parseRelation(state, key, raw, position)
  addUnknownName(state, position.path, { what: 'field', given: key, valid: nodeKeys })
  return createPlaceholder(raw)
}

const recordDepth = (state: ParseState, depth: number, path: FilterPath): void => {
  if (depth > filterLimits.depth) {
    throw createLimitProblem(
      state,
      path,
      'filter_too_deep',
      `is ${depth} deep`,
      `Nest at most ${filterLimits.depth} deep; conditions that must all match can be put side by side ` +
        'in one object.',
    )
  }
  state.depth = Math.max(state.depth, depth)
}

const recordCondition = (state: ParseState, path: FilterPath): void => {
  if (++state.conditions > filterLimits.conditions) {
    const fix = `Send at most ${filterLimits.conditions} conditions; "in" with a list counts as one.`
    throw createLimitProblem(
      state,
      path,
      'filter_too_many_conditions',
      `is condition number ${state.conditions}`,
      fix,
    )
  }
}

const parseCombined = (
  state: ParseState,
  kind: 'and' | 'or',
  raw: unknown,
  { path, level }: NodePosition,
): ParsedNode => {
  recordDepth(state, level + 1, path)
  if (!Array.isArray(raw) || raw.length === 0) {
    addError(state, path, {
      code: 'invalid_type',
      detail: 'must be a list of at least one filter',
      fix: `Send {"${kind}": [{…}, {…}]}.`,
    })
    return createPlaceholder(raw)
  }
  requireListLength(state, raw, path)
  warnAboutCombined(state, kind, raw, path)
  const absentFields = kind === 'or' ? raw.flatMap(listAbsentFields) : []
  const parts = raw.map((item, n) =>
    parseNode(state, item, { path: [...path, n], level: level + 1, absentFields }),
  )
  return {
    filter: parts.length === 1 ? parts[0]!.filter : { kind, of: parts.map((part) => part.filter) },
    absolute: parts.map((part) => part.absolute),
  }
}

/** Lists the fields whose absence a node matches. */
const listAbsentFields = (raw: unknown): string[] =>
  isObject(raw)
    ? Object.keys(raw).filter((field) => isObject(raw[field]) && raw[field]['isNull'] === true)
    : []

const parseNot = (state: ParseState, raw: unknown, { path, level }: NodePosition): ParsedNode => {
  recordDepth(state, level + 1, path)
  const part = parseNode(state, raw, { path, level: level + 1 })
  warnAboutNot(state, raw, path)
  return { filter: { kind: 'not', of: part.filter }, absolute: part.absolute }
}

const parseReference = (state: ParseState, raw: unknown, position: NodePosition): ParsedNode => {
  const { path, level } = position
  const [test] = parseTests(state, { kind: 'id' }, raw, position, ['eq'])
  if (!test) return createPlaceholder(raw)
  const placeholder = createMatchAll()
  state.references.push({
    id: (test.test as { value: string }).value,
    path: state.within?.path ?? [...path, 'eq'],
    level,
    placeholder,
  })
  return { filter: placeholder, absolute: raw }
}

const parseField = (state: ParseState, field: string, raw: unknown, position: NodePosition): ParsedNode => {
  const { path, absentFields } = position
  const leaf = contactFields[field]!
  if (leaf.phone && hasHiddenPhones(state.ctx.actor))
    throw createHiddenFieldProblem(state, path, 'phone_hidden', 'Phone numbers')
  if (field === 'name' && isNameTestHidden(state.ctx.actor, raw))
    throw createHiddenFieldProblem(state, path, 'phone_hidden', 'Numbers in names')
  if (field === 'email' && state.fields.some((f) => f.key === 'email' && !canSeeField(state.ctx.actor, f))) {
    throw createHiddenFieldProblem(state, path, 'field_hidden', 'Email addresses')
  }
  const tests = parseTests(state, { ...leaf, digits: field === 'phoneNumber' }, raw, position)
  warnAboutTests(state, { field, leaf, path, tests, absentToo: absentFields?.includes(field) ?? false })
  // The grammar gives each field the tests of its kind.
  const of = tests.map(({ test }) => {
    if (Object.hasOwn(conversationFields, field))
      return conversationFields[field]!(state.ctx.actor, test as TimeTest & FlagTest)
    if (field === 'country') return toCountryFilter(test as IdTest)
    return {
      kind: leaf.kind === 'code' ? 'text' : leaf.kind,
      field,
      test: field === 'phoneNumber' ? matchSpellings(test as TextTest) : test,
    } as unknown as ContactFilter
  })
  return { filter: all(of), absolute: toAbsolute(tests) }
}

const toAbsolute = (tests: readonly ParsedTest[]): Record<string, unknown> =>
  Object.fromEntries(tests.map(({ op, absolute }) => [op, absolute]))

/** Parses the operators of a field; invalid ones are recorded and left out. */
const parseTests = (
  state: ParseState,
  leaf: OperandRules,
  raw: unknown,
  { path, level }: NodePosition,
  valid: readonly string[] = operators[leaf.kind],
): ParsedTest[] => {
  recordDepth(state, level + 1, path)
  if (!isObject(raw)) {
    const fix =
      raw === null
        ? 'To find absent values, send {"isNull": true}.'
        : `Send {"${Array.isArray(raw) && valid.includes('in') ? 'in' : 'eq'}": …}.`
    addError(state, path, {
      code: 'invalid_type',
      detail: 'must be an object with an operator',
      fix,
      allowed: valid,
    })
    return []
  }
  const entries = Object.entries(raw)
  if (entries.length === 0)
    addError(state, path, {
      code: 'required',
      detail: 'has no operator',
      fix: `Add one of ${valid.join(', ')}, or omit the field.`,
      allowed: valid,
    })
  return entries.flatMap(([op, value]) => {
    recordCondition(state, [...path, op])
    if (valid.includes(op)) return parseTest(state, leaf, op, value, [...path, op]) ?? []
    addUnknownName(state, [...path, op], { what: 'operator', given: op, valid })
    return []
  })
}

const parseRelation = (
  state: ParseState,
  key: string,
  raw: unknown,
  { path, level }: NodePosition,
): ParsedNode => {
  const { quantifiers } = relations[key]!
  if (!isObject(raw) || Object.keys(raw).length === 0) {
    addError(state, path, {
      code: 'required',
      detail: `must be an object with ${quantifiers.join(' or ')}`,
      fix: `Send {"${key}": {"some": {…}}}.`,
      allowed: quantifiers,
    })
    return createPlaceholder(raw)
  }
  const parts = Object.entries(raw).map(
    ([quantifier, where]) =>
      [
        quantifier,
        parseRecord(state, key, quantifier, where, { path: [...path, quantifier], level }),
      ] as const,
  )
  return {
    filter: all(parts.map(([, part]) => part.filter)),
    absolute: Object.fromEntries(parts.map(([quantifier, part]) => [quantifier, part.absolute])),
  }
}

/** Records an error for a key that is no quantifier of the relation. */
const addQuantifierError = (state: ParseState, key: string, quantifier: string, path: FilterPath): void => {
  const { quantifiers, fields } = relations[key]!
  const isField =
    Object.hasOwn(fields, quantifier) || (key === 'attributes' && quantifier === 'attributeName')
  if (!isField) {
    addUnknownName(state, path, { what: 'quantifier', given: quantifier, valid: quantifiers })
    return
  }
  const others = quantifiers.slice(1).join(' or ')
  addError(state, path, {
    code: 'unknown_quantifier',
    detail: 'is not a quantifier',
    fix: `Add a quantifier: {"some": {"${quantifier}": …}}, or ${others}.`,
    allowed: quantifiers,
  })
}

/** The quantified record that conditions belong to; `attribute`: the custom field of `attributes`. */
type RecordScope = { key: string; quantifier: string; attribute: FieldRow | undefined; level: number }
type RecordCondition = { field: string; tests: ParsedTest[]; absolute: unknown }

/** Parses the tests of one field of a related record. */
const parseRecordCondition = (
  state: ParseState,
  { key, quantifier, attribute, level }: RecordScope,
  field: string,
  raw: unknown,
  path: FilterPath,
): RecordCondition => {
  const { fields } = relations[key]!
  if (!Object.hasOwn(fields, field)) {
    const valid = [...(key === 'attributes' ? ['attributeName'] : []), ...Object.keys(fields)]
    addUnknownName(state, path, { what: 'field', given: field, valid })
    return { field, tests: [], absolute: raw }
  }
  const leaf: FilterField = fields[field]!
  const rules = {
    ...leaf,
    days: leaf.kind === 'time' && attribute?.type === 'date',
    digits: leaf.kind === 'text' && attribute?.type === 'phone',
  }
  const tests = parseTests(state, rules, raw, { path, level })
  warnAboutTests(state, {
    field,
    leaf,
    path,
    tests,
    absentToo: false,
    relation: key,
    quantifier,
    attribute,
  })
  if (key === 'tags' || key === 'groups')
    collectLabels(state, key === 'tags' ? 'tag' : 'group', field, tests, path)
  return { field, tests, absolute: toAbsolute(tests) }
}

/** Parses the conditions on one related record. */
const parseRecord = (
  state: ParseState,
  key: string,
  quantifier: string,
  raw: unknown,
  { path, level }: NodePosition,
): ParsedNode => {
  const { quantifiers, fields } = relations[key]!
  recordDepth(state, level + 1, path)
  if (!quantifiers.includes(quantifier)) {
    addQuantifierError(state, key, quantifier, path)
    return createPlaceholder(raw)
  }
  if (!isObject(raw)) {
    addError(state, path, {
      code: 'invalid_type',
      detail: 'must be an object',
      fix: `Send {${Object.keys(fields)[0]}: {operator: value}}.`,
    })
    return createPlaceholder(raw)
  }
  // A test for any related record counts as a condition.
  if (Object.keys(raw).length === 0 && key !== 'attributes') recordCondition(state, path)
  const attribute =
    key === 'attributes' ? parseAttributeName(state, raw, { path, level: level + 1 }) : undefined
  const scope: RecordScope = { key, quantifier, attribute, level: level + 1 }
  const conditions = Object.entries(raw)
    .filter(([field]) => !(field === 'attributeName' && key === 'attributes'))
    .map(([field, value]) => parseRecordCondition(state, scope, field, value, [...path, field]))
  warnAboutRecord(state, { relation: key, quantifier, path, conditions })
  const where = conditions.flatMap(({ field, tests }) =>
    tests.map(({ test }) => (attribute ? { as: valueKindOf[field], test } : { field, test })),
  )
  const record = {
    kind: key,
    quantifier,
    where: [...where, ...listChannelLimits(state.ctx.actor, key)],
    ...(attribute ? { field: { id: attribute.id, type: attribute.type } } : {}),
  }
  return {
    filter: record as unknown as ContactFilter,
    absolute: {
      ...(attribute ? { attributeName: raw['attributeName'] } : {}),
      ...Object.fromEntries(conditions.map(({ field, absolute }) => [field, absolute])),
    },
  }
}

/** Finds the custom field of the conditions. For an agent a manager-only field does not exist. */
const parseAttributeName = (
  state: ParseState,
  record: Record<string, unknown>,
  { path, level }: NodePosition,
): FieldRow | undefined => {
  if (record['attributeName'] === undefined) {
    return addError(state, [...path, 'attributeName'], {
      code: 'required',
      detail: 'is required',
      fix: 'Send {"attributeName": {"eq": key}} with the key of a custom field.',
    })
  }
  const namePath = [...path, 'attributeName']
  const position = { path: namePath, level }
  const [test] = parseTests(state, { kind: 'text' }, record['attributeName'], position, ['eq'])
  if (!test) return undefined
  const key = (test.test as { value: string }).value
  const { actor } = state.ctx
  const field = state.fields.find((f) => f.key === key)
  const isHidden = field !== undefined && !canSeeField(actor, field)
  if (isHidden && state.within)
    throw createHiddenFieldProblem(state, namePath, 'field_hidden', 'Manager-only fields')
  if (!field || isHidden) {
    const visible = state.fields.filter((f) => canSeeField(actor, f))
    return addUnknownName(state, [...namePath, 'eq'], {
      what: 'custom field',
      given: key,
      valid: visible.map((f) => f.key),
      code: 'unknown_attribute',
    })
  }
  if (field.type === 'phone' && hasHiddenPhones(actor))
    throw createHiddenFieldProblem(state, namePath, 'phone_hidden', 'Phone numbers')
  return field
}
