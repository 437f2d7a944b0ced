import type { FieldRow } from '../../../storage/contacts/custom-fields.ts'
import { contactFields } from './grammar.ts'
import type { LoadedSavedFilter } from './saved.ts'
import { isObject } from '../../../catalog/values.ts'

/** What a filter refers to, and the zone in which its dates are shown. */
export type ExplainContext = {
  zone: string
  fields: readonly FieldRow[]
  saved: ReadonlyMap<string, LoadedSavedFilter>
}

/** Explains a parsed filter with absolute dates in one sentence. */
export const explainFilter = (filter: Record<string, unknown>, names: ExplainContext): string => {
  const clauses = toClauses(filter, names)
  return clauses.length === 0 ? 'All contacts.' : `Contacts ${joinWords(clauses, 'and')}.`
}

/** Relative clauses that must all hold, such as `whose name is "Ada"`. */
const toClauses = (node: Record<string, unknown>, names: ExplainContext): string[] =>
  Object.entries(node).flatMap(([key, value]) => {
    if (key === 'and') return (value as Record<string, unknown>[]).flatMap((child) => toClauses(child, names))
    if (key === 'or')
      return joinAlternatives((value as Record<string, unknown>[]).map((child) => toClauses(child, names)))
    if (key === 'not')
      return [`that are not among those (${joinClauses(toClauses(value as Record<string, unknown>, names))})`]
    if (key === 'savedFilter') {
      const id = String((value as { eq: string | number }).eq)
      return [`that match the saved filter ${quote(names.saved.get(id)?.name ?? id)}`]
    }
    const tests = value as Record<string, unknown>
    if (Object.hasOwn(contactFields, key))
      return Object.entries(tests).map(([op, operand]) => CONTACT_CLAUSES[key]!(op, operand, names.zone))
    return Object.entries(tests).map(([quantifier, record]) =>
      toRecordClause(key, quantifier, record as Record<string, Record<string, unknown>>, names),
    )
  })

const joinClauses = (clauses: readonly string[]): string =>
  clauses.length === 0 ? 'all contacts' : joinWords(clauses, 'and')

const EITHER = 'either '
/** Puts an alternative in parentheses, so that its end is clear. */
const parenthesize = (clause: string): string => (clause.startsWith(EITHER) ? `(${clause})` : clause)

const joinAlternatives = (choices: readonly string[][]): string[] =>
  choices.length === 1
    ? choices[0]!
    : [
        EITHER +
          choices
            .map((clauses) =>
              clauses.length === 1 ? parenthesize(clauses[0]!) : `(${joinClauses(clauses)})`,
            )
            .join(', or '),
      ]

const joinWords = (parts: readonly string[], word: string): string =>
  parts.length < 2
    ? parts.join('')
    : `${parts.slice(0, -1).map(parenthesize).join(', ')} ${word} ${parenthesize(parts.at(-1)!)}`

const quote = (text: unknown): string => JSON.stringify(text)

type Clause = (op: string, operand: unknown, zone: string) => string

const MAX_LISTED_VALUES = 5

/** Formats the first few values of a list. */
const joinValues = (operand: unknown, show: (value: unknown) => string): string => {
  const values = operand as readonly unknown[]
  const shown = values.slice(0, MAX_LISTED_VALUES).map(show)
  return values.length > MAX_LISTED_VALUES
    ? `${shown.join(', ')} and ${values.length - MAX_LISTED_VALUES} more`
    : joinWords(shown, 'or')
}

/** Returns a verb phrase for an operator on text, words, ids and numbers. */
const toVerbPhrase = (op: string, operand: unknown, show: (value: unknown) => string): string => {
  switch (op) {
    case 'eq':
      return `is ${show(operand)}`
    case 'ne':
      return `is present and not ${show(operand)}`
    case 'in':
      return `is one of ${joinValues(operand, show)}`
    case 'notIn':
      return `is present and none of ${joinValues(operand, show)}`
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

const plainText = (value: unknown): string => String(value)
const valueClause =
  (what: string, show: (value: unknown) => string): Clause =>
  (op, operand) =>
    `whose ${what} ${toVerbPhrase(op, operand, show)}`

/** `happened`: as in "were created"; `never` and `present`: the phrases for an absent and a present time. */
const timeClause =
  (happened: string, never: string, present: string): Clause =>
  (op, operand, zone) =>
    op === 'isNull'
      ? `that ${operand === true ? never : present}`
      : `that ${happened} ${toTimePhrase(op, operand, zone)}`

const toTimePhrase = (op: string, operand: unknown, zone: string): string => {
  const at = (value: unknown) => formatDate(String(value), zone)
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

/** Formats a day as `24 September 2026`, an instant as `24 September 2026, 09:30 (Europe/Berlin)`. */
const formatDate = (text: string, zone: string): string => {
  const day = (date: { day: number; month: number; year: number }) =>
    `${date.day} ${MONTHS[date.month - 1]} ${date.year}`
  if (text.length === 'YYYY-MM-DD'.length) return day(Temporal.PlainDate.from(text))
  const local = Temporal.Instant.from(text).toZonedDateTimeISO(zone)
  const time = local.toPlainTime().toString({ smallestUnit: local.second > 0 ? 'second' : 'minute' })
  return `${day(local)}, ${time} (${zone})`
}

const flagClause =
  (what: string): Clause =>
  (op, operand) =>
    op === 'isNull'
      ? `whose mark "${what}" ${toVerbPhrase(op, operand, plainText)}`
      : `that are ${(op === 'eq') === operand ? '' : 'not '}${what}`

const CONTACT_CLAUSES: Readonly<Record<string, Clause>> = {
  name: valueClause('name', quote),
  phoneNumber: valueClause('phone number', quote),
  email: valueClause('email address', quote),
  chatappUserId: valueClause('messaging app id', quote),
  webVisitorId: valueClause('web visitor id', quote),
  externalId: valueClause('external id', quote),
  id: valueClause('id', plainText),
  createdAt: timeClause('were created', 'have no time of creation', 'have a time of creation'),
  updatedAt: timeClause('were changed', 'were never changed', 'were changed'),
  lastActivityAt: timeClause('were last active', 'were never active', 'were active'),
  lastInboundAt: timeClause('last wrote', 'never wrote', 'wrote'),
  lastOutboundAt: timeClause('were last written to', 'were never written to', 'were written to'),
  dnd: flagClause('do-not-disturb'),
  starred: flagClause('starred'),
  awaitingReply: flagClause('awaiting a reply'),
  neverAnswered: (op, operand, zone) =>
    op === 'isNull'
      ? flagClause('never answered')(op, operand, zone)
      : (op === 'eq') === operand
        ? 'that wrote and were never answered by a person'
        : 'that never wrote or were answered by a person',
  country: valueClause('country', plainText),
}

const messageStatusClause: Clause = (op, operand) => {
  if (op === 'eq' && operand === 'responded') return 'that they answered'
  if (op === 'eq' && operand === 'not_responded') return 'that they did not answer'
  return valueClause('message status', plainText)(op, operand, '')
}

/** The clauses for fields of related records, in the singular. */
const RECORD_CLAUSES: Readonly<Record<string, Readonly<Record<string, Clause>>>> = {
  tags: { id: valueClause('id', plainText), name: valueClause('name', quote) },
  groups: { id: valueClause('id', plainText), name: valueClause('name', quote) },
  conversations: {
    state: valueClause('state', plainText),
    channelId: valueClause('channel', plainText),
    assignedStaffId: valueClause('assigned staff member', plainText),
    assignedTeamId: valueClause('assigned team', plainText),
    createdAt: timeClause('was created', 'has no time of creation', 'has a time of creation'),
    lastActivityAt: timeClause('was last active', 'was never active', 'was active'),
    unreadCount: valueClause('number of unread messages', plainText),
  },
  consents: {
    purpose: valueClause('purpose', plainText),
    channel: valueClause('type of channel', plainText),
    state: valueClause('state', plainText),
  },
  broadcasts: {
    id: valueClause('id', plainText),
    message_status: messageStatusClause,
    sentAt: timeClause('was sent to them', 'was not sent to them', 'was sent to them'),
  },
  attributes: {
    stringValue: (op, operand) => `that ${toVerbPhrase(op, operand, quote)}`,
    numberValue: (op, operand) => `that ${toVerbPhrase(op, operand, plainText)}`,
    booleanValue: (op, operand) => `that ${toVerbPhrase(op, operand, plainText)}`,
    dateValue: (op, operand, zone) =>
      op === 'isNull'
        ? `that ${toVerbPhrase(op, operand, plainText)}`
        : `that is ${toTimePhrase(op, operand, zone)}`,
  },
}

const NOUNS: Readonly<Record<string, string>> = {
  tags: 'tag',
  groups: 'group',
  conversations: 'conversation',
  broadcasts: 'broadcast',
  consents: 'consent',
}
/** How a contact relates, and does not relate, to a record. */
const LINKS: Readonly<Record<string, readonly [string, string]>> = {
  tags: ['have', 'do not have'],
  groups: ['are in', 'are not in'],
  conversations: ['have', 'do not have'],
  consents: ['have', 'do not have'],
  broadcasts: ['are recipients of', 'are not recipients of'],
}

const toRecordClause = (
  relation: string,
  quantifier: string,
  record: Record<string, Record<string, unknown>>,
  { zone, fields }: ExplainContext,
): string => {
  const clauses = Object.entries(record)
    .filter(([field]) => field !== 'attributeName')
    .flatMap(([field, tests]) =>
      Object.entries(tests).map(([op, operand]) => RECORD_CLAUSES[relation]![field]!(op, operand, zone)),
    )
  const which = clauses.length === 0 ? '' : ` (${joinWords(clauses, 'and')})`
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
  const named = findOnlyName(record)
  if (named !== undefined) return `that ${quantifier === 'some' ? linked : unlinked} the ${noun} ${named}`
  return `that ${linked} ${quantifier === 'some' ? 'a' : 'no'} ${noun}${which}`
}

/** Returns the name or id when a record is selected by that alone. */
const findOnlyName = (record: Record<string, Record<string, unknown>>): string | undefined => {
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
