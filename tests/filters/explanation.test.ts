import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { createFieldOfEveryType, GRAMMAR_NOW, type Json, NAME_IS_X, setUp } from './grammar-fixtures.ts'

/** Filters and their explanations. */
const explanations: [Json, string][] = [
  [{}, 'All contacts.'],
  [{ and: [{}, {}] }, 'All contacts.'],
  [
    { createdAt: { gte: '-7d' }, name: { contains: 'ada' } },
    'Contacts that were created on or after 24 September 2026, 11:30 (Europe/Berlin) and whose ' +
      'name contains "ada".',
  ],
  [
    { name: { in: ['a', 'b', 'c'] }, dnd: { eq: false }, starred: { ne: false } },
    'Contacts whose name is one of "a", "b" or "c", that are not do-not-disturb and that are ' + 'starred.',
  ],
  [{ id: { in: [1, 2, 3, 4, 5, 6, 7] } }, 'Contacts whose id is one of 1, 2, 3, 4, 5 and 2 more.'],
  [
    { or: [{ starred: { eq: true } }, { name: { isNull: true }, dnd: { eq: true } }] },
    'Contacts either that are starred, or (whose name is absent and that are do-not-disturb).',
  ],
  [
    { and: [{ or: [NAME_IS_X, { dnd: { eq: true } }] }, { starred: { eq: true } }] },
    'Contacts (either whose name is "x", or that are do-not-disturb) and that are starred.',
  ],
  [
    { or: [{ or: [NAME_IS_X, NAME_IS_X] }, NAME_IS_X] },
    'Contacts either (either whose name is "x", or whose name is "x"), or whose name is "x".',
  ],
  [{ or: [NAME_IS_X] }, 'Contacts whose name is "x".'],
  [
    { not: { or: [NAME_IS_X, { starred: { eq: true } }] } },
    'Contacts that are not among those (either whose name is "x", or that are starred).',
  ],
  [{ not: {} }, 'Contacts that are not among those (all contacts).'],
  [
    {
      lastActivityAt: { isNull: true },
      updatedAt: { between: ['2026-09-30T22:00:00Z', 'end_of_day'] },
    },
    'Contacts that were never active and that were changed from 1 October 2026, 00:00 ' +
      '(Europe/Berlin) to 1 October 2026, 23:59:59 (Europe/Berlin).',
  ],
  [
    {
      tags: {
        some: { name: { eq: 'VIP' } },
        none: { id: { eq: 4 } },
        every: { name: { startsWith: 'V' } },
      },
    },
    'Contacts that have the tag "VIP", that do not have the tag with the id 4 and whose every ' +
      'tag is one (whose name begins with "V").',
  ],
  [{ groups: { none: {} } }, 'Contacts that are in no group.'],
  [
    {
      country: { in: ['DE', 'AT'] },
      consents: { some: { purpose: { eq: 'marketing' }, state: { eq: 'granted' } } },
    },
    'Contacts whose country is one of DE or AT and that have a consent (whose purpose is marketing and whose ' +
      'state is granted).',
  ],
  [
    { attributes: { some: { attributeName: { eq: 'f_date' }, dateValue: { lt: '2026-10-05' } } } },
    'Contacts whose value of the custom field "Field date" is before 5 October 2026.',
  ],
  [
    { attributes: { none: { attributeName: { eq: 'f_text' } } } },
    'Contacts that have no value of the custom field "Field text".',
  ],
  [
    { attributes: { none: { attributeName: { eq: 'f_int' }, numberValue: { gte: 1, lt: 5 } } } },
    'Contacts that have no value of the custom field "Field int" (that is at least 1 and that is ' +
      'less than 5).',
  ],
  [
    { conversations: { some: { state: { eq: 'open' }, assignedStaffId: { isNull: true } } } },
    'Contacts that have a conversation (whose state is open and whose assigned staff member is ' + 'absent).',
  ],
  [
    { broadcasts: { some: { id: { eq: 5 }, message_status: { eq: 'not_responded' } } } },
    'Contacts that are recipients of a broadcast (whose id is 5 and that they did not answer).',
  ],
  [
    { phoneNumber: { regex: '^49' }, email: { notContains: 'x' } },
    'Contacts whose phone number matches the regular expression "^49" and whose email address is ' +
      'present and does not contain "x".',
  ],
]
const savedFilterSentence = 'Contacts that match the saved filter "My \\"leads\\"".'

everyDatabase(
  'Filter explanation',
  (server) => {
    it('says in one sentence what the filter matches', async () => {
      const { call, check, run } = await setUp(server(), 'Europe/Berlin')
      await createFieldOfEveryType(call)
      const { saved_filter: saved } = await run('crm_create_saved_filter', {
        name: 'My "leads"',
        filter: NAME_IS_X,
      })
      for (const [filter, sentence] of [
        ...explanations,
        [{ savedFilter: { eq: saved.id } }, savedFilterSentence] as const,
      ])
        assert.equal((await check(filter)).body.explanation, sentence, JSON.stringify(filter))
    })
  },
  { now: () => GRAMMAR_NOW },
)
