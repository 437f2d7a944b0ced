import { optionTypes } from '../../catalog/custom-fields.ts'
import type { FieldRow } from '../../storage/custom-fields.ts'
import { type ValueCondition, valueKinds } from '../../storage/filters/filter.ts'
import type { Leaf } from './grammar.ts'
import type { ReadTest } from './operands.ts'
import { isObject, type Path, type Walk, warn } from './walk.ts'

/** The operators of one field. `absentToo`: an `or` around it asks for the absence of the field as well. */
export type Tests = {
  field: string
  leaf: Leaf
  path: Path
  tests: readonly ReadTest[]
  absentToo: boolean
  relation?: string
  quantifier?: string
  attribute?: FieldRow | undefined
}
/** The conditions on one related record. */
export type RecordTests = {
  relation: string
  quantifier: string
  path: Path
  conditions: readonly { field: string; tests: readonly ReadTest[] }[]
}

const isEmpty = (raw: unknown): boolean => isObject(raw) && Object.keys(raw).length === 0

export const warnOfCombined = (walk: Walk, kind: 'and' | 'or', raw: readonly unknown[], path: Path): void => {
  if (kind === 'or' && raw.some(isEmpty))
    warn(
      walk,
      [...path, raw.findIndex(isEmpty)],
      'An empty filter means every contact, so the other choices of this or make no difference.',
    )
}

export const warnOfNot = (walk: Walk, raw: unknown, path: Path): void => {
  if (isEmpty(raw))
    warn(walk, path, 'No contact meets this: an empty filter means every contact, and not turns it round.')
}

/** What looks like a mistake in the operators of one field. */
export const warnOfTests = (walk: Walk, given: Tests): void => {
  const { field, leaf, path, tests, attribute } = given
  if (attribute && leafKinds[field] !== valueKinds[attribute.type]) {
    warn(
      walk,
      path,
      `The custom field ${attribute.key} is of the type ${attribute.type}, so no comparison of its ${field} matches. Use ${fieldOfKind[valueKinds[attribute.type]]}.`,
    )
    return
  }
  for (const test of tests) {
    const say = (message: string) => warn(walk, [...path, test.op], message)
    if (leaf.kind === 'time') warnOfTime(walk, given, test, say)
    if (leaf.kind === 'text') warnOfText(given, test, say)
    if (test.op === 'isNull') warnOfIsNull(given, test, say)
    if (NEGATIONS.has(test.op)) warnOfNegation(given, test, say)
    if (test.op === 'between' && isAfter(leaf, boundsOf(test).from, boundsOf(test).to))
      say('The first value lies after the second, so nothing is between them. Turn them round.')
  }
  warnOfBounds(walk, given)
  if (attribute && optionTypes.includes(attribute.type)) warnOfOptions(walk, given, attribute)
}

const valuesOf = ({ test }: ReadTest): readonly string[] =>
  'values' in test ? test.values : 'value' in test && typeof test.value === 'string' ? [test.value] : []
const boundsOf = ({ test }: ReadTest): { from: string; to: string } => test as { from: string; to: string }
const isAfter = (leaf: Leaf, a: string, b: string): boolean =>
  leaf.kind === 'number' ? Number(a) > Number(b) : a > b

type Say = (message: string) => void

/** Times of what has happened. */
const PAST = new Set(['createdAt', 'updatedAt', 'lastActivityAt', 'sentAt'])

const warnOfTime = (walk: Walk, { field, attribute }: Tests, { op, dates }: ReadTest, say: Say): void => {
  const days = attribute?.type === 'date'
  const last = dates.at(-1)
  if (!last) return
  if (days) {
    if (dates.some(({ form }) => form === 'instant' || form === 'local'))
      say('The field holds days, so the time of day makes no difference.')
    return
  }
  if (dates.some(({ form }) => form === 'day' || form === 'local')) {
    say(
      `Without a time zone it is read in that of the workspace, ${walk.zone}. Add Z or an offset such as +02:00 to be sure.`,
    )
  }
  if (op === 'eq' || op === 'ne')
    say(`${op} compares to the millisecond. For a whole day use gte with its start and lt with the next day.`)
  if ((op === 'lte' || op === 'between') && last.starts) {
    say(
      'This is the first instant of its day or span: what happens later in it does not match. Use end_of_… or lt with the day after.',
    )
  }
  if (op === 'gt' && last.form === 'day')
    say(
      'This is the first instant of the day, so the rest of that day matches too. To begin with the day after, use gte with it.',
    )
  if (['gt', 'gte', 'between'].includes(op) && PAST.has(field) && dates[0]!.instant > walk.now)
    say('This lies in the future, where nothing has happened yet, so nothing matches.')
}

/** Operators that look at the beginning of the text. */
const ANCHORED = new Set(['eq', 'ne', 'in', 'notIn', 'startsWith'])

const warnOfText = ({ field, leaf, attribute }: Tests, test: ReadTest, say: Say): void => {
  const values = valuesOf(test)
  const phone = (leaf.phone && field === 'phoneNumber') || attribute?.type === 'phone'
  if (test.op === 'regex') {
    if (/^[\p{L}\p{N}\s_@-]*$/u.test(values[0]!))
      say('This regular expression is plain text. contains finds the same and ignores case.')
    if (phone && /^\^?\(?\\\+/.test(values[0]!))
      say('Phone numbers are stored as digits, without +, so this never matches.')
    return
  }
  if (values.includes('')) {
    say(
      test.op === 'eq' || test.op === 'in'
        ? 'Empty text is never stored. To find what is absent, use {"isNull": true}.'
        : 'Every text contains the empty text.',
    )
  } else if (phone && values.some((value) => /\D/.test(value)))
    say('This is not a phone number, so it is never equal to one. Send digits with the country code.')
  else if (phone && ANCHORED.has(test.op) && values.some((value) => value.startsWith('0'))) {
    say('Phone numbers are stored with their country code and without leading zeros, so none begins so.')
  } else if (values.some((value) => value !== value.trim()))
    say('The value begins or ends with a space, which counts.')
}

const warnOfIsNull = (
  { field, leaf, relation, tests, attribute }: Tests,
  { test }: ReadTest,
  say: Say,
): void => {
  const absent = 'value' in test && test.value === true
  if (absent && tests.length > 1) say('What is absent meets no other operator, so nothing matches both.')
  else if (attribute) {
    if (absent)
      say(
        'A value that is there is never absent. To find contacts without one, use none with attributeName alone.',
      )
  } else if (!leaf.optional)
    say(
      `${relation ? `${relation}.` : ''}${field} is never absent, so this is ${absent ? 'never' : 'always'} met.`,
    )
}

const NEGATIONS = new Set(['ne', 'notIn', 'notContains'])
const positive: Readonly<Record<string, string>> = { ne: 'eq', notIn: 'in', notContains: 'contains' }
/**
 * Relations of which a contact may have several, where "has another" is easily taken for "lacks this one".
 */
const CONFUSABLE = new Set(['tags', 'groups', 'attributes', 'broadcasts'])

const warnOfNegation = (
  { field, leaf, relation, quantifier, tests, absentToo }: Tests,
  { op }: ReadTest,
  say: Say,
): void => {
  if (relation && CONFUSABLE.has(relation) && field !== 'sentAt') {
    if (quantifier === 'some')
      say(
        `some with ${op} asks for another one: contacts without any do not match. For contacts that lack this one use none with ${positive[op]}.`,
      )
    if (quantifier === 'none')
      say(`none with ${op} asks that there is no other one: contacts without any match too.`)
  } else if (leaf.optional && !absentToo && !tests.some((test) => test.op === 'isNull')) {
    const what = relation ? `${relation[0]!.toUpperCase()}${relation.slice(1)}` : 'Contacts'
    say(
      `${what} without ${field} do not match: nothing that is absent is compared. To include them, put {"${field}": {"isNull": true}} beside it in an or.`,
    )
  }
}

const warnOfBounds = (walk: Walk, { leaf, path, tests }: Tests): void => {
  if (leaf.kind !== 'time' && leaf.kind !== 'number') return
  const valueOf = (...ops: string[]) => tests.find(({ op }) => ops.includes(op))
  const [low, high] = [valueOf('gt', 'gte'), valueOf('lt', 'lte')]
  if (!low || !high) return
  const [from, to] = [valuesOf(low)[0]!, valuesOf(high)[0]!]
  const touching = !isAfter(leaf, to, from) && (low.op === 'gt' || high.op === 'lt')
  if (isAfter(leaf, from, to) || touching)
    warn(walk, path, `Nothing is both ${low.op} and ${high.op} of these values.`)
}

/** The kinds of values that the fields of a custom value are about, and the other way round. */
const leafKinds: Readonly<Record<string, ValueCondition['as']>> = {
  stringValue: 'string',
  numberValue: 'number',
  booleanValue: 'boolean',
  dateValue: 'date',
}
const fieldOfKind: Readonly<Record<ValueCondition['as'], string>> = {
  string: 'stringValue',
  number: 'numberValue',
  boolean: 'booleanValue',
  date: 'dateValue',
}

const warnOfOptions = (walk: Walk, { path, tests }: Tests, attribute: FieldRow): void => {
  const options = attribute.options ?? []
  for (const test of tests) {
    if (!['eq', 'ne', 'in', 'notIn'].includes(test.op)) continue
    for (const value of valuesOf(test)) {
      if (options.some((option) => option.value === value)) continue
      const labelled = options.find((option) => option.label.toLowerCase() === value.toLowerCase())
      const known = labelled
        ? `"${value}" is the label of an option, and values are compared: use "${labelled.value}".`
        : `${attribute.key} has no option with the value "${value}"; its values are ${options
            .slice(0, 20)
            .map((option) => option.value)
            .join(', ')}.`
      warn(walk, [...path, test.op], known)
    }
  }
}

/** How far a message came; each leaves out those that came further. */
const FURTHER: Readonly<Record<string, readonly string[]>> = {
  sent: ['sent', 'delivered', 'read'],
  delivered: ['delivered', 'read'],
}

/** What looks like a mistake in the conditions on one related record. */
export const warnOfRecord = (walk: Walk, { relation, quantifier, path, conditions }: RecordTests): void => {
  if (quantifier === 'every') {
    const asked = conditions.length > 0
    warn(
      walk,
      path,
      asked
        ? `Contacts without any ${relation} meet every too. Add some, if they should not.`
        : `Every contact meets this: nothing is asked of its ${relation}.`,
    )
  }
  if (relation !== 'broadcasts') return
  const testsOf = (field: string) => conditions.find((condition) => condition.field === field)?.tests ?? []
  for (const test of testsOf('message_status')) {
    const place = [...path, 'message_status', test.op]
    const named = testsOf('id').some(({ op }) => op === 'eq' || op === 'in')
    if (valuesOf(test).includes('not_responded') && !named) {
      warn(
        walk,
        place,
        'Without a broadcast id this is met by contacts who left any one broadcast unanswered, even if they answered others. Add id to ask about one.',
      )
    }
    const further = test.op === 'eq' ? FURTHER[valuesOf(test)[0]!] : undefined
    if (further)
      warn(
        walk,
        place,
        `A message that came further does not count as ${valuesOf(test)[0]}. For all that came at least so far use {"in": ${JSON.stringify(further)}}.`,
      )
  }
}
