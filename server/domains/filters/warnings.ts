import { optionTypes } from '../../../catalog/custom-fields.ts'
import type { FieldRow } from '../../../storage/contacts/custom-fields.ts'
import { type ValueCondition, valueKinds } from '../../../storage/filters/filter.ts'
import type { FilterField } from './grammar.ts'
import type { ParsedTest } from './operands.ts'
import { isObject } from '../../../catalog/values.ts'
import { type FilterPath, type ParseState, addWarning } from './parse-state.ts'

/** The tests of one field. `absentToo`: an `or` around them also matches the absence of the field. */
export type FieldTests = {
  field: string
  leaf: FilterField
  path: FilterPath
  tests: readonly ParsedTest[]
  absentToo: boolean
  relation?: string
  quantifier?: string
  attribute?: FieldRow | undefined
}
/** The tests of one related record. */
export type RecordTests = {
  relation: string
  quantifier: string
  path: FilterPath
  conditions: readonly { field: string; tests: readonly ParsedTest[] }[]
}

const isEmpty = (raw: unknown): boolean => isObject(raw) && Object.keys(raw).length === 0

export const warnAboutCombined = (
  state: ParseState,
  kind: 'and' | 'or',
  raw: readonly unknown[],
  path: FilterPath,
): void => {
  if (kind === 'or' && raw.some(isEmpty))
    addWarning(
      state,
      [...path, raw.findIndex(isEmpty)],
      'An empty filter matches every contact, so the other alternatives of this or have no effect.',
    )
}

export const warnAboutNot = (state: ParseState, raw: unknown, path: FilterPath): void => {
  if (isEmpty(raw))
    addWarning(state, path, 'No contact matches: an empty filter matches every contact, and not negates it.')
}

/** Warns about likely mistakes in the tests of one field. */
export const warnAboutTests = (state: ParseState, fieldTests: FieldTests): void => {
  const { field, leaf, path, tests, attribute } = fieldTests
  if (attribute && kindsByValueField[field] !== valueKinds[attribute.type]) {
    addWarning(
      state,
      path,
      `The custom field ${attribute.key} is of the type ${attribute.type}, so no comparison of its ` +
        `${field} matches. Use ${valueFieldsByKind[valueKinds[attribute.type]]}.`,
    )
    return
  }
  for (const test of tests) {
    const warn = (message: string) => addWarning(state, [...path, test.op], message)
    if (leaf.kind === 'time') warnAboutTime(state, fieldTests, test, warn)
    if (leaf.kind === 'text') warnAboutText(fieldTests, test, warn)
    if (test.op === 'isNull') warnAboutIsNull(fieldTests, test, warn)
    if (NEGATED_OPERATORS.has(test.op)) warnAboutNegation(fieldTests, test, warn)
    if (test.op === 'between' && isAfter(leaf, getBounds(test).from, getBounds(test).to))
      warn('The first value is greater than the second, so nothing is between them. Swap them.')
  }
  warnAboutBounds(state, fieldTests)
  if (attribute && optionTypes.includes(attribute.type)) warnAboutOptions(state, fieldTests, attribute)
}

const getValues = ({ test }: ParsedTest): readonly string[] =>
  'values' in test ? test.values : 'value' in test && typeof test.value === 'string' ? [test.value] : []
const getBounds = ({ test }: ParsedTest): { from: string; to: string } => test as { from: string; to: string }
const isAfter = (leaf: FilterField, a: string, b: string): boolean =>
  leaf.kind === 'number' ? Number(a) > Number(b) : a > b

type Warn = (message: string) => void

/** Fields whose times are never in the future. */
const PAST_TIME_FIELDS = new Set([
  'createdAt',
  'updatedAt',
  'lastActivityAt',
  'lastInboundAt',
  'lastOutboundAt',
  'sentAt',
])

const warnAboutTime = (
  state: ParseState,
  { field, attribute }: FieldTests,
  { op, dates }: ParsedTest,
  warn: Warn,
): void => {
  const holdsDays = attribute?.type === 'date'
  const last = dates.at(-1)
  if (!last) return
  if (holdsDays) {
    if (dates.some(({ form }) => form === 'instant' || form === 'local'))
      warn('The field holds days, so the time of day has no effect.')
    return
  }
  if (dates.some(({ form }) => form === 'day' || form === 'local')) {
    warn(
      `Without a time zone, the time is interpreted in that of the workspace, ${state.zone}. Add Z or an ` +
        'offset such as +02:00 to be explicit.',
    )
  }
  if (op === 'eq' || op === 'ne')
    warn(
      `${op} compares to the millisecond. For a whole day use gte with its start and lt with the next day.`,
    )
  if ((op === 'lte' || op === 'between') && last.starts) {
    warn(
      'This is the first instant of its day or period, so the rest of the period does not match. Use ' +
        'end_of_… or lt with the next day.',
    )
  }
  if (op === 'gt' && last.form === 'day')
    warn(
      'This is the first instant of the day, so the rest of that day matches too. To start with the ' +
        'next day, use gte with that day.',
    )
  if (['gt', 'gte', 'between'].includes(op) && PAST_TIME_FIELDS.has(field) && dates[0]!.instant > state.now)
    warn('This is in the future and the field holds past times, so nothing matches.')
}

/** Operators that compare the beginning of the text. */
const PREFIX_OPERATORS = new Set(['eq', 'ne', 'in', 'notIn', 'startsWith'])

const warnAboutText = ({ field, leaf, attribute }: FieldTests, test: ParsedTest, warn: Warn): void => {
  const values = getValues(test)
  const phone = (leaf.phone && field === 'phoneNumber') || attribute?.type === 'phone'
  if (test.op === 'regex') {
    if (/^[\p{L}\p{N}\s_@-]*$/u.test(values[0]!))
      warn('This regular expression is plain text. Use contains, which finds the same text and ignores case.')
    if (phone && /^\^?\(?\\\+/.test(values[0]!))
      warn('Phone numbers are stored as digits, without +, so this never matches.')
    return
  }
  if (values.includes('')) {
    warn(
      test.op === 'eq' || test.op === 'in'
        ? 'Empty text is never stored. To find absent values, use {"isNull": true}.'
        : 'Every text contains the empty text.',
    )
  } else if (phone && values.some((value) => /\D/.test(value)))
    warn('This is not a phone number, so it never matches one. Send digits with the country code.')
  else if (phone && PREFIX_OPERATORS.has(test.op) && values.some((value) => value.startsWith('0'))) {
    warn('Phone numbers are stored with the country code and without leading zeros, so none matches.')
  } else if (values.some((value) => value !== value.trim()))
    warn('The value begins or ends with a space, which is significant.')
}

const warnAboutIsNull = (
  { field, leaf, relation, tests, attribute }: FieldTests,
  { test }: ParsedTest,
  warn: Warn,
): void => {
  const absent = 'value' in test && test.value === true
  if (absent && tests.length > 1) warn('An absent value matches no other operator, so nothing matches both.')
  else if (attribute) {
    if (absent)
      warn(
        'A stored value is never absent. To find contacts without a value, use none with ' +
          'attributeName alone.',
      )
  } else if (!leaf.optional)
    warn(
      `${relation ? `${relation}.` : ''}${field} is never absent, so this ` +
        `${absent ? 'never' : 'always'} matches.`,
    )
}

const NEGATED_OPERATORS = new Set(['ne', 'notIn', 'notContains'])
const positiveOperators: Readonly<Record<string, string>> = { ne: 'eq', notIn: 'in', notContains: 'contains' }
/**
 * Relations of which a contact may have several records, where "has another" is easily mistaken for "does not
 * have this one".
 */
const MULTI_VALUED_RELATIONS = new Set(['tags', 'groups', 'attributes', 'broadcasts'])

const warnAboutNegation = (
  { field, leaf, relation, quantifier, tests, absentToo }: FieldTests,
  { op }: ParsedTest,
  warn: Warn,
): void => {
  if (relation && MULTI_VALUED_RELATIONS.has(relation) && field !== 'sentAt') {
    if (quantifier === 'some')
      warn(
        `some with ${op} matches contacts that have another one, and none without any. For contacts ` +
          `without this one, use none with ${positiveOperators[op]}.`,
      )
    if (quantifier === 'none')
      warn(`none with ${op} matches contacts that have no other one, and those without any.`)
  } else if (leaf.optional && !absentToo && !tests.some((test) => test.op === 'isNull')) {
    const what = relation ? `${relation[0]!.toUpperCase()}${relation.slice(1)}` : 'Contacts'
    warn(
      `${what} without ${field} do not match: absent values fail every comparison. To include them, ` +
        `add {"${field}": {"isNull": true}} in an or.`,
    )
  }
}

const warnAboutBounds = (state: ParseState, { leaf, path, tests }: FieldTests): void => {
  if (leaf.kind !== 'time' && leaf.kind !== 'number') return
  const findTest = (...ops: string[]) => tests.find(({ op }) => ops.includes(op))
  const [low, high] = [findTest('gt', 'gte'), findTest('lt', 'lte')]
  if (!low || !high) return
  const [from, to] = [getValues(low)[0]!, getValues(high)[0]!]
  const touching = !isAfter(leaf, to, from) && (low.op === 'gt' || high.op === 'lt')
  if (isAfter(leaf, from, to) || touching)
    addWarning(state, path, `No value is both ${low.op} and ${high.op} these values.`)
}

/** The kind of value that each field of a custom value compares, and the reverse. */
const kindsByValueField: Readonly<Record<string, ValueCondition['as']>> = {
  stringValue: 'string',
  numberValue: 'number',
  booleanValue: 'boolean',
  dateValue: 'date',
}
const valueFieldsByKind: Readonly<Record<ValueCondition['as'], string>> = {
  string: 'stringValue',
  number: 'numberValue',
  boolean: 'booleanValue',
  date: 'dateValue',
}

const warnAboutOptions = (state: ParseState, { path, tests }: FieldTests, attribute: FieldRow): void => {
  const options = attribute.options ?? []
  for (const test of tests) {
    if (!['eq', 'ne', 'in', 'notIn'].includes(test.op)) continue
    for (const value of getValues(test)) {
      if (options.some((option) => option.value === value)) continue
      const labeled = options.find((option) => option.label.toLowerCase() === value.toLowerCase())
      const message = labeled
        ? `"${value}" is the label of an option, but filters compare values: use "${labeled.value}".`
        : `${attribute.key} has no option with the value "${value}"; its values are ${options
            .slice(0, 20)
            .map((option) => option.value)
            .join(', ')}.`
      addWarning(state, [...path, test.op], message)
    }
  }
}

/** The statuses from each one on; a test for one status excludes the later ones. */
const LATER_STATUSES: Readonly<Record<string, readonly string[]>> = {
  sent: ['sent', 'delivered', 'read'],
  delivered: ['delivered', 'read'],
}

/** Warns about likely mistakes in the conditions on one related record. */
export const warnAboutRecord = (
  state: ParseState,
  { relation, quantifier, path, conditions }: RecordTests,
): void => {
  if (quantifier === 'every') {
    const hasConditions = conditions.length > 0
    addWarning(
      state,
      path,
      hasConditions
        ? `Contacts without any ${relation} match every too. Add some to exclude them.`
        : `Every contact matches: there are no conditions on its ${relation}.`,
    )
  }
  if (relation !== 'broadcasts') return
  const testsOf = (field: string) => conditions.find((condition) => condition.field === field)?.tests ?? []
  for (const test of testsOf('message_status')) {
    const statusPath = [...path, 'message_status', test.op]
    const namesBroadcast = testsOf('id').some(({ op }) => op === 'eq' || op === 'in')
    if (getValues(test).includes('not_responded') && !namesBroadcast) {
      addWarning(
        state,
        statusPath,
        'Without a broadcast id, this matches contacts who did not respond to at least one broadcast, ' +
          'even if they responded to others. Add id to select one broadcast.',
      )
    }
    const laterStatuses = test.op === 'eq' ? LATER_STATUSES[getValues(test)[0]!] : undefined
    if (laterStatuses)
      addWarning(
        state,
        statusPath,
        `A message with a later status does not match ${getValues(test)[0]}. For all that reached ` +
          `this status, use {"in": ${JSON.stringify(laterStatuses)}}.`,
      )
  }
}
