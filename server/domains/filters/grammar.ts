import { countries } from './phone-countries.ts'

/** The grammar of contact filters (docs/filters.md): fields, their kinds, and the operators of each kind. */
type OperandKind = keyof typeof operators

export const operators = {
  text: ['eq', 'ne', 'in', 'notIn', 'contains', 'notContains', 'startsWith', 'endsWith', 'regex', 'isNull'],
  /** Text that is compared as a whole: the id of another system. */
  code: ['eq', 'ne', 'in', 'notIn', 'isNull'],
  id: ['eq', 'ne', 'in', 'notIn'],
  /** The id of another record, which may be absent. */
  ref: ['eq', 'ne', 'in', 'notIn', 'isNull'],
  time: ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'between', 'isNull'],
  number: ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'between', 'in', 'notIn', 'isNull'],
  flag: ['eq', 'ne', 'isNull'],
  word: ['eq', 'ne', 'in', 'notIn'],
  /** A word of the workspace, which says what the other conditions are about. */
  key: ['eq'],
  /** An ISO 3166 code, of a fixed list. */
  country: ['eq', 'ne', 'in', 'notIn', 'isNull'],
} as const

/** A field with operators. `optional`: a record may lack it. `phone`: it reveals a phone number. */
export type FilterField = { kind: OperandKind; optional?: true; phone?: true; words?: readonly string[] }

export const contactFields: Readonly<Record<string, FilterField>> = {
  name: { kind: 'text', optional: true },
  phoneNumber: { kind: 'text', optional: true, phone: true },
  email: { kind: 'text', optional: true },
  // It contains the phone number.
  chatappUserId: { kind: 'text', optional: true, phone: true },
  webVisitorId: { kind: 'text', optional: true, phone: true },
  externalId: { kind: 'code', optional: true },
  id: { kind: 'id' },
  createdAt: { kind: 'time' },
  updatedAt: { kind: 'time' },
  lastActivityAt: { kind: 'time', optional: true },
  lastInboundAt: { kind: 'time', optional: true },
  lastOutboundAt: { kind: 'time', optional: true },
  dnd: { kind: 'flag' },
  starred: { kind: 'flag' },
  awaitingReply: { kind: 'flag' },
  neverAnswered: { kind: 'flag' },
  country: { kind: 'country', optional: true, phone: true, words: countries },
}

export type Relation = { quantifiers: readonly string[]; fields: Readonly<Record<string, FilterField>> }

const label: Relation = {
  quantifiers: ['some', 'none', 'every'],
  fields: { id: { kind: 'ref' }, name: { kind: 'text' } },
}

export const relations: Readonly<Record<string, Relation>> = {
  tags: label,
  groups: label,
  // attributeName, beside these, selects the custom field.
  attributes: {
    quantifiers: ['some', 'none'],
    fields: {
      stringValue: { kind: 'text', optional: true },
      numberValue: { kind: 'number', optional: true },
      booleanValue: { kind: 'flag', optional: true },
      dateValue: { kind: 'time', optional: true },
    },
  },
  conversations: {
    quantifiers: ['some', 'none'],
    fields: {
      state: { kind: 'word', words: ['open', 'closed'] },
      channelId: { kind: 'ref', optional: true },
      assignedStaffId: { kind: 'ref', optional: true },
      assignedTeamId: { kind: 'ref', optional: true },
      createdAt: { kind: 'time' },
      lastActivityAt: { kind: 'time', optional: true },
      unreadCount: { kind: 'number' },
    },
  },
  consents: {
    quantifiers: ['some', 'none'],
    fields: {
      purpose: { kind: 'key' },
      channel: { kind: 'key' },
      state: { kind: 'word', words: ['granted', 'withdrawn'] },
    },
  },
  broadcasts: {
    quantifiers: ['some', 'none'],
    fields: {
      id: { kind: 'ref' },
      sentAt: { kind: 'time', optional: true },
      message_status: {
        kind: 'word',
        words: ['pending', 'sent', 'delivered', 'read', 'failed', 'responded', 'not_responded'],
      },
    },
  },
}

/** Names from other query languages, and their names here. */
export const synonyms: Readonly<Record<string, string>> = {
  external_id: 'externalId',
  phone: 'phoneNumber',
  mobile: 'phoneNumber',
  created: 'createdAt',
  updated: 'updatedAt',
  last_active: 'lastActivityAt',
  lastMessageReceivedAt: 'lastInboundAt',
  lastMessageSentAt: 'lastOutboundAt',
  unanswered: 'neverAnswered',
  tag: 'tags',
  group: 'groups',
  segment: 'savedFilter',
  custom_fields: 'attributes',
  customFields: 'attributes',
  conversation: 'conversations',
  broadcast: 'broadcasts',
  consent: 'consents',
  status: 'message_status',
  all: 'every',
  any: 'some',
  equals: 'eq',
  is: 'eq',
  '=': 'eq',
  '==': 'eq',
  not: 'ne',
  neq: 'ne',
  notEquals: 'ne',
  '!=': 'ne',
  '<>': 'ne',
  nin: 'notIn',
  like: 'contains',
  ilike: 'contains',
  '>': 'gt',
  after: 'gt',
  '>=': 'gte',
  since: 'gte',
  '<': 'lt',
  before: 'lt',
  '<=': 'lte',
  matches: 'regex',
  exists: 'isNull',
  value: 'stringValue',
  key: 'attributeName',
}

/** Every valid key of a node. */
export const nodeKeys: readonly string[] = [
  ...Object.keys(contactFields),
  ...Object.keys(relations),
  'savedFilter',
  'and',
  'or',
  'not',
]

/** The kind of value that each field of `attributes` compares. */
export const valueKindOf: Readonly<Record<string, string>> = {
  stringValue: 'string',
  numberValue: 'number',
  booleanValue: 'boolean',
  dateValue: 'date',
}
