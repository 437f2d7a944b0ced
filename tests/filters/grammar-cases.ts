import { type Json, onAttributeValue, onField, onRelation } from './grammar-fixtures.ts'

// The operators of each kind of field, in the order in which the contract (section 4) lists them.
const TEXT = 'eq ne in notIn contains notContains startsWith endsWith regex isNull'
const ID = 'eq ne in notIn'
const REF = 'eq ne in notIn isNull'
const TIME = 'eq ne gt gte lt lte between isNull'
const NUMBER = 'eq ne gt gte lt lte between in notIn isNull'
const FLAG = 'eq ne isNull'
/** Every operator of the grammar. */
export const ALL_OPERATORS = [...new Set(`${TEXT} ${TIME} ${NUMBER}`.split(' '))]

/** A field, its operators, an operand that each of them accepts, and operands that `eq` refuses. */
type FieldCase = {
  name: string
  wrap: (test: Json) => Json
  operators: string
  good: unknown
  bad: unknown[]
}

const contactCases: FieldCase[] = [
  ...['name', 'phoneNumber', 'email', 'chatappUserId', 'webVisitorId'].map((field) => ({
    name: field,
    wrap: onField(field),
    operators: TEXT,
    good: '555',
    bad: [5, true, {}],
  })),
  {
    name: 'id',
    wrap: onField('id'),
    operators: ID,
    good: '7',
    bad: ['Ada', '0', '07', '-1', 1.5, 0, -3, true, '12345678901234567890'],
  },
  ...['createdAt', 'updatedAt', 'lastActivityAt', 'lastInboundAt', 'lastOutboundAt'].map((field) => ({
    name: field,
    wrap: onField(field),
    operators: TIME,
    good: '-7d',
    bad: [
      'soon',
      7,
      true,
      '2026-02-30',
      '2026-13-01T00:00:00Z',
      '7d',
      '-7x',
      '-9999999d',
      '+999999y',
      '0000-12-31',
      '',
    ],
  })),
  ...['dnd', 'starred', 'awaitingReply', 'neverAnswered'].map((field) => ({
    name: field,
    wrap: onField(field),
    operators: FLAG,
    good: true,
    bad: ['true', 1, 0],
  })),
  { name: 'country', wrap: onField('country'), operators: REF, good: 'DE', bad: ['XX', 'de', 49, true] },
  ...['tags', 'groups'].flatMap((relation) =>
    ['some', 'none', 'every'].flatMap((quantifier) => [
      {
        name: `${relation}.${quantifier}.id`,
        wrap: onRelation(relation, quantifier, 'id'),
        operators: REF,
        good: 7,
        bad: ['VIP', true],
      },
      {
        name: `${relation}.${quantifier}.name`,
        wrap: onRelation(relation, quantifier, 'name'),
        operators: TEXT,
        good: 'VIP',
        bad: [7],
      },
    ]),
  ),
]

const attributeCases: FieldCase[] = [
  {
    name: 'stringValue',
    wrap: onAttributeValue('stringValue', 'f_text'),
    operators: TEXT,
    good: 'a',
    bad: [7],
  },
  {
    name: 'numberValue',
    wrap: onAttributeValue('numberValue', 'f_decimal'),
    operators: NUMBER,
    good: '12.50',
    bad: ['x', '1e9999', '', '1,5', true],
  },
  {
    name: 'booleanValue',
    wrap: onAttributeValue('booleanValue', 'f_checkbox'),
    operators: FLAG,
    good: false,
    bad: ['no', 1],
  },
  {
    name: 'dateValue',
    wrap: onAttributeValue('dateValue', 'f_date'),
    operators: TIME,
    good: '2026-10-01',
    bad: ['1 October', 20261001],
  },
]

const relatedCases: FieldCase[] = [
  {
    name: 'state',
    wrap: onRelation('conversations', 'some', 'state'),
    operators: ID,
    good: 'open',
    bad: ['opened', true],
  },
  ...['channelId', 'assignedStaffId', 'assignedTeamId'].map((field) => ({
    name: field,
    wrap: onRelation('conversations', 'none', field),
    operators: REF,
    good: '3',
    bad: ['Ada'],
  })),
  ...['createdAt', 'lastActivityAt'].map((field) => ({
    name: `conversations.${field}`,
    wrap: onRelation('conversations', 'some', field),
    operators: TIME,
    good: 'start_of_week',
    bad: ['week'],
  })),
  {
    name: 'unreadCount',
    wrap: onRelation('conversations', 'some', 'unreadCount'),
    operators: NUMBER,
    good: 3,
    bad: ['three'],
  },
  ...['purpose', 'channel'].map((field) => ({
    name: `consents.${field}`,
    wrap: onRelation('consents', 'some', field),
    operators: 'eq',
    good: 'chatapp',
    bad: [7, true],
  })),
  {
    name: 'consents.state',
    wrap: onRelation('consents', 'none', 'state'),
    operators: ID,
    good: 'withdrawn',
    bad: ['given', true],
  },
  {
    name: 'broadcasts.id',
    wrap: onRelation('broadcasts', 'some', 'id'),
    operators: REF,
    good: '5',
    bad: ['spring'],
  },
  {
    name: 'message_status',
    wrap: onRelation('broadcasts', 'none', 'message_status'),
    operators: ID,
    good: 'not_responded',
    bad: ['seen'],
  },
  {
    name: 'sentAt',
    wrap: onRelation('broadcasts', 'some', 'sentAt'),
    operators: TIME,
    good: 'yesterday',
    bad: ['never'],
  },
]

/** Every field of the grammar. */
export const fieldCases = [...contactCases, ...attributeCases, ...relatedCases]

/** Turns a value into the operand of an operator. */
export const toOperand = (op: string, value: unknown): unknown =>
  op === 'isNull' ? true : op === 'in' || op === 'notIn' ? [value] : op === 'between' ? [value, value] : value
