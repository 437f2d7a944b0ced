import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import {
  createFieldOfEveryType,
  GRAMMAR_NOW,
  type Json,
  NAME_IS_X,
  onAttributeValue,
  setUp,
} from './grammar-fixtures.ts'

/** Filters that are probably mistaken, where the warning points, and what it says. */
const warningCases: [filter: Json, pointer: string, message: RegExp][] = [
  [
    { broadcasts: { some: { message_status: { in: ['failed', 'not_responded'] } } } },
    '/broadcasts/some/message_status/in',
    /broadcast id/,
  ],
  [
    { broadcasts: { some: { id: { eq: 1 }, message_status: { eq: 'sent' } } } },
    '/broadcasts/some/message_status/eq',
    /"delivered","read"/,
  ],
  [{ name: { ne: 'Ada' } }, '/name/ne', /without name/],
  [{ lastActivityAt: { ne: '2026-10-01T00:00:00Z' } }, '/lastActivityAt/ne', /millisecond/],
  [{ webVisitorId: { notIn: ['a'] } }, '/webVisitorId/notIn', /isNull/],
  [{ email: { notContains: 'x' } }, '/email/notContains', /without email/],
  [
    { conversations: { some: { assignedStaffId: { ne: '5' } } } },
    '/conversations/some/assignedStaffId/ne',
    /without assignedStaffId/,
  ],
  [{ tags: { some: { name: { ne: 'VIP' } } } }, '/tags/some/name/ne', /none with eq/],
  [{ groups: { none: { id: { notIn: [1] } } } }, '/groups/none/id/notIn', /no other/],
  [
    onAttributeValue('stringValue', 'f_select')({ ne: 'gold' }),
    '/attributes/some/stringValue/ne',
    /none with eq/,
  ],
  [
    { createdAt: { between: ['2026-09-02T00:00:00Z', '2026-09-01T00:00:00Z'] } },
    '/createdAt/between',
    /Swap/,
  ],
  [
    onAttributeValue('numberValue', 'f_int')({ between: [10, 9] }),
    '/attributes/some/numberValue/between',
    /Swap/,
  ],
  [{ createdAt: { gte: '2026-09-01' } }, '/createdAt/gte', /Europe\/Berlin/],
  [{ createdAt: { lt: '2026-09-01T10:00' } }, '/createdAt/lt', /time zone/],
  [{ createdAt: { eq: 'today' } }, '/createdAt/eq', /millisecond/],
  [{ createdAt: { lte: 'today' } }, '/createdAt/lte', /first instant/],
  [{ createdAt: { between: ['-7d', 'start_of_day'] } }, '/createdAt/between', /first instant/],
  [{ createdAt: { gt: '-1d', lt: '-2d' } }, '/createdAt', /both gt and lt/],
  [
    onAttributeValue('numberValue', 'f_int')({ gte: 10, lt: 10 }),
    '/attributes/some/numberValue',
    /both gte and lt/,
  ],
  [{ createdAt: { gte: '+1d' } }, '/createdAt/gte', /future/],
  [{ broadcasts: { some: { sentAt: { gt: '+1h' } } } }, '/broadcasts/some/sentAt/gt', /future/],
  [{ tags: { every: { name: { eq: 'VIP' } } } }, '/tags/every', /without any/],
  [{ groups: { every: {} } }, '/groups/every', /Every contact/],
  [onAttributeValue('stringValue', 'f_int')({ eq: '5' }), '/attributes/some/stringValue', /numberValue/],
  [onAttributeValue('dateValue', 'f_text')({ gt: '-1d' }), '/attributes/some/dateValue', /stringValue/],
  [
    onAttributeValue('stringValue', 'f_select')({ eq: 'gold plan' }),
    '/attributes/some/stringValue/eq',
    /use "gold"/,
  ],
  [
    onAttributeValue('stringValue', 'f_multiselect')({ in: ['gold', 'silver'] }),
    '/attributes/some/stringValue/in',
    /gold, basic/,
  ],
  [
    onAttributeValue('stringValue', 'f_text')({ isNull: true }),
    '/attributes/some/stringValue/isNull',
    /use none/,
  ],
  [
    onAttributeValue('dateValue', 'f_date')({ gt: '2026-10-01T10:00:00Z' }),
    '/attributes/some/dateValue/gt',
    /holds days/,
  ],
  [{ name: { regex: 'ada' } }, '/name/regex', /contains/],
  [{ phoneNumber: { regex: '^\\+49' } }, '/phoneNumber/regex', /without \+/],
  [{ phoneNumber: { eq: 'Ada' } }, '/phoneNumber/eq', /not a phone/],
  [{ phoneNumber: { startsWith: '0170' } }, '/phoneNumber/startsWith', /leading zeros/],
  [
    onAttributeValue('stringValue', 'f_phone')({ contains: 'x5' }),
    '/attributes/some/stringValue/contains',
    /not a phone/,
  ],
  [{ name: { eq: '' } }, '/name/eq', /isNull/],
  [{ name: { contains: '' } }, '/name/contains', /Every text/],
  [{ name: { eq: 'Ada ' } }, '/name/eq', /space/],
  [{ tags: { none: { name: { eq: 'vip' } } } }, '/tags/none/name/eq', /written "VIP"/],
  [{ tags: { some: { name: { in: ['VIP', 'VPI'] } } } }, '/tags/some/name/in', /no tag with the name "VPI"/],
  [{ groups: { some: { id: { eq: '9223372036854775807' } } } }, '/groups/some/id/eq', /no group/],
  [{ not: {} }, '/not', /No contact/],
  [{ or: [NAME_IS_X, {}] }, '/or/1', /every contact/],
  [{ id: { in: [1, 2, '1'] } }, '/id/in', /more than once/],
  [{ name: { isNull: true, contains: 'a' } }, '/name/isNull', /no other/],
  [{ createdAt: { isNull: false } }, '/createdAt/isNull', /always/],
  [{ dnd: { isNull: true } }, '/dnd/isNull', /never matches/],
  [
    { attributes: { some: { attributeName: { eq: 'f_decimal' }, numberValue: { eq: 2 ** 60 } } } },
    '/attributes/some/numberValue/eq',
    /as text/,
  ],
]

/** Filters without a warning. */
const filtersWithoutWarnings: Json[] = [
  {},
  NAME_IS_X,
  { or: [{ name: { ne: 'Ada' } }, { name: { isNull: true } }] },
  { name: { ne: 'Ada', isNull: false } },
  { id: { ne: 1 } },
  { dnd: { ne: true } },
  { createdAt: { gte: '-7d', lt: 'now' } },
  { createdAt: { gte: 'start_of_month', lte: 'end_of_month' } },
  { lastActivityAt: { isNull: true } },
  { tags: { none: { name: { eq: 'VIP' } } } },
  { tags: { none: {} } },
  { broadcasts: { some: { id: { eq: 5 }, message_status: { eq: 'not_responded' } } } },
  { conversations: { some: { state: { ne: 'closed' }, unreadCount: { gt: 2, lt: 9 } } } },
  { phoneNumber: { startsWith: '+49 170' } },
  { phoneNumber: { eq: '+1 555-010-0042' } },
  { name: { regex: '^A' } },
  onAttributeValue('stringValue', 'f_select')({ eq: 'gold' }),
  onAttributeValue('dateValue', 'f_date')({ lte: '2026-12-31' }),
  onAttributeValue('numberValue', 'f_int')({ gte: 9, lte: 10 }),
  { createdAt: { between: ['2026-09-01T00:00:00Z', '2026-09-02T00:00:00Z'] } },
]

everyDatabase(
  'Filter warnings',
  (server) => {
    it('each probable mistake gets a warning at its condition; correct filters get none', async () => {
      const { call, check } = await setUp(server(), 'Europe/Berlin')
      await createFieldOfEveryType(call)
      await call('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP'] })
      for (const [filter, pointer, message] of warningCases) {
        const { body, text } = await check(filter)
        const warning = body.warnings?.find(
          (w: { path: string; message: string }) =>
            w.path === `#/filter${pointer}` && message.test(w.message),
        )
        assert.ok(warning, `${JSON.stringify(filter)} ${text}`)
      }
      for (const filter of filtersWithoutWarnings)
        assert.deepEqual((await check(filter)).body.warnings, [], JSON.stringify(filter))
    })
  },
  { now: () => GRAMMAR_NOW },
)
