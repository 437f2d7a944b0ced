import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doAs, everyPage } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import type { JsonObject } from '../filters/model.ts'
import { assertTotal, comparators, findExpectedIds, type Sort, toIds } from '../filters/search-model.ts'
import { seedManyContacts } from '../filters/seed.ts'

const CONTACT_COUNT = 5000

const filterCases: JsonObject[] = [
  {},
  { name: { contains: 'person' } },
  { name: { endsWith: '7' } },
  { starred: { eq: false } },
  { createdAt: { gte: '2026-01-01' } },
  { tags: { some: { name: { eq: 'Most' } } } },
  { tags: { none: { name: { eq: 'Few' } } } },
  { tags: { some: { name: { eq: 'Few' } } } },
  { groups: { every: { name: { ne: 'North' } } } },
  { attributes: { some: { attributeName: { eq: 'plan' }, stringValue: { ne: 'free' } } } },
  { attributes: { some: { attributeName: { eq: 'score' }, numberValue: { gte: 20 } } } },
  { attributes: { none: { attributeName: { eq: 'score' }, numberValue: { between: [0, 60] } } } },
  { conversations: { some: { state: { eq: 'open' } } } },
  { conversations: { none: {} } },
  {
    or: [
      { attributes: { some: { attributeName: { eq: 'plan' }, stringValue: { eq: 'pro' } } } },
      { tags: { some: { name: { eq: 'Most' } } } },
    ],
  },
  {
    tags: { some: { name: { eq: 'Most' } } },
    attributes: { some: { attributeName: { eq: 'score' }, numberValue: { lt: 90 } } },
    not: { conversations: { some: { state: { eq: 'closed' } } } },
  },
  {
    and: [
      { or: [{ name: { contains: '1' } }, { starred: { eq: true } }] },
      { attributes: { some: { attributeName: { eq: 'plan' } } } },
    ],
  },
]

everyDatabase('Filters over many contacts', (server) => {
  it('pages together list all matches in order, with exact counts', async () => {
    const seed = await seedManyContacts(server(), CONTACT_COUNT)
    const run = doAs(server(), seed.workspace.owner.key)
    for (const [n, filter] of filterCases.entries()) {
      const sort: Sort = { field: Object.keys(comparators)[n % 5]!, direction: n % 2 === 0 ? 'asc' : 'desc' }
      const expected = findExpectedIds(seed, { filter, sort })
      const pages = await everyPage(run, 'crm_search_contacts', { filter, sort }, [100])
      assert.deepEqual(
        pages.flatMap((page) => toIds(page.data)),
        expected,
        JSON.stringify(filter),
      )
      assertTotal(pages[0]!, expected.length)
      const { count, approximate } = await run('crm_count_contacts', { filter })
      assert.deepEqual([count, approximate], [expected.length, false], JSON.stringify(filter))
    }
    assert.ok(
      filterCases.some((filter) => {
        const n = findExpectedIds(seed, { filter }).length
        return n > 3000 && n < CONTACT_COUNT
      }),
    )
  })
})

everyDatabase(
  'Count without a time budget',
  (server) => {
    it('is exact where an index finds the matches, else an estimate within a factor of two', async () => {
      const seed = await seedManyContacts(server(), CONTACT_COUNT)
      const run = doAs(server(), seed.workspace.owner.key)
      const common: JsonObject[] = [
        { starred: { eq: false } },
        { name: { contains: 'person' } },
        { tags: { some: { name: { eq: 'Most' } } } },
        { attributes: { some: { attributeName: { eq: 'score' }, numberValue: { gte: 20 } } } },
        { conversations: { some: { state: { eq: 'open' } } } },
      ]
      for (const filter of common) {
        const expected = findExpectedIds(seed, { filter }).length
        const { count, approximate } = await run('crm_count_contacts', { filter })
        if (filter['starred']) assert.equal(approximate, true)
        if (!approximate) assert.equal(count, expected)
        assert.ok(
          count >= expected / 2 && count <= expected * 2,
          `${JSON.stringify(filter)}: ${count} for ${expected}`,
        )
      }
    })
  },
  { countTimeBox: 0 },
)
