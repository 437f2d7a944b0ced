import fc from 'fast-check'
import { type CustomFieldType, customFieldTypes } from '../../catalog/custom-fields.ts'
import { filterLimits } from '../../catalog/filters.ts'
import { options, relativeDates, toFieldKey } from './sample-values.ts'
import type { SeededWorkspace } from './seed.ts'
import type { AttributeValue, Json, JsonObject, ModelContact } from './model.ts'

/**
 * Generates filters of every form. Most operands come from the seeded contacts, so that results are neither
 * always empty nor always all contacts.
 */
export const arbitraryFilter = ({
  contacts,
  relatedIds,
  foreign,
  context,
}: SeededWorkspace): fc.Arbitrary<JsonObject> => {
  const listValues = <T>(read: (contact: ModelContact) => T | null | readonly T[]): T[] => [
    ...new Set(contacts.flatMap((contact) => (read(contact) ?? []) as T | T[])),
  ]
  const values = Object.fromEntries(
    customFieldTypes.map((type) => [
      type,
      listValues((contact) =>
        contact.attributes.filter((v) => v.key === toFieldKey(type)).map((v) => v.value),
      ),
    ]),
  ) as Record<CustomFieldType, AttributeValue['value'][]>
  const dates = fc.oneof(
    { weight: 4, arbitrary: instantText(listValues((contact) => [contact.createdAt, contact.updatedAt])) },
    { weight: 4, arbitrary: oneOf(relativeDates) },
    oneOf(localDates),
  )

  const numbers = numberTests([...values.number, ...values.int, ...values.float, ...values.decimal] as (
    | string
    | number
  )[])
  const arbitraryAttribute = (type: CustomFieldType): fc.Arbitrary<JsonObject> => {
    const tests: Record<string, fc.Arbitrary<JsonObject>> = {
      stringValue: textTests([
        ...values[type].map(String),
        ...(type === 'multiselect' ? options.map((o) => o.value) : []),
      ]),
      numberValue: numbers,
      booleanValue: flagTests,
      dateValue: timeTests(type === 'date' ? fc.oneof(oneOf(localDates.slice(0, 9)), dates) : dates),
    }
    const other = oneOf(Object.keys(tests))
    const conditions = fc.oneof(
      { weight: 9, arbitrary: fc.constant([valueFields[type]]) },
      other.map((o) => [o]),
      other.map((o) => [valueFields[type], o]),
      fc.constant([]),
    )
    return conditions.chain(
      (kinds) =>
        fc.record({
          attributeName: fc.constant({ eq: toFieldKey(type) }),
          ...Object.fromEntries(kinds.map((k) => [k, tests[k]!])),
        }) as fc.Arbitrary<JsonObject>,
    )
  }
  const attribute = fc.oneof(...customFieldTypes.map(arbitraryAttribute))
  const label = (of: 'tags' | 'groups') => {
    const labelIds = listValues((contact) => contact[of].map((l) => l.id))
    return where({
      id: refTests([...labelIds, ...labelIds, ...foreign[of]]),
      name: textTests(listValues((contact) => contact[of].map((l) => l.name))),
    })
  }
  const conversation = where({
    state: wordTests(['open', 'closed']),
    channelId: refTests([...relatedIds.channels, '999']),
    assignedStaffId: refTests(relatedIds.staff),
    assignedTeamId: refTests(relatedIds.teams),
    createdAt: timeTests(dates),
    lastActivityAt: timeTests(dates),
    unreadCount: numberTests([0, 1, 2, 3, 40, 0.5]),
  })
  const consent = where({
    purpose: keyTests(['marketing', 'research', 'other']),
    channel: keyTests(['all', 'chatapp', 'webchat', 'other']),
    state: wordTests(['granted', 'withdrawn']),
  })
  const statuses = ['pending', 'sent', 'delivered', 'read', 'failed', 'responded', 'not_responded']
  const broadcast = where({
    id: refTests([...relatedIds.broadcasts, ...relatedIds.broadcasts, ...foreign.broadcasts]),
    message_status: wordTests(statuses),
    sentAt: timeTests(dates),
  })

  const leaf = fc.oneof(
    { weight: 3, arbitrary: field('name', textTests(listValues((contact) => contact.name))) },
    field('phoneNumber', textTests(listValues((contact) => contact.phoneNumber))),
    field('email', textTests(listValues((contact) => contact.email))),
    field('chatappUserId', textTests(listValues((contact) => contact.chatappUserId))),
    field('webVisitorId', textTests(listValues((contact) => contact.webVisitorId))),
    field(
      'id',
      wordTests(
        [...contacts.slice(0, 20).map((contact) => contact.id), ...foreign.contacts, '9999999999999999999'],
        true,
      ),
    ),
    ...['createdAt', 'updatedAt', 'lastActivityAt'].map((name) => field(name, timeTests(dates))),
    ...['lastInboundAt', 'lastOutboundAt'].map((name) => field(name, timeTests(dates))),
    ...['dnd', 'starred', 'awaitingReply', 'neverAnswered'].map((name) => field(name, flagTests)),
    field('country', countryTests),
    { weight: 2, arbitrary: field('consents', quantified(['some', 'none'], consent)) },
    ...(['tags', 'groups'] as const).map((name) => ({
      weight: 2,
      arbitrary: field(name, quantified(['some', 'none', 'every'], label(name))),
    })),
    { weight: 9, arbitrary: field('attributes', quantified(['some', 'some', 'none'], attribute)) },
    { weight: 3, arbitrary: field('conversations', quantified(['some', 'none'], conversation)) },
    { weight: 3, arbitrary: field('broadcasts', quantified(['some', 'none'], broadcast)) },
    ...(context.saved.size > 0
      ? [
          field(
            'savedFilter',
            oneOf([...context.saved.keys()]).map((id): JsonObject => ({ eq: id })),
          ),
        ]
      : []),
  )
  // Several keys in one object are combined with `and`.
  const object = fc.oneof(
    { weight: 12, arbitrary: leaf },
    { weight: 3, arbitrary: fc.tuple(leaf, leaf).map(([a, b]): JsonObject => ({ ...a, ...b })) },
    fc.constant<JsonObject>({}),
  )
  const node = fc.memo((depth): fc.Arbitrary<JsonObject> =>
    depth <= 1
      ? object
      : fc.oneof(
          { weight: 3, arbitrary: object },
          {
            weight: 2,
            arbitrary: fc
              .array(node(depth - 1), { minLength: 1, maxLength: 3 })
              .map((and): JsonObject => ({ and })),
          },
          {
            weight: 3,
            arbitrary: fc
              .array(node(depth - 1), { minLength: 1, maxLength: 3 })
              .map((or): JsonObject => ({ or })),
          },
          { weight: 1, arbitrary: node(depth - 1).map((not): JsonObject => ({ not })) },
          {
            weight: 1,
            arbitrary: fc.tuple(node(depth - 1), leaf).map(([not, more]): JsonObject => ({ not, ...more })),
          },
        ),
  )
  return node(4).filter(
    (filter) =>
      Buffer.byteLength(JSON.stringify(filter)) <= filterLimits.bytes &&
      countOperators(filter) <= filterLimits.conditions,
  )
}

const valueFields: Record<CustomFieldType, string> = {
  text: 'stringValue',
  textarea: 'stringValue',
  email: 'stringValue',
  url: 'stringValue',
  phone: 'stringValue',
  select: 'stringValue',
  radio: 'stringValue',
  multiselect: 'stringValue',
  number: 'numberValue',
  int: 'numberValue',
  float: 'numberValue',
  decimal: 'numberValue',
  checkbox: 'booleanValue',
  boolean: 'booleanValue',
  date: 'dateValue',
  datetime: 'dateValue',
}

const oneOf = <T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
const field = (name: string, tests: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> =>
  tests.map((value) => ({ [name]: value }))
/** One of the tests, sometimes two of them on one field. */
const pick = (...tests: fc.Arbitrary<JsonObject>[]): fc.Arbitrary<JsonObject> => {
  const one = fc.oneof(...tests)
  return fc.oneof(
    { weight: 7, arbitrary: one },
    fc.tuple(one, one).map(([a, b]) => ({ ...a, ...b })),
  )
}
const op = (names: readonly string[], value: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> =>
  fc.tuple(oneOf(names), value).map(([name, operand]) => ({ [name]: operand }))
const list = (value: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.array(value, { minLength: 1, maxLength: 6 })
const isNull = op(['isNull'], fc.boolean())

/** One or two quantifiers, each with conditions on one related record. */
const quantified = (
  quantifiers: readonly string[],
  operand: fc.Arbitrary<JsonObject>,
): fc.Arbitrary<JsonObject> => pick(op(quantifiers, operand))
const where = (tests: Record<string, fc.Arbitrary<JsonObject>>): fc.Arbitrary<JsonObject> =>
  fc
    .uniqueArray(oneOf(Object.keys(tests)), { minLength: 1, maxLength: 3 })
    .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, tests[name]!]))))

const flagTests = pick(op(['eq', 'ne'], fc.boolean()), isNull)
/** Tests of ids, as text and as integers, and of words. */
const wordTests = (values: readonly string[], asIds = false): fc.Arbitrary<JsonObject> => {
  const value: fc.Arbitrary<Json> = asIds
    ? fc
        .tuple(oneOf(values), fc.boolean())
        .map(([id, bare]) => (bare && Number.isSafeInteger(Number(id)) ? Number(id) : id))
    : oneOf(values)
  return pick(op(['eq', 'ne'], value), op(['in', 'notIn'], list(value)))
}
const refTests = (values: readonly string[]): fc.Arbitrary<JsonObject> =>
  fc.oneof({ weight: 6, arbitrary: wordTests(values, true) }, isNull)

const keyTests = (values: readonly string[]): fc.Arbitrary<JsonObject> => op(['eq'], oneOf(values))
const countryTests = fc.oneof(
  { weight: 6, arbitrary: wordTests(['US', 'CA', 'DE', 'GB', 'GG', 'KZ', 'FR']) },
  isNull,
)

const comparisons = ['gt', 'gte', 'lt', 'lte']
const timeTests = (date: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> =>
  fc.oneof(
    { weight: 4, arbitrary: pick(op(comparisons, date)) },
    op(['eq', 'ne'], date),
    { weight: 2, arbitrary: op(['between'], fc.tuple(date, date)) },
    isNull,
  )
const numberTests = (values: readonly (string | number)[]): fc.Arbitrary<JsonObject> => {
  const value: fc.Arbitrary<Json> = fc.oneof(
    { weight: 4, arbitrary: oneOf(values) },
    oneOf(values).map(Number),
    oneOf(values).map((n) => Number(n) + 1),
    oneOf(['2.5', '-0', '1.10']),
  )
  return fc.oneof(
    { weight: 4, arbitrary: pick(op(comparisons, value)) },
    { weight: 2, arbitrary: op(['eq', 'ne'], value) },
    op(['in', 'notIn'], list(value)),
    op(['between'], fc.tuple(value, value)),
    isNull,
  )
}

/** An instant in one of its notations. */
const instantText = (instants: readonly number[]): fc.Arbitrary<string> =>
  fc.tuple(oneOf(instants), oneOf([0, 330, -210])).map(([ms, offset]) => {
    if (offset === 0) return new Date(ms).toISOString()
    const local = new Date(ms + offset * 60_000).toISOString().slice(0, -1)
    return `${local}${offset < 0 ? '-' : '+'}${String(Math.floor(Math.abs(offset) / 60)).padStart(2, '0')}:30`
  })
const localDates = [
  '0001-01-01',
  '2024-02-29',
  '2025-12-31',
  '2026-01-01',
  '2026-02-28',
  '2026-03-01',
  '2026-03-09',
  '2026-03-10',
  '9999-12-30',
  '2026-03-08T02:30:00',
  '2026-03-10T08:34:56.789',
  '2025-11-02T01:30',
]

const codePoints = (text: string): string[] => Array.from(text)
const truncate = (text: string): string => codePoints(text).slice(0, filterLimits.string).join('')
const partOf = (text: string): fc.Arbitrary<string> => {
  const all = codePoints(text)
  return fc
    .tuple(fc.nat(all.length - 1), fc.integer({ min: 1, max: 6 }), fc.boolean())
    .map(([from, length, toEnd]) => all.slice(from, toEnd ? from + 200 : from + length).join(''))
}
const anyCase = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      text,
      oneOf<(text: string) => string>([
        (t) => t,
        (t) => t.toUpperCase(),
        (t) => t.toLowerCase(),
        (t) => t.normalize('NFD'),
        (t) => t.normalize('NFC'),
      ]),
    )
    .map(([t, change]) => truncate(change(t)))

const textTests = (values: readonly string[]): fc.Arbitrary<JsonObject> => {
  if (values.length === 0) return isNull
  const wholeText = fc.oneof(
    { weight: 8, arbitrary: oneOf(values).map(truncate) },
    oneOf(['nobody', '%', '_', '\\']),
  )
  const beginning = oneOf(values).chain((text) =>
    fc.integer({ min: 1, max: 250 }).map((length) => codePoints(text).slice(0, length).join('')),
  )
  const end = oneOf(values).chain((text) =>
    fc.integer({ min: 1, max: 6 }).map((length) => codePoints(text).slice(-length).join('')),
  )
  const inside = fc.oneof(
    { weight: 6, arbitrary: oneOf(values).chain(partOf) },
    oneOf(['%', '_', '\\', '\n', 'a', '%%', '_0']),
  )
  return fc.oneof(
    { weight: 2, arbitrary: op(['eq', 'ne'], wholeText) },
    op(['in', 'notIn'], list(wholeText)),
    { weight: 3, arbitrary: pick(op(['contains', 'notContains'], anyCase(inside))) },
    op(['startsWith'], anyCase(beginning)),
    op(['endsWith'], anyCase(end)),
    op(['regex'], arbitraryRegex(values)),
    isNull,
  )
}

const escapeRegex = (text: string): string => text.replaceAll(/[$()*+./?[\\\]^{|}]/g, '\\$&')
/** Regular expressions that mean the same in PostgreSQL and JavaScript. */
const arbitraryRegex = (values: readonly string[]): fc.Arbitrary<string> => {
  const literal = oneOf(values)
    .chain((text) => partOf(text))
    .map((text) => codePoints(text).slice(0, 8))
  const atom = fc.oneof(
    { weight: 4, arbitrary: literal.map((chars) => chars.map(escapeRegex).join('')) },
    oneOf(['.', '[a-m]', '[^a]', '[0-9_%]', '(a|b)', '(Ada|pro|1)']),
  )
  const piece = fc
    .tuple(atom, fc.oneof({ weight: 3, arbitrary: fc.constant('') }, oneOf(['*', '+', '?', '{1,2}'])))
    .map(([a, quantifier]) => a + quantifier)
  return fc
    .tuple(oneOf(['', '', '^']), fc.array(piece, { minLength: 1, maxLength: 3 }), oneOf(['', '', '$']))
    .map(([start, pieces, stop]) => start + pieces.join('') + stop)
}

/** Counts the operators of a filter, `attributeName` included. */
const countOperators = (node: Json): number => {
  if (Array.isArray(node)) return node.reduce<number>((sum, child) => sum + countOperators(child as Json), 0)
  if (node === null || typeof node !== 'object') return 0
  return Object.entries(node as JsonObject).reduce(
    (sum, [key, value]) => sum + (isNested(key, value) ? countOperators(value) : 1),
    0,
  )
}
const isNested = (key: string, value: Json): boolean =>
  ['and', 'or'].includes(key) || (typeof value === 'object' && value !== null && !Array.isArray(value))
