import { fold } from '../../storage/values/text.ts'
import { resolveDate } from './model-dates.ts'

/**
 * A reference model of contact filters, written from the contract (section 4). It evaluates the JSON of a
 * filter on one plain contact at a time. It shares no code with the server but the folding of text.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

export type AttributeValue = { key: string; type: string; value: string | number | boolean }
type ModelConversation = {
  state: string
  channelId: string | null
  assignedStaffId: string | null
  assignedTeamId: string | null
  createdAt: number
  lastActivityAt: number | null
  unreadCount: number
  replyStatus: string | null
  messages: readonly ModelMessage[]
}
type ModelMessage = { direction: string; status: string; at: number; isByPerson: boolean }
/** The latest of one purpose and channel, in the order in which they were said. */
type ModelConsent = { purpose: string; channel: string; state: string }

/**
 * A contact with its related records. Times are in milliseconds since 1970. A multiselect has one value per
 * chosen option.
 */
export type ModelContact = {
  id: string
  name: string | null
  phoneNumber: string | null
  email: string | null
  chatappUserId: string | null
  webVisitorId: string | null
  createdAt: number
  updatedAt: number
  lastActivityAt: number | null
  dnd: boolean
  starred: boolean
  tags: readonly { id: string; name: string }[]
  groups: readonly { id: string; name: string }[]
  attributes: readonly AttributeValue[]
  conversations: readonly ModelConversation[]
  consents: readonly ModelConsent[]
  broadcasts: readonly { id: string; status: string; responded: boolean; sentAt: number | null }[]
}
/** Business time, the workspace's time zone, and the saved filters by id. */
export type ModelContext = { now: string; timeZone: string; saved: ReadonlyMap<string, JsonObject> }

/** Whether the contact matches the filter. */
export const matchesFilter = (context: ModelContext, contact: ModelContact, filter: JsonObject): boolean =>
  Object.entries(filter).every(([key, value]) => {
    if (key === 'and') return (value as JsonObject[]).every((node) => matchesFilter(context, contact, node))
    if (key === 'or') return (value as JsonObject[]).some((node) => matchesFilter(context, contact, node))
    if (key === 'not') return !matchesFilter(context, contact, value as JsonObject)
    if (key === 'savedFilter')
      return matchesFilter(context, contact, context.saved.get(String((value as JsonObject)['eq']))!)
    const tests = value as JsonObject
    switch (key) {
      case 'tags':
      case 'groups':
        return quantified(tests, contact[key], labelTest)
      case 'conversations':
        return quantified(tests, contact.conversations, (conversation, field) =>
          conversationTest(context, conversation, field),
        )
      case 'consents':
        return consentTest(tests, contact.consents)
      case 'broadcasts':
        return quantified(tests, contact.broadcasts, (recipient, field) =>
          recipientTest(context, recipient, field),
        )
      case 'attributes':
        return quantified(tests, contact.attributes, (value, field) => valueTest(context, value, field))
      default:
        return every(tests, fieldTest(context, contact, key))
    }
  })

/** Evaluates one comparison. */
type Test = (op: string, operand: Json) => boolean

const every = (tests: JsonObject, test: Test): boolean =>
  Object.entries(tests).every(([op, operand]) => test(op, operand))

const fieldTest = (context: ModelContext, contact: ModelContact, field: string): Test => {
  switch (field) {
    case 'id':
      return exact(contact.id)
    case 'name':
    case 'phoneNumber':
    case 'email':
    case 'chatappUserId':
    case 'webVisitorId':
      return text(contact[field])
    case 'createdAt':
    case 'updatedAt':
    case 'lastActivityAt':
      return time(context, contact[field])
    case 'dnd':
    case 'starred':
      return exact(contact[field])
    case 'awaitingReply':
      return exact(
        contact.conversations.some((v) => v.state === 'open' && v.replyStatus === 'incoming_no_reply'),
      )
    case 'lastInboundAt':
      return time(context, lastOf(contact, isInbound))
    case 'lastOutboundAt':
      return time(context, lastOf(contact, isDelivered))
    case 'neverAnswered':
      return exact(wasNeverAnswered(contact))
    case 'country':
      return exact(countryOf(contact.phoneNumber))
    default:
      return unknownField(field)
  }
}

const isInbound = ({ direction }: ModelMessage): boolean => direction === 'inbound'
const isDelivered = ({ direction, status }: ModelMessage): boolean =>
  direction === 'outbound' && ['sent', 'delivered', 'read'].includes(status)

const timesOf = (contact: ModelContact, which: (message: ModelMessage) => boolean): number[] =>
  contact.conversations
    .flatMap(({ messages }) => messages)
    .filter(which)
    .map(({ at }) => at)
const lastOf = (contact: ModelContact, which: (message: ModelMessage) => boolean): number | null => {
  const times = timesOf(contact, which)
  return times.length === 0 ? null : Math.max(...times)
}

/** Wrote, and no person wrote since the first message. */
const wasNeverAnswered = (contact: ModelContact): boolean => {
  const first = Math.min(...timesOf(contact, isInbound))
  const answers = timesOf(contact, (message) => isDelivered(message) && message.isByPerson)
  return first !== Infinity && answers.every((at) => at < first)
}

const unknownField = (field: string): never => {
  throw new Error(`no field ${field}`)
}

/** Evaluates quantifiers. The conditions of one apply to the same related record. */
const quantified = <R>(
  tests: JsonObject,
  records: readonly R[],
  testOf: (record: R, field: string) => Test,
): boolean =>
  Object.entries(tests).every(([quantifier, where]) => {
    const conditions = Object.entries(where as Record<string, JsonObject>)
    const matches = (record: R): boolean =>
      conditions.every(([field, operand]) => every(operand, testOf(record, field)))
    return quantifier === 'every' ? records.every(matches) : records.some(matches) === (quantifier === 'some')
  })

const labelTest = (label: ModelContact['tags'][number], field: string): Test =>
  field === 'id' ? exact(label.id) : text(label.name)

const conversationTest = (context: ModelContext, conversation: ModelConversation, field: string): Test => {
  switch (field) {
    case 'state':
    case 'channelId':
    case 'assignedStaffId':
    case 'assignedTeamId':
      return exact(conversation[field])
    case 'createdAt':
    case 'lastActivityAt':
      return time(context, conversation[field])
    case 'unreadCount':
      return number(conversation.unreadCount)
    default:
      return unknownField(field)
  }
}

/** On a type of channel, the last of what was said of it and of all holds. */
const consentTest = (tests: JsonObject, consents: readonly ModelConsent[]): boolean =>
  Object.entries(tests).every(([quantifier, where]) => {
    const { channel, ...others } = where as Record<string, { eq: string }>
    const said = channel ? consents.filter((c) => ['all', channel.eq].includes(c.channel)) : consents
    const holding = channel ? [...new Map(said.map((c) => [c.purpose, c])).values()] : said
    return quantified({ [quantifier]: others }, holding, (c, field) => exact(c[field as keyof ModelConsent]))
  })

/** The country of a phone as the model reads it: by a few area codes. */
const countryOf = (phone: string | null): string | null => {
  if (phone === null) return null
  const [, country] = COUNTRIES.find(([prefix]) => phone.startsWith(prefix)) ?? [null, null]
  return country
}
const COUNTRIES = [
  ['1416', 'CA'],
  ['1', 'US'],
  ['77', 'KZ'],
  ['7', 'RU'],
  ['441481', 'GG'],
  ['44', 'GB'],
  ['49', 'DE'],
] as const

const recipientTest = (
  context: ModelContext,
  recipient: ModelContact['broadcasts'][number],
  field: string,
): Test => {
  switch (field) {
    case 'id':
      return exact(recipient.id)
    case 'message_status':
      return statusTest(recipient)
    case 'sentAt':
      return time(context, recipient.sentAt)
    default:
      return unknownField(field)
  }
}

/** Creates a test that an absent value passes for `isNull: true` only. */
const unlessAbsent =
  <T>(value: T | null, test: (value: T, op: string, operand: Json) => boolean): Test =>
  (op, operand) => {
    if (op === 'isNull') return (value === null) === operand
    return value !== null && test(value, op, operand)
  }

const unknownOperator = (op: string): never => {
  throw new Error(`no operator ${op}`)
}

/** Compares ids, words and flags for equality. */
const exact = (value: string | boolean | null): Test =>
  unlessAbsent(value, (actual, op, operand) => {
    const isEqual = (other: Json): boolean => String(other) === String(actual)
    switch (op) {
      case 'eq':
        return isEqual(operand!)
      case 'ne':
        return !isEqual(operand!)
      case 'in':
        return (operand as Json[]).some(isEqual)
      case 'notIn':
        return !(operand as Json[]).some(isEqual)
      default:
        return unknownOperator(op)
    }
  })

const text = (value: string | null): Test =>
  unlessAbsent(value, (actual, op, operand) => {
    switch (op) {
      case 'contains':
        return fold(actual).includes(fold(operand as string))
      case 'notContains':
        return !fold(actual).includes(fold(operand as string))
      case 'startsWith':
        return fold(actual).startsWith(fold(operand as string))
      case 'endsWith':
        return fold(actual).endsWith(fold(operand as string))
      // In PostgreSQL `.` matches a newline, and `^` and `$` match only at the ends of the whole text.
      case 'regex':
        return new RegExp(operand as string, 'su').test(actual)
      default:
        return exact(actual)(op, operand)
    }
  })

const compareOrdered = <T extends number | bigint>(
  value: T,
  op: string,
  operand: Json,
  read: (operand: Json) => T,
): boolean => {
  switch (op) {
    case 'eq':
      return value === read(operand)
    case 'ne':
      return value !== read(operand)
    case 'gt':
      return value > read(operand)
    case 'gte':
      return value >= read(operand)
    case 'lt':
      return value < read(operand)
    case 'lte':
      return value <= read(operand)
    case 'between': {
      const [from, to] = operand as [Json, Json]
      return value >= read(from) && value <= read(to)
    }
    case 'in':
      return (operand as Json[]).some((other) => value === read(other))
    case 'notIn':
      return !(operand as Json[]).some((other) => value === read(other))
    default:
      return unknownOperator(op)
  }
}

/** Caches results: a filter parses the same texts for every contact. */
const memoize = <T>(read: (text: string) => T): ((text: string) => T) => {
  const cache = new Map<string, T>()
  return (text) => {
    if (!cache.has(text)) cache.set(text, read(text))
    return cache.get(text)!
  }
}

/**
 * Parses a number in units of 10^-400, which is exact for every double and for every decimal of a filter.
 */
const parseExactNumber = memoize((text) => {
  const [, sign, whole, part = '', exponent = '0'] = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text)!
  const digits = BigInt(whole! + part) * 10n ** BigInt(400 - part.length + Number(exponent))
  return sign === '-' ? -digits : digits
})
const exactNumber = (operand: Json): bigint => parseExactNumber(String(operand))

const number = (value: string | number | null): Test =>
  unlessAbsent(value, (actual, op, operand) => compareOrdered(exactNumber(actual), op, operand, exactNumber))

const time = (context: ModelContext, value: number | null): Test =>
  unlessAbsent(value, (actual, op, operand) =>
    compareOrdered(actual, op, operand, (date) => createDateResolver(context)(date as string)),
  )

const resolversByContext = new WeakMap<ModelContext, (date: string) => number>()
const createDateResolver = (context: ModelContext): ((date: string) => number) => {
  if (!resolversByContext.has(context))
    resolversByContext.set(
      context,
      memoize((date) => resolveDate(context, date).epochMilliseconds),
    )
  return resolversByContext.get(context)!
}

/**
 * Tests a `message_status`: `pending` to `failed` are states of the message; `responded` and
 * `not_responded` say whether there was a reply.
 */
const statusTest =
  ({ status, responded }: { status: string; responded: boolean }): Test =>
  (op, operand) => {
    const hasStatus = (word: Json): boolean =>
      word === status || word === (responded ? 'responded' : 'not_responded')
    switch (op) {
      case 'eq':
        return hasStatus(operand)
      case 'ne':
        return !hasStatus(operand)
      case 'in':
        return (operand as Json[]).some(hasStatus)
      case 'notIn':
        return !(operand as Json[]).some(hasStatus)
      default:
        return unknownOperator(op)
    }
  }

const numbers = ['number', 'int', 'float', 'decimal']
const flags = ['checkbox', 'boolean']
const dates = ['date', 'datetime']

/** Tests a custom value; a field that does not fit its type is absent. */
const valueTest = (context: ModelContext, { key, type, value }: AttributeValue, field: string): Test => {
  switch (field) {
    case 'attributeName':
      return exact(key)
    case 'stringValue':
      return text([...numbers, ...flags, ...dates].includes(type) ? null : String(value))
    case 'numberValue':
      return number(numbers.includes(type) ? (value as string | number) : null)
    case 'booleanValue':
      return exact(flags.includes(type) ? (value as boolean) : null)
    case 'dateValue':
      return type === 'date'
        ? day(context, value as string)
        : time(context, type === 'datetime' ? Date.parse(value as string) : null)
    default:
      return unknownField(field)
  }
}

/** Compares days of the workspace's calendar. */
const day = (context: ModelContext, value: string): Test =>
  unlessAbsent(value, (actual, op, operand) =>
    compareOrdered(toDayNumber(actual), op, operand, (date) =>
      toDayNumber(toLocalDay(context, createDateResolver(context)(date as string))),
    ),
  )

const toLocalDay = ({ timeZone }: ModelContext, ms: number): string =>
  Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone).toPlainDate().toString()
const toDayNumber = (date: string): number => Number(date.replaceAll('-', ''))
