import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, matchesFilter, type ModelContact, type ModelContext } from './model.ts'
import { resolveDate } from './model-dates.ts'
import { SEEDED_NOW } from './sample-values.ts'
import { toIds } from './search-model.ts'

const createContact = (id: string, more: Partial<ModelContact>): ModelContact => ({
  id,
  name: null,
  phoneNumber: null,
  email: null,
  chatappUserId: null,
  webVisitorId: null,
  createdAt: 0,
  updatedAt: 0,
  lastActivityAt: null,
  dnd: false,
  starred: false,
  tags: [],
  groups: [],
  attributes: [],
  conversations: [],
  consents: [],
  broadcasts: [],
  ...more,
})
const conversation = {
  state: 'open',
  channelId: '1',
  assignedStaffId: null,
  assignedTeamId: null,
  createdAt: 0,
  lastActivityAt: null,
  unreadCount: 0,
  replyStatus: null,
  messages: [],
}
const inbound = { direction: 'inbound', status: 'received', at: 100, isByPerson: true }
const outbound = { direction: 'outbound', status: 'sent', at: 200, isByPerson: true }
const contacts = [
  createContact('1', {
    name: 'Straße 100%',
    createdAt: Date.parse('2026-03-01T05:00:00Z'),
    tags: [
      { id: '1', name: 'VIP' },
      { id: '2', name: 'lead' },
    ],
    starred: true,
    attributes: [
      { key: 'colors', type: 'multiselect', value: 'red' },
      { key: 'colors', type: 'multiselect', value: 'green' },
      { key: 'born', type: 'date', value: '2026-03-09' },
    ],
    conversations: [
      { ...conversation, unreadCount: 3, messages: [inbound, { ...inbound, at: 300 }] },
      { ...conversation, state: 'closed', messages: [outbound] },
    ],
    broadcasts: [{ id: '5', status: 'read', responded: false, sentAt: null }],
  }),
  createContact('2', {
    name: 'strasse 1000',
    createdAt: Date.parse('2026-03-01T04:59:59.999Z'),
    tags: [{ id: '1', name: 'VIP' }],
    lastActivityAt: Date.parse('2026-03-03T12:34:56.789Z'),
    attributes: [
      { key: 'size', type: 'decimal', value: '12345678901234567890.12345678' },
      { key: 'colors', type: 'multiselect', value: 'blue' },
    ],
    broadcasts: [
      { id: '5', status: 'sent', responded: true, sentAt: 1 },
      { id: '6', status: 'failed', responded: false, sentAt: null },
    ],
  }),
  createContact('3', {
    createdAt: Date.parse('2026-03-10T12:34:56.789Z'),
    dnd: true,
    attributes: [{ key: 'size', type: 'decimal', value: '2.00000000' }],
    conversations: [
      {
        ...conversation,
        assignedStaffId: '7',
        messages: [
          { ...outbound, at: 50 },
          inbound,
          { ...outbound, isByPerson: false },
          { ...outbound, at: 400, status: 'failed' },
        ],
      },
    ],
  }),
]
const context: ModelContext = {
  now: SEEDED_NOW,
  timeZone: 'America/New_York',
  saved: new Map([['9', { name: { isNull: false } }]]),
}

/** Filters and the ids of the contacts that match them. */
const filterCases: [JsonObject, string[]][] = [
  [{}, ['1', '2', '3']],
  [{ name: { contains: 'STRASSE' } }, ['1', '2']],
  [{ name: { contains: '00%' } }, ['1']],
  [{ name: { eq: 'STRASSE 1000' } }, []],
  // An absent value fails every comparison, negated ones too.
  [{ name: { ne: 'x' } }, ['1', '2']],
  [{ name: { notIn: ['x'] } }, ['1', '2']],
  [{ name: { notContains: 'ß' } }, []],
  [{ not: { name: { eq: 'strasse 1000' } } }, ['1', '3']],
  [{ name: { isNull: true } }, ['3']],
  [{ lastActivityAt: { isNull: false, lt: '-7d' } }, ['2']],
  [{ lastActivityAt: { gt: '-169h', lte: '-167h' } }, ['2']],
  [{ name: { regex: '^[Ss]tra' } }, ['1', '2']],
  [{ name: { regex: '^STRA' } }, []],
  [{ id: { in: [1, '3'] } }, ['1', '3']],
  [{ createdAt: { gte: '2026-03-01' } }, ['1', '3']],
  [{ createdAt: { between: ['2026-02-28', '2026-03-01T05:00:00Z'] } }, ['1', '2']],
  [{ createdAt: { eq: 'now' } }, ['3']],
  [{ tags: { some: { name: { eq: 'VIP' } } } }, ['1', '2']],
  [{ tags: { every: { name: { eq: 'VIP' } } } }, ['2', '3']],
  [{ tags: { none: { id: { eq: 2 } } } }, ['2', '3']],
  [{ tags: { none: {} } }, ['3']],
  [{ tags: { some: { name: { ne: 'VIP' } } } }, ['1']],
  [
    {
      attributes: {
        some: { attributeName: { eq: 'colors' }, stringValue: { contains: 're', endsWith: 'N' } },
      },
    },
    ['1'],
  ],
  [
    {
      attributes: {
        some: { attributeName: { eq: 'colors' }, stringValue: { startsWith: 'r', endsWith: 'n' } },
      },
    },
    [],
  ],
  [{ attributes: { none: { attributeName: { eq: 'colors' }, stringValue: { ne: 'red' } } } }, ['3']],
  [
    {
      attributes: {
        some: { attributeName: { eq: 'size' }, numberValue: { eq: '12345678901234567890.12345678' } },
      },
    },
    ['2'],
  ],
  [
    {
      attributes: {
        some: {
          attributeName: { eq: 'size' },
          numberValue: { gt: '12345678901234567890.12345677', ne: 2 },
        },
      },
    },
    ['2'],
  ],
  [{ attributes: { some: { attributeName: { eq: 'size' }, stringValue: { ne: 'x' } } } }, []],
  [{ attributes: { some: { attributeName: { eq: 'size' }, stringValue: { isNull: true } } } }, ['2', '3']],
  [{ attributes: { some: { attributeName: { eq: 'born' }, dateValue: { eq: 'yesterday' } } } }, ['1']],
  [{ conversations: { some: { state: { eq: 'closed' }, unreadCount: { gt: 0 } } } }, []],
  [{ conversations: { some: { assignedStaffId: { ne: '8' } } } }, ['3']],
  [{ conversations: { none: { state: { eq: 'open' } } } }, ['2']],
  [{ lastInboundAt: { eq: '1970-01-01T00:00:00.300Z' } }, ['1']],
  [{ lastInboundAt: { isNull: true } }, ['2']],
  [{ lastOutboundAt: { lte: '1970-01-01T00:00:00.200Z' } }, ['1', '3']],
  [{ lastOutboundAt: { gt: '1970-01-01T00:00:00.200Z' } }, []],
  [{ neverAnswered: { eq: true } }, ['3']],
  [{ neverAnswered: { ne: true } }, ['1', '2']],
  [{ broadcasts: { some: { message_status: { eq: 'not_responded' } } } }, ['1', '2']],
  [{ broadcasts: { some: { id: { eq: '5' }, message_status: { eq: 'not_responded' } } } }, ['1']],
  [{ broadcasts: { some: { message_status: { in: ['responded', 'read'] } } } }, ['1', '2']],
  [{ broadcasts: { some: { message_status: { notIn: ['responded', 'read'] } } } }, ['2']],
  [{ savedFilter: { eq: 9 } }, ['1', '2']],
  [{ or: [{ dnd: { eq: true } }, { starred: { ne: false } }] }, ['1', '3']],
  [{ and: [{ dnd: { eq: false } }], not: { starred: { eq: true } } }, ['2']],
]

describe('Reference model of filters', () => {
  for (const [filter, expected] of filterCases) {
    it(JSON.stringify(filter), () => {
      assert.deepEqual(toIds(contacts.filter((contact) => matchesFilter(context, contact, filter))), expected)
    })
  }

  it('resolves the start and end of local days, weeks, months, quarters and years', () => {
    const dates = {
      today: '2026-03-10T04:00:00Z',
      yesterday: '2026-03-09T04:00:00Z',
      '-7d': '2026-03-03T13:34:56.789Z',
      '-48h': '2026-03-08T12:34:56.789Z',
      start_of_week: '2026-03-09T04:00:00Z',
      end_of_week: '2026-03-16T03:59:59.999Z',
      start_of_month: '2026-03-01T05:00:00Z',
      end_of_month: '2026-04-01T03:59:59.999Z',
      start_of_quarter: '2026-01-01T05:00:00Z',
      end_of_year: '2027-01-01T04:59:59.999Z',
      '2026-03-08T02:30:00': '2026-03-08T07:30:00Z',
      '2025-11-02T01:30': '2025-11-02T05:30:00Z',
      '-13mo': '2025-02-10T13:34:56.789Z',
    }
    for (const [date, expected] of Object.entries(dates))
      assert.equal(resolveDate(context, date).epochMilliseconds, Date.parse(expected), date)
  })
})
