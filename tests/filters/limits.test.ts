import assert from 'node:assert/strict'
import { everyDoor } from '../doors.ts'
import { assertRefused, createFilterOfSize, NAME_IS_X, nestInNot } from './grammar-fixtures.ts'

/** The largest filter within each limit, the smallest beyond it, and where the error points. */
const limitCases: [reason: string, within: unknown, beyond: unknown, pointer: string][] = [
  ['filter_too_deep', nestInNot(7), nestInNot(8), '#/filter/not/not/not/not/not/not/not/not/name'],
  [
    'filter_too_deep',
    nestInNot(6, { tags: { some: { id: { eq: 1 } } } }),
    nestInNot(7, { tags: { some: { id: { eq: 1 } } } }),
    '#/filter/not/not/not/not/not/not/not/tags/some/id',
  ],
  [
    'filter_too_many_conditions',
    { and: Array.from({ length: 60 }, () => NAME_IS_X) },
    { and: Array.from({ length: 61 }, () => NAME_IS_X) },
    '#/filter/and/60/name/eq',
  ],
  [
    'filter_too_many_conditions',
    { and: Array.from({ length: 60 }, () => ({ tags: { none: {} } })) },
    { and: Array.from({ length: 61 }, () => ({ tags: { none: {} } })) },
    '#/filter/and/60/tags/none',
  ],
  [
    'filter_list_too_long',
    { id: { in: Array.from({ length: 500 }, (_, n) => n + 1) } },
    { id: { in: Array.from({ length: 501 }, (_, n) => n + 1) } },
    '#/filter/id/in',
  ],
  [
    'filter_string_too_long',
    { name: { contains: '😀'.repeat(500) } },
    { name: { contains: '😀'.repeat(501) } },
    '#/filter/name/contains',
  ],
  [
    'filter_string_too_long',
    { name: { in: ['a', 'x'.repeat(500)] } },
    { name: { in: ['a', 'x'.repeat(501)] } },
    '#/filter/name/in/1',
  ],
  [
    'filter_regex_too_long',
    { name: { regex: '😀'.repeat(200) } },
    { name: { regex: '😀'.repeat(201) } },
    '#/filter/name/regex',
  ],
  ['filter_too_large', createFilterOfSize(16_384), createFilterOfSize(16_385), '#/filter'],
]

everyDoor('Filter limits', (test) => {
  test('each limit: accepted at the maximum, refused with its reason beyond it', async ({ call }) => {
    const check = async (filter: unknown) => await call('crm_check_filter', { filter })
    for (const [reason, within, beyond, pointer] of limitCases) {
      const accepted = await check(within)
      assert.equal(accepted.status, 200, `${reason}: ${accepted.text}`)
      assertRefused(await check(beyond), { reason, pointer, code: reason })
    }
    assert.equal(JSON.stringify(createFilterOfSize(16_384)).length, 16_384)
    const deepest = (await check(nestInNot(7))).body
    assert.deepEqual([deepest.depth, deepest.conditions], [8, 1])
    const several = (
      await check({
        name: { contains: 'a', startsWith: 'b' },
        attributes: { some: { attributeName: { eq: 'email' }, stringValue: { isNull: false } } },
      })
    ).body
    assert.deepEqual([several.depth, several.conditions], [2, 4])
  })

  test('a regular expression that PostgreSQL rejects is refused, in a dry run too', async ({ call }) => {
    const filter = {
      and: [NAME_IS_X, { name: { regex: '^A.*a$' } }, { tags: { none: { name: { regex: 'a(b' } } } }],
    }
    assertRefused(await call('crm_check_filter', { filter }), {
      reason: 'filter_regex_invalid',
      pointer: '#/filter/and/2/tags/none/name/regex',
    })
    assertRefused(await call('crm_create_saved_filter', { name: 'x', filter, dry_run: true }), {
      reason: 'filter_regex_invalid',
      pointer: '#/filter/and/2/tags/none/name/regex',
    })
    assert.equal(
      (await call('crm_check_filter', { filter: { name: { regex: '(?i)^a\\d+(?=b)' } } })).status,
      200,
    )
  })

  test('crm_check_filter returns warnings and an explanation', async ({ call }) => {
    const { body } = await call('crm_check_filter', {
      filter: {
        broadcasts: { some: { message_status: { eq: 'not_responded' } } },
        name: { contains: 'ada' },
      },
    })
    assert.equal(body.valid, true)
    assert.deepEqual(
      body.warnings.map((w: { path: string }) => w.path),
      ['#/filter/broadcasts/some/message_status/eq'],
    )
    assert.equal(
      body.explanation,
      'Contacts that are recipients of a broadcast (that they did not answer) and whose name contains "ada".',
    )
  })
})
