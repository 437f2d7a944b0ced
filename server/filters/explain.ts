import type { FieldRow } from '../../storage/custom-fields.ts'
import { leaves } from './grammar.ts'
import type { Saved } from './saved.ts'
import { isObject } from './walk.ts'

/** What a filter names, and the zone in which its dates are told. */
export type Names = { zone: string; fields: readonly FieldRow[]; saved: ReadonlyMap<string, Saved> }

/** What a filter means, in one sentence. It is a filter that was read before, its dates absolute. */
export const explain = (filter: Record<string, unknown>, names: Names): string => {
  const clauses = clausesOf(filter, names)
  return clauses.length === 0 ? 'All contacts.' : `Contacts ${list(clauses, 'and')}.`
}

/** Relative clauses that must all hold, such as `whose name is "Ada"`. */
const clausesOf = (node: Record<string, unknown>, names: Names): string[] =>
  Object.entries(node).flatMap(([key, value]) => {
    if (key === 'and') return (value as Record<string, unknown>[]).flatMap((child) => clausesOf(child, names))
    if (key === 'or')
      return eitherOf((value as Record<string, unknown>[]).map((child) => clausesOf(child, names)))
    if (key === 'not')
      return [`that are not among those (${wholeOf(clausesOf(value as Record<string, unknown>, names))})`]
    if (key === 'savedFilter') {
      const id = String((value as { eq: string | number }).eq)
      return [`that match the saved filter ${quote(names.saved.get(id)?.name ?? id)}`]
    }
    const tests = value as Record<string, unknown>
    if (Object.hasOwn(leaves, key))
      return Object.entries(tests).map(([op, operand]) => PLURAL[key]!(op, operand, names.zone))
    return Object.entries(tests).map(([quantifier, record]) =>
      recordClause(key, quantifier, record as Record<string, Record<string, unknown>>, names),
    )
  })

const wholeOf = (clauses: readonly string[]): string =>
  clauses.length === 0 ? 'all contacts' : list(clauses, 'and')

const EITHER = 'either '
/** A choice among others is put in brackets, so that one can tell where it ends. */
const enclosed = (clause: string): string => (clause.startsWith(EITHER) ? `(${clause})` : clause)

const eitherOf = (choices: readonly string[][]): string[] =>
  choices.length === 1
    ? choices[0]!
    : [
        `${EITHER}${choices.map((clauses) => (clauses.length === 1 ? enclosed(clauses[0]!) : `(${wholeOf(clauses)})`)).join(', or ')}`,
      ]

const list = (parts: readonly string[], word: string): string =>
  parts.length < 2
    ? parts.join('')
    : `${parts.slice(0, -1).map(enclosed).join(', ')} ${word} ${enclosed(parts.at(-1)!)}`

const quote = (text: unknown): string => JSON.stringify(text)

type Clause = (op: string, operand: unknown, zone: string) => string

const MOST_LISTED = 5

/** Values of a list, the first few of them. */
const oneOf = (operand: unknown, show: (value: unknown) => string): string => {
  const values = operand as readonly unknown[]
  const shown = values.slice(0, MOST_LISTED).map(show)
  return values.length > MOST_LISTED
    ? `${shown.join(', ')} and ${values.length - MOST_LISTED} more`
    : list(shown, 'or')
}

/** A verb phrase for an operator on text, words, ids and numbers. */
const verb = (op: string, operand: unknown, show: (value: unknown) => string): string => {
  switch (op) {
    case 'eq':
      return `is ${show(operand)}`
    case 'ne':
      return `is present and not ${show(operand)}`
    case 'in':
      return `is one of ${oneOf(operand, show)}`
    case 'notIn':
      return `is present and none of ${oneOf(operand, show)}`
    case 'contains':
      return `contains ${show(operand)}`
    case 'notContains':
      return `is present and does not contain ${show(operand)}`
    case 'startsWith':
      return `begins with ${show(operand)}`
    case 'endsWith':
      return `ends with ${show(operand)}`
    case 'regex':
      return `matches the regular expression ${show(operand)}`
    case 'gt':
      return `is more than ${show(operand)}`
    case 'gte':
      return `is at least ${show(operand)}`
    case 'lt':
      return `is less than ${show(operand)}`
    case 'lte':
      return `is at most ${show(operand)}`
    case 'between':
      return `is from ${show((operand as unknown[])[0])} to ${show((operand as unknown[])[1])}`
    default:
      return operand === true ? 'is absent' : 'is present'
  }
}

const bare = (value: unknown): string => String(value)
const whose =
  (what: string, show: (value: unknown) => string): Clause =>
  (op, operand) =>
    `whose ${what} ${verb(op, operand, show)}`

/**
 * `happened`: as in "were created"; `never` and `present`: what it means that the time is absent, and that
 * it is not.
 */
const when =
  (happened: string, never: string, present: string): Clause =>
  (op, operand, zone) =>
    op === 'isNull'
      ? `that ${operand === true ? never : present}`
      : `that ${happened} ${timePhrase(op, operand, zone)}`

const timePhrase = (op: string, operand: unknown, zone: string): string => {
  const at = (value: unknown) => dateText(String(value), zone)
  switch (op) {
    case 'eq':
      return `at exactly ${at(operand)}`
    case 'ne':
      return `at another time than ${at(operand)}`
    case 'gt':
      return `after ${at(operand)}`
    case 'gte':
      return `on or after ${at(operand)}`
    case 'lt':
      return `before ${at(operand)}`
    case 'lte':
      return `on or before ${at(operand)}`
    default:
      return `from ${at((operand as unknown[])[0])} to ${at((operand as unknown[])[1])}`
  }
}

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]

/** A day as `24 September 2026`, an instant as `24 September 2026, 09:30 (Europe/Berlin)`. */
const dateText = (text: string, zone: string): string => {
  const day = (date: { day: number; month: number; year: number }) =>
    `${date.day} ${MONTHS[date.month - 1]} ${date.year}`
  if (text.length === 'YYYY-MM-DD'.length) return day(Temporal.PlainDate.from(text))
  const local = Temporal.Instant.from(text).toZonedDateTimeISO(zone)
  return `${day(local)}, ${local.toPlainTime().toString({ smallestUnit: local.second > 0 ? 'second' : 'minute' })} (${zone})`
}

const flag =
  (what: string): Clause =>
  (op, operand) =>
    op === 'isNull'
      ? `whose mark "${what}" ${verb(op, operand, bare)}`
      : `that are ${(op === 'eq') === operand ? '' : 'not '}${what}`

const PLURAL: Readonly<Record<string, Clause>> = {
  name: whose('name', quote),
  phoneNumber: whose('phone number', quote),
  email: whose('email address', quote),
  chatappUserId: whose('messaging app id', quote),
  webVisitorId: whose('web visitor id', quote),
  id: whose('id', bare),
  createdAt: when('were created', 'have no time of creation', 'have a time of creation'),
  updatedAt: when('were changed', 'were never changed', 'were changed'),
  lastActivityAt: when('were last active', 'were never active', 'were active'),
  dnd: flag('do-not-disturb'),
  starred: flag('starred'),
}

const message: Clause = (op, operand) => {
  if (op === 'eq' && operand === 'responded') return 'that they answered'
  if (op === 'eq' && operand === 'not_responded') return 'that they did not answer'
  return whose('message status', bare)(op, operand, '')
}

/** The fields of related records, told of one of them. */
const SINGULAR: Readonly<Record<string, Readonly<Record<string, Clause>>>> = {
  tags: { id: whose('id', bare), name: whose('name', quote) },
  groups: { id: whose('id', bare), name: whose('name', quote) },
  conversations: {
    state: whose('state', bare),
    channelId: whose('channel', bare),
    assignedStaffId: whose('assigned staff member', bare),
    assignedTeamId: whose('assigned team', bare),
    createdAt: when('was created', 'has no time of creation', 'has a time of creation'),
    lastActivityAt: when('was last active', 'was never active', 'was active'),
    unreadCount: whose('number of unread messages', bare),
  },
  broadcasts: {
    id: whose('id', bare),
    message_status: message,
    sentAt: when('was sent to them', 'was not sent to them', 'was sent to them'),
  },
  attributes: {
    stringValue: (op, operand) => `that ${verb(op, operand, quote)}`,
    numberValue: (op, operand) => `that ${verb(op, operand, bare)}`,
    booleanValue: (op, operand) => `that ${verb(op, operand, bare)}`,
    dateValue: (op, operand, zone) =>
      op === 'isNull' ? `that ${verb(op, operand, bare)}` : `that is ${timePhrase(op, operand, zone)}`,
  },
}

const NOUNS: Readonly<Record<string, string>> = {
  tags: 'tag',
  groups: 'group',
  conversations: 'conversation',
  broadcasts: 'broadcast',
}
/** What a contact does, and does not do, to a related record. */
const LINKS: Readonly<Record<string, readonly [string, string]>> = {
  tags: ['have', 'do not have'],
  groups: ['are in', 'are not in'],
  conversations: ['have', 'do not have'],
  broadcasts: ['are recipients of', 'are not recipients of'],
}

const recordClause = (
  relation: string,
  quantifier: string,
  record: Record<string, Record<string, unknown>>,
  { zone, fields }: Names,
): string => {
  const clauses = Object.entries(record)
    .filter(([field]) => field !== 'attributeName')
    .flatMap(([field, tests]) =>
      Object.entries(tests).map(([op, operand]) => SINGULAR[relation]![field]!(op, operand, zone)),
    )
  const which = clauses.length === 0 ? '' : ` (${list(clauses, 'and')})`
  if (relation === 'attributes') {
    const key = record['attributeName']!['eq']
    const name = `the custom field ${quote(fields.find((field) => field.key === key)?.label ?? key)}`
    if (quantifier === 'some' && clauses.length === 1)
      return `whose value of ${name} ${clauses[0]!.replace(/^that /, '')}`
    return `that have ${quantifier === 'some' ? 'a' : 'no'} value of ${name}${which}`
  }
  const noun = NOUNS[relation]!
  if (quantifier === 'every') return `whose every ${noun}${which === '' ? ' is any' : ` is one${which}`}`
  const [linked, unlinked] = LINKS[relation]!
  const named = onlyName(record)
  if (named !== undefined) return `that ${quantifier === 'some' ? linked : unlinked} the ${noun} ${named}`
  return `that ${linked} ${quantifier === 'some' ? 'a' : 'no'} ${noun}${which}`
}

/** The one record that is asked about by its name or id. */
const onlyName = (record: Record<string, Record<string, unknown>>): string | undefined => {
  const entries = Object.entries(record)
  const [field, tests] = entries[0] ?? []
  if (entries.length !== 1 || !isObject(tests) || Object.keys(tests).length !== 1 || !('eq' in tests))
    return undefined
  return field === 'name'
    ? quote(tests['eq'])
    : field === 'id'
      ? `with the id ${String(tests['eq'])}`
      : undefined
}
