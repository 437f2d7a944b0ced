import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { filterStrategy } from '../../storage/filters/strategy.ts'
import { type ContactsPage, doAs, everyPage } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import type { TestServer } from '../servers.ts'
import { arbitraryFilter } from './arbitraries.ts'
import type { JsonObject } from './model.ts'
import { SEEDED_NOW } from './sample-values.ts'
import { arbitrarySort, assertTotal, findExpectedIds, optional, toIds, toInput } from './search-model.ts'
import { seedEdgeCases, type SeededWorkspace, seedSavedFilter } from './seed.ts'

/** Creates a search that does not validate the response, which takes longer than the search itself. */
const createSearch =
  (server: TestServer, key: string) =>
  async (input: Record<string, unknown>): Promise<ContactsPage> => {
    const { status, body, text } = await doorsOf(server.url, key)[1]!.call('crm_search_contacts', input)
    assert.equal(status, 200, text)
    return body
  }

/** Thresholds at which each strategy of the planner is used with a few hundred contacts. */
const defaultStrategy = { ...filterStrategy }
const strategies: Record<string, Partial<typeof filterStrategy>> = {
  'default thresholds': {},
  'no candidate sets': { maxCandidates: 0, maxSortedMatches: 0, maxExactTotal: 0 },
  'small candidate sets': {
    maxCandidates: 20,
    maxListedPerHash: 0,
    minListed: 0,
    listedPerLookUp: 2,
    maxSortedMatches: 20,
    maxProbes: 1,
  },
  'short index scans': {
    maxCandidates: 5,
    maxFirstRows: 2,
    maxScannedRows: 30,
    maxSortedMatches: 10,
    maxExactTotal: 10,
  },
  'no index scans': {
    maxCandidates: 0,
    maxScannedRows: 0,
    maxSortedMatches: 40,
    maxCountedContacts: 0,
    countStepContacts: 50,
  },
}

const value = (key: string, condition: JsonObject) => ({
  attributes: { some: { attributeName: { eq: key }, ...condition } },
})
const indexedConditions = fc.array(
  fc.constantFrom<JsonObject>(
    value('f_select', { stringValue: { eq: 'red' } }),
    value('f_select', { stringValue: { in: ['red', 'ß', 'Red'] } }),
    value('f_multiselect', { stringValue: { in: ['red', 'SS'] } }),
    value('f_text', { stringValue: { in: ['Pro', 'Enterprise', 'x'] } }),
    value('f_checkbox', { booleanValue: { eq: true } }),
    value('f_number', { numberValue: { gte: 2 } }),
    value('f_date', { dateValue: { lt: 'today' } }),
    { attributes: { none: { attributeName: { eq: 'f_int' }, numberValue: { lt: 7 } } } },
    ...['VIP', '100%', 'Straße'].map((name) => ({ tags: { some: { name: { eq: name } } } })),
    { tags: { some: { name: { in: ['vips', 'axb'] } } } },
    { groups: { none: { name: { eq: 'North' } } } },
    { conversations: { some: { state: { eq: 'open' }, unreadCount: { gte: 1 } } } },
    { conversations: { some: { unreadCount: { gt: 0.5 } } } },
    { email: { contains: 'example' } },
    ...['Ada', 'stra', 'Jos\u00e9', 'ß', '^[A-Z]', 'n$'].map((regex) => ({ name: { regex } })),
    { createdAt: { gte: '-30d' } },
    { lastActivityAt: { lt: '-1d' } },
    { starred: { eq: true } },
    { awaitingReply: { eq: true } },
    { lastInboundAt: { gte: '-30d' } },
    { lastInboundAt: { lt: '-90d' } },
    { lastOutboundAt: { between: ['-1y', '-7d'] } },
    { lastOutboundAt: { isNull: true } },
    { neverAnswered: { eq: true } },
    { country: { eq: 'US' } },
    { country: { in: ['CA', 'DE'] } },
    { consents: { some: { purpose: { eq: 'marketing' }, state: { eq: 'withdrawn' } } } },
    { awaitingReply: { ne: true }, tags: { some: { name: { startsWith: 'v' } } } },
  ),
  { minLength: 2, maxLength: 4 },
)

const labelled: readonly JsonObject[] = [
  { tags: { some: { name: { eq: 'VIP' } } } },
  { tags: { some: { name: { in: ['vips', 'VIP', 'Straße'] } } } },
  { tags: { none: { name: { in: ['vips', 'VIP', 'Straße'] } } } },
  { groups: { none: { name: { eq: 'North' } } } },
]
/** Values and labels, of which a query finds the contacts together. */
const valuesWithLabels: JsonObject[][] = [
  value('f_select', { stringValue: { in: ['red', 'ß', 'Red'] } }),
  value('f_text', { stringValue: { in: ['Pro', 'Enterprise', 'x'] } }),
  value('f_checkbox', { booleanValue: { eq: true } }),
].flatMap((having) => labelled.map((labels) => [having, labels]))

everyDatabase(
  'Contact search with filters',
  (server) => {
    let seeding: Promise<SeededWorkspace> | undefined
    const seeded = (): Promise<SeededWorkspace> =>
      (seeding ??= (async () => {
        const seed = await seedEdgeCases(server())
        const starred = await seedSavedFilter(server(), seed, { starred: { eq: true } })
        await seedSavedFilter(server(), seed, {
          or: [{ savedFilter: { eq: starred } }, { tags: { some: { name: { startsWith: 'v' } } } }],
        })
        await seedSavedFilter(server(), seed, {
          attributes: { none: { attributeName: { eq: 'f_select' }, stringValue: { in: ['red', 'ß'] } } },
          name: { isNull: false },
        })
        return seed
      })())

    for (const [name, thresholds] of Object.entries(strategies)) {
      describe(name, () => {
        before(() => {
          Object.assign(filterStrategy, thresholds)
        })
        after(() => {
          Object.assign(filterStrategy, defaultStrategy)
        })

        it('returns exactly the matching contacts in the requested order', async () => {
          const seed = await seeded()
          const search = createSearch(server(), seed.workspace.owner.key)
          await fc.assert(
            fc.asyncProperty(arbitraryFilter(seed), optional(arbitrarySort), async (filter, sort) => {
              const expected = findExpectedIds(seed, { filter, sort })
              const page = await search({ ...toInput({ filter, sort }), limit: 100 })
              assert.deepEqual(toIds(page.data), expected.slice(0, 100))
              assertTotal(page, expected.length)
              assert.equal(page.next_cursor === null, expected.length <= 100)
            }),
            {
              numRuns: runs(12, 200),
              // One recipient is no contact any more.
              examples: [
                [{ broadcasts: { some: { message_status: { in: ['not_responded'] } } } }, undefined],
              ],
            },
          )
        })

        it('intersects conditions that indexes list', async () => {
          const seed = await seeded()
          const search = createSearch(server(), seed.workspace.owner.key)
          await fc.assert(
            fc.asyncProperty(indexedConditions, optional(arbitrarySort), async (conditions, sort) => {
              const filter = { and: conditions }
              const expected = findExpectedIds(seed, { filter, sort })
              const page = await search({ ...toInput({ filter, sort }), limit: 10 })
              assert.deepEqual(toIds(page.data), expected.slice(0, 10))
              assertTotal(page, expected.length)
            }),
            {
              numRuns: runs(12, 200) + valuesWithLabels.length,
              examples: valuesWithLabels.map((conditions): [JsonObject[], undefined] => [
                conditions,
                undefined,
              ]),
            },
          )
        })

        it('returns the same contacts on pages of any size', async () => {
          const seed = await seeded()
          const run = doAs(server(), seed.workspace.owner.key)
          const limits = fc.array(fc.integer({ min: 10, max: 100 }), { minLength: 1, maxLength: 3 })
          await fc.assert(
            fc.asyncProperty(
              arbitraryFilter(seed),
              arbitrarySort,
              limits,
              fc.constantFrom('summary', 'full'),
              async (filter, sort, sizes, detail) => {
                const pages = await everyPage(run, 'crm_search_contacts', { filter, sort, detail }, sizes)
                assert.deepEqual(
                  pages.flatMap((page) => toIds(page.data)),
                  findExpectedIds(seed, { filter, sort }),
                )
                for (const { total, approximate } of pages.slice(1))
                  assert.deepEqual([total, approximate], [null, null])
              },
            ),
            { numRuns: runs(3, 24) },
          )
        })

        it('combines a filter with a saved filter, a query and tags', async () => {
          const seed = await seeded()
          const run = doAs(server(), seed.workspace.owner.key)
          const queries = fc.constantFrom(
            'a',
            'Ada',
            'STRASSE',
            '%',
            '0',
            '1555',
            '555 0',
            'x',
            'Jos\u00e9',
            'σ',
          )
          const tags = fc.uniqueArray(
            fc.constantFrom(
              ...new Set(seed.contacts.flatMap((contact) => toIds(contact.tags))),
              ...seed.foreign.tags,
            ),
            { minLength: 1, maxLength: 3 },
          )
          const arbitraryCriteria = fc.record({
            filter: optional(arbitraryFilter(seed)),
            saved: optional(fc.constantFrom(...seed.context.saved.keys())),
            query: optional(queries),
            tagIds: optional(tags),
            sort: optional(arbitrarySort),
          })
          await fc.assert(
            fc.asyncProperty(arbitraryCriteria, async (criteria) => {
              const expected = findExpectedIds(seed, criteria)
              const page: ContactsPage = await run('crm_search_contacts', {
                ...toInput(criteria),
                limit: 100,
              })
              assert.deepEqual(toIds(page.data), expected.slice(0, 100))
              assertTotal(page, expected.length)
            }),
            { numRuns: runs(5, 120) },
          )
        })

        it('counts matches exactly', async () => {
          const seed = await seeded()
          const run = doAs(server(), seed.workspace.owner.key)
          await fc.assert(
            fc.asyncProperty(
              optional(arbitraryFilter(seed)),
              optional(fc.constantFrom(...seed.context.saved.keys())),
              async (filter, saved) => {
                const { count, approximate } = await run('crm_count_contacts', toInput({ filter, saved }))
                assert.deepEqual(
                  [count, approximate],
                  [findExpectedIds(seed, { filter, saved }).length, false],
                )
              },
            ),
            { numRuns: runs(5, 120) },
          )
        })
      })
    }

    it('counts exactly where few match, though twice as many candidates as else must be tested', async () => {
      const seed = await seeded()
      const conditions = [{ createdAt: { lt: '-1d' } }, value('f_checkbox', { booleanValue: { eq: true } })]
      const count = (filter: JsonObject) => findExpectedIds(seed, { filter }).length
      const matches = count({ and: conditions })
      assert.ok(matches > 10, 'more than a page')
      Object.assign(filterStrategy, {
        maxCandidates: Math.ceil(Math.min(...conditions.map(count)) / 2),
        listedPerLookUp: 0,
        maxCountedContacts: 0,
        maxCountedForFew: 0,
      })
      try {
        const search = createSearch(server(), seed.workspace.owner.key)
        const { total, approximate } = await search({ filter: { and: conditions }, limit: 10 })
        assert.deepEqual({ total, approximate }, { total: matches, approximate: false })
      } finally {
        Object.assign(filterStrategy, defaultStrategy)
      }
    })

    it('never matches labels, broadcasts or contacts of another workspace', async () => {
      const { workspace, foreign } = await seeded()
      const run = doAs(server(), workspace.owner.key)
      for (const filter of [
        { tags: { some: { id: { in: foreign.tags } } } },
        { groups: { some: { id: { in: foreign.groups } } } },
        { broadcasts: { some: { id: { in: foreign.broadcasts } } } },
        { id: { in: foreign.contacts } },
      ]) {
        const { data, total } = await run('crm_search_contacts', { filter })
        assert.deepEqual(
          [data, total, (await run('crm_count_contacts', { filter })).count],
          [[], 0, 0],
          JSON.stringify(filter),
        )
      }
    })
  },
  { now: () => SEEDED_NOW },
)
