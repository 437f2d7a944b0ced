import { fold } from '../../storage/text.ts'

/**
 * What a contact filter means, said naively from the contract (section 4): the JSON that a client sends,
 * held against one plain contact at a time. It shares nothing with the service but the folding of text.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }

export type Value = { key: string; type: string; value: string | number | boolean }
type Talk = {
  state: string
  channelId: string | null
  assignedStaffId: string | null
  assignedTeamId: string | null
  createdAt: number
  lastActivityAt: number | null
  unreadCount: number
}
/**
 * A contact with all that hangs on it. Times in milliseconds since 1970; a multiselect has a value for each
 * of its options.
 */
export type Fact = {
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
  attributes: readonly Value[]
  conversations: readonly Talk[]
  broadcasts: readonly { id: string; status: string; responded: boolean; sentAt: number | null }[]
}
/** Business time, the workspace's time zone, and the saved filters by id. */
export type Setting = { now: string; timeZone: string; saved: ReadonlyMap<string, JsonObject> }

/** True when the contact meets the filter. */
export const meets = (setting: Setting, fact: Fact, filter: JsonObject): boolean =>
  Object.entries(filter).every(([key, value]) => {
    if (key === 'and') return (value as JsonObject[]).every((node) => meets(setting, fact, node))
    if (key === 'or') return (value as JsonObject[]).some((node) => meets(setting, fact, node))
    if (key === 'not') return !meets(setting, fact, value as JsonObject)
    if (key === 'savedFilter')
      return meets(setting, fact, setting.saved.get(String((value as JsonObject)['eq']))!)
    const tests = value as JsonObject
    switch (key) {
      case 'tags':
      case 'groups':
        return quantified(tests, fact[key], labelTest)
      case 'conversations':
        return quantified(tests, fact.conversations, (talk, field) => talkTest(setting, talk, field))
      case 'broadcasts':
        return quantified(tests, fact.broadcasts, (sent, field) => sentTest(setting, sent, field))
      case 'attributes':
        return quantified(tests, fact.attributes, (held, field) => valueTest(setting, held, field))
      default:
        return every(tests, fieldTest(setting, fact, key))
    }
  })

/** Whether one comparison holds. */
type Test = (op: string, wanted: Json) => boolean

const every = (tests: JsonObject, test: Test): boolean =>
  Object.entries(tests).every(([op, wanted]) => test(op, wanted))

const fieldTest = (setting: Setting, fact: Fact, field: string): Test => {
  switch (field) {
    case 'id':
      return exact(fact.id)
    case 'name':
    case 'phoneNumber':
    case 'email':
    case 'chatappUserId':
    case 'webVisitorId':
      return text(fact[field])
    case 'createdAt':
    case 'updatedAt':
    case 'lastActivityAt':
      return moment(setting, fact[field])
    case 'dnd':
    case 'starred':
      return exact(fact[field])
    default:
      return unknownField(field)
  }
}

const unknownField = (field: string): never => {
  throw new Error(`no field ${field}`)
}

/** The conditions of a quantifier are all about one related record. */
const quantified = <R>(
  tests: JsonObject,
  records: readonly R[],
  testOf: (record: R, field: string) => Test,
): boolean =>
  Object.entries(tests).every(([quantifier, where]) => {
    const conditions = Object.entries(where as Record<string, JsonObject>)
    const matches = (record: R): boolean =>
      conditions.every(([field, wanted]) => every(wanted, testOf(record, field)))
    return quantifier === 'every' ? records.every(matches) : records.some(matches) === (quantifier === 'some')
  })

const labelTest = (label: Fact['tags'][number], field: string): Test =>
  field === 'id' ? exact(label.id) : text(label.name)

const talkTest = (setting: Setting, talk: Talk, field: string): Test => {
  switch (field) {
    case 'state':
    case 'channelId':
    case 'assignedStaffId':
    case 'assignedTeamId':
      return exact(talk[field])
    case 'createdAt':
    case 'lastActivityAt':
      return moment(setting, talk[field])
    case 'unreadCount':
      return number(talk.unreadCount)
    default:
      return unknownField(field)
  }
}

const sentTest = (setting: Setting, sent: Fact['broadcasts'][number], field: string): Test => {
  switch (field) {
    case 'id':
      return exact(sent.id)
    case 'message_status':
      return reached(sent)
    case 'sentAt':
      return moment(setting, sent.sentAt)
    default:
      return unknownField(field)
  }
}

/** What is absent meets `isNull: true` and nothing else. */
const unlessAbsent =
  <T>(value: T | null, test: (value: T, op: string, wanted: Json) => boolean): Test =>
  (op, wanted) => {
    if (op === 'isNull') return (value === null) === wanted
    return value !== null && test(value, op, wanted)
  }

const unknownOperator = (op: string): never => {
  throw new Error(`no operator ${op}`)
}

/** Ids, words and flags: the same or not. */
const exact = (value: string | boolean | null): Test =>
  unlessAbsent(value, (present, op, wanted) => {
    const same = (other: Json): boolean => String(other) === String(present)
    switch (op) {
      case 'eq':
        return same(wanted!)
      case 'ne':
        return !same(wanted!)
      case 'in':
        return (wanted as Json[]).some(same)
      case 'notIn':
        return !(wanted as Json[]).some(same)
      default:
        return unknownOperator(op)
    }
  })

const text = (value: string | null): Test =>
  unlessAbsent(value, (present, op, wanted) => {
    switch (op) {
      case 'contains':
        return fold(present).includes(fold(wanted as string))
      case 'notContains':
        return !fold(present).includes(fold(wanted as string))
      case 'startsWith':
        return fold(present).startsWith(fold(wanted as string))
      case 'endsWith':
        return fold(present).endsWith(fold(wanted as string))
      // `.` meets a newline in PostgreSQL, and `^` and `$` the ends of the whole text.
      case 'regex':
        return new RegExp(wanted as string, 'su').test(present)
      default:
        return exact(present)(op, wanted)
    }
  })

const compares = <T extends number | bigint>(
  value: T,
  op: string,
  wanted: Json,
  read: (given: Json) => T,
): boolean => {
  switch (op) {
    case 'eq':
      return value === read(wanted)
    case 'ne':
      return value !== read(wanted)
    case 'gt':
      return value > read(wanted)
    case 'gte':
      return value >= read(wanted)
    case 'lt':
      return value < read(wanted)
    case 'lte':
      return value <= read(wanted)
    case 'between': {
      const [from, to] = wanted as [Json, Json]
      return value >= read(from) && value <= read(to)
    }
    case 'in':
      return (wanted as Json[]).some((other) => value === read(other))
    case 'notIn':
      return !(wanted as Json[]).some((other) => value === read(other))
    default:
      return unknownOperator(op)
  }
}

/** Remembers what a text means: a filter asks it of every contact. */
const remembered = <T>(read: (text: string) => T): ((text: string) => T) => {
  const known = new Map<string, T>()
  return (text) => {
    if (!known.has(text)) known.set(text, read(text))
    return known.get(text)!
  }
}

/**
 * A number in units of 10^-400: exact for every double, and for decimals of any length that a filter holds.
 */
const exactly = remembered((text) => {
  const [, sign, whole, part = '', exponent = '0'] = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text)!
  const digits = BigInt(whole! + part) * 10n ** BigInt(400 - part.length + Number(exponent))
  return sign === '-' ? -digits : digits
})
const exactNumber = (given: Json): bigint => exactly(String(given))

const number = (value: string | number | null): Test =>
  unlessAbsent(value, (present, op, wanted) => compares(exactNumber(present), op, wanted, exactNumber))

const moment = (setting: Setting, value: number | null): Test =>
  unlessAbsent(value, (present, op, wanted) =>
    compares(present, op, wanted, (given) => millisecondsOf(setting)(given as string)),
  )

const perSetting = new WeakMap<Setting, (date: string) => number>()
const millisecondsOf = (setting: Setting): ((date: string) => number) => {
  if (!perSetting.has(setting))
    perSetting.set(
      setting,
      remembered((date) => instantOf(setting, date).epochMilliseconds),
    )
  return perSetting.get(setting)!
}

/**
 * `pending` to `failed` say how far the message came; `responded` and `not_responded` whether there was a
 * reply.
 */
const reached =
  ({ status, responded }: { status: string; responded: boolean }): Test =>
  (op, wanted) => {
    const holds = (word: Json): boolean =>
      word === status || word === (responded ? 'responded' : 'not_responded')
    switch (op) {
      case 'eq':
        return holds(wanted)
      case 'ne':
        return !holds(wanted)
      case 'in':
        return (wanted as Json[]).some(holds)
      case 'notIn':
        return !(wanted as Json[]).some(holds)
      default:
        return unknownOperator(op)
    }
  }

const numbers = ['number', 'int', 'float', 'decimal']
const flags = ['checkbox', 'boolean']
const dates = ['date', 'datetime']

/** What a value's type does not hold is absent. */
const valueTest = (setting: Setting, { key, type, value }: Value, field: string): Test => {
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
        ? day(setting, value as string)
        : moment(setting, type === 'datetime' ? Date.parse(value as string) : null)
    default:
      return unknownField(field)
  }
}

/** Days compare as days of the workspace's calendar. */
const day = (setting: Setting, value: string): Test =>
  unlessAbsent(value, (present, op, wanted) =>
    compares(ordinal(present), op, wanted, (given) =>
      ordinal(dayAt(setting, millisecondsOf(setting)(given as string))),
    ),
  )

const dayAt = ({ timeZone }: Setting, ms: number): string =>
  Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone).toPlainDate().toString()
const ordinal = (date: string): number => Number(date.replaceAll('-', ''))

const units: Record<string, string> = {
  m: 'minutes',
  h: 'hours',
  d: 'days',
  w: 'weeks',
  mo: 'months',
  y: 'years',
}

/** The instant that a date of a filter means. */
export const instantOf = ({ now, timeZone }: Setting, given: string): Temporal.Instant => {
  const here = Temporal.Instant.from(now).toZonedDateTimeISO(timeZone)
  const shifted = /^([+-])(\d+)(m|h|d|w|mo|y)$/.exec(given)
  if (shifted) return here.add({ [units[shifted[3]!]!]: Number(`${shifted[1]}${shifted[2]}`) }).toInstant()
  const edge = /^(start|end)_of_(day|week|month|quarter|year)$/.exec(given)
  if (edge) {
    const first = firstDay(here.toPlainDate(), edge[2]!)
    const start = (from: Temporal.PlainDate): Temporal.Instant => from.toZonedDateTime(timeZone).toInstant()
    return edge[1] === 'start'
      ? start(first)
      : start(first.add(lengths[edge[2]!]!)).subtract({ milliseconds: 1 })
  }
  if (given === 'now') return here.toInstant()
  if (given === 'today') return here.startOfDay().toInstant()
  if (given === 'yesterday')
    return here.toPlainDate().subtract({ days: 1 }).toZonedDateTime(timeZone).toInstant()
  if (/^\d{4}-\d{2}-\d{2}$/.test(given))
    return Temporal.PlainDate.from(given).toZonedDateTime(timeZone).toInstant()
  return /(Z|[+-]\d{2}:?\d{2})$/i.test(given)
    ? Temporal.Instant.from(given)
    : Temporal.PlainDateTime.from(given).toZonedDateTime(timeZone).toInstant()
}

const lengths: Record<string, Temporal.DurationLike> = {
  day: { days: 1 },
  week: { days: 7 },
  month: { months: 1 },
  quarter: { months: 3 },
  year: { years: 1 },
}

const firstDay = (today: Temporal.PlainDate, unit: string): Temporal.PlainDate => {
  switch (unit) {
    case 'week':
      return today.subtract({ days: today.dayOfWeek - 1 })
    case 'month':
      return today.with({ day: 1 })
    case 'quarter':
      return today.with({ month: 3 * Math.floor((today.month - 1) / 3) + 1, day: 1 })
    case 'year':
      return today.with({ month: 1, day: 1 })
    default:
      return today
  }
}
