import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { customFieldTypes } from '../../catalog/custom-fields.ts'
import { filterStrategy } from '../../storage/filters/strategy.ts'
import { fold } from '../../storage/text.ts'
import { callAs, type ContactsPage, doAs, everyPage, plantContact } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { filtersOf } from './arbitraries.ts'
import {
  keyOf,
  plantedNow,
  plantMany,
  plantNasty,
  type Planted,
  plantSavedFilter,
  readFacts,
} from './data.ts'
import { type Fact, instantOf, type Json, type JsonObject, meets, type Setting } from './oracle.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { runs } from '../level.ts'

type Sort = { field: string; direction: 'asc' | 'desc' }

const bytes = (text: string | null): Buffer => Buffer.from(fold(text ?? ''))
const byId = (a: Fact, b: Fact): number => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)
const orders: Record<string, (a: Fact, b: Fact) => number> = {
  createdAt: (a, b) => a.createdAt - b.createdAt,
  updatedAt: (a, b) => a.updatedAt - b.updatedAt,
  id: byId,
  name: (a, b) => Buffer.compare(bytes(a.name), bytes(b.name)),
  phoneNumber: (a, b) => Buffer.compare(bytes(a.phoneNumber), bytes(b.phoneNumber)),
}
const sorts = fc.record({
  field: fc.constantFrom(...Object.keys(orders)),
  direction: fc.constantFrom('asc' as const, 'desc' as const),
})
const newestFirst: Sort = { field: 'createdAt', direction: 'desc' }
const sorted = (facts: readonly Fact[], { field, direction }: Sort): string[] => {
  const ascending = facts.toSorted((a, b) => orders[field]!(a, b) || byId(a, b)).map((fact) => fact.id)
  return direction === 'asc' ? ascending : ascending.reverse()
}
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
const given = (input: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

const ids = (rows: readonly { id: string }[]): string[] => rows.map((row) => row.id)

describe('The naive reading of a filter', () => {
  const fact = (id: string, more: Partial<Fact>): Fact => ({
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
    broadcasts: [],
    ...more,
  })
  const at = (iso: string): number => Date.parse(iso)
  const talk = {
    state: 'open',
    channelId: '1',
    assignedStaffId: null,
    assignedTeamId: null,
    createdAt: 0,
    lastActivityAt: null,
    unreadCount: 0,
  }
  const facts = [
    fact('1', {
      name: 'Straße 100%',
      createdAt: at('2026-03-01T05:00:00Z'),
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
        { ...talk, unreadCount: 3 },
        { ...talk, state: 'closed' },
      ],
      broadcasts: [{ id: '5', status: 'read', responded: false, sentAt: null }],
    }),
    fact('2', {
      name: 'strasse 1000',
      createdAt: at('2026-03-01T04:59:59.999Z'),
      tags: [{ id: '1', name: 'VIP' }],
      lastActivityAt: at('2026-03-03T12:34:56.789Z'),
      attributes: [
        { key: 'size', type: 'decimal', value: '12345678901234567890.12345678' },
        { key: 'colors', type: 'multiselect', value: 'blue' },
      ],
      broadcasts: [
        { id: '5', status: 'sent', responded: true, sentAt: 1 },
        { id: '6', status: 'failed', responded: false, sentAt: null },
      ],
    }),
    fact('3', {
      createdAt: at('2026-03-10T12:34:56.789Z'),
      dnd: true,
      attributes: [{ key: 'size', type: 'decimal', value: '2.00000000' }],
      conversations: [{ ...talk, assignedStaffId: '7' }],
    }),
  ]
  const setting: Setting = {
    now: plantedNow,
    timeZone: 'America/New_York',
    saved: new Map([['9', { name: { isNull: false } }]]),
  }
  const sets: [JsonObject, string[]][] = [
    [{}, ['1', '2', '3']],
    [{ name: { contains: 'STRASSE' } }, ['1', '2']],
    [{ name: { contains: '00%' } }, ['1']],
    [{ name: { eq: 'STRASSE 1000' } }, []],
    // What is absent meets no comparison, and so the opposite of each.
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
    [{ broadcasts: { some: { message_status: { eq: 'not_responded' } } } }, ['1', '2']],
    [{ broadcasts: { some: { id: { eq: '5' }, message_status: { eq: 'not_responded' } } } }, ['1']],
    [{ broadcasts: { some: { message_status: { in: ['responded', 'read'] } } } }, ['1', '2']],
    [{ broadcasts: { some: { message_status: { notIn: ['responded', 'read'] } } } }, ['2']],
    [{ savedFilter: { eq: 9 } }, ['1', '2']],
    [{ or: [{ dnd: { eq: true } }, { starred: { ne: false } }] }, ['1', '3']],
    [{ and: [{ dnd: { eq: false } }], not: { starred: { eq: true } } }, ['2']],
  ]
  for (const [filter, expected] of sets) {
    it(JSON.stringify(filter), () => {
      assert.deepEqual(ids(facts.filter((one) => meets(setting, one, filter))), expected)
    })
  }

  it('knows the edges of local days, weeks and years', () => {
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
      assert.equal(instantOf(setting, date).epochMilliseconds, at(expected), date)
  })
})

/** What the naive reading answers: ids of the contacts that meet all conditions, in the order asked for. */
type Asked = {
  filter?: JsonObject | undefined
  saved?: string | undefined
  query?: string | undefined
  tagIds?: string[] | undefined
  sort?: Sort | undefined
}

const meetsQuery = (fact: Fact, query: string): boolean => {
  const digits = /^[\d\s+().\-/]+$/.test(query) ? query.replaceAll(/\D/g, '') : ''
  const phone = fact.phoneNumber ?? ''
  return (
    fold(fact.name ?? '').includes(fold(query)) ||
    phone.includes(query) ||
    (digits !== '' && phone.includes(digits))
  )
}
const answerOf = (
  { facts, setting }: Pick<Planted, 'facts' | 'setting'>,
  { filter, saved, query, tagIds, sort = newestFirst }: Asked,
): string[] =>
  sorted(
    facts.filter(
      (fact) =>
        (filter === undefined || meets(setting, fact, filter)) &&
        (saved === undefined || meets(setting, fact, setting.saved.get(saved)!)) &&
        (query === undefined || meetsQuery(fact, query)) &&
        (!tagIds?.length || fact.tags.some((tag) => tagIds.includes(tag.id))),
    ),
    sort,
  )

const inputOf = ({ filter, saved, query, tagIds, sort }: Asked): Record<string, unknown> =>
  given({ filter, saved_filter_id: saved, query, tag_ids: tagIds, sort })

/** A total may be an estimate only where there are more than are counted at once; else it is exact. */
const assertTotal = (
  { total, approximate }: Pick<ContactsPage, 'total' | 'approximate'>,
  expected: number,
): void => {
  if (approximate)
    assert.ok(
      expected > filterStrategy.maxSortedMatches && total! > 0,
      `${total} of ${expected} is an estimate`,
    )
  else assert.deepEqual([total, approximate], [expected, false])
}

/** A search whose answer's shape is not looked at, which takes longer than the search. */
const asker =
  (server: TestServer, key: string) =>
  async (input: Record<string, unknown>): Promise<ContactsPage> => {
    const { status, body, text } = await doorsOf(server.url, key)[1]!.call('crm_search_contacts', input)
    assert.equal(status, 200, text)
    return body
  }

/** Thresholds under which each way of finding contacts comes into use with a few hundred of them. */
const measured = { ...filterStrategy }
const ways: Record<string, Partial<typeof filterStrategy>> = {
  'as measured': {},
  'where nothing is rare': { maxCandidates: 0, maxSortedMatches: 0 },
  'where little is carried': { maxCandidates: 20, maxSortedMatches: 20, maxProbes: 1 },
  'where walks are short': { maxCandidates: 5, maxScannedRows: 10, maxSortedMatches: 10 },
  'where nothing is walked': {
    maxCandidates: 0,
    maxScannedRows: 0,
    maxSortedMatches: 40,
    countStepContacts: 50,
  },
}

everyDatabase(
  'Contact filters',
  (server) => {
    let planting: Promise<Planted> | undefined
    const planted = (): Promise<Planted> =>
      (planting ??= (async () => {
        const world = await plantNasty(server())
        const starred = await plantSavedFilter(server(), world, { starred: { eq: true } })
        await plantSavedFilter(server(), world, {
          or: [{ savedFilter: { eq: starred } }, { tags: { some: { name: { startsWith: 'v' } } } }],
        })
        await plantSavedFilter(server(), world, {
          attributes: { none: { attributeName: { eq: 'f_select' }, stringValue: { in: ['red', 'ß'] } } },
          name: { isNull: false },
        })
        return world
      })())

    for (const [way, thresholds] of Object.entries(ways)) {
      describe(way, () => {
        before(() => {
          Object.assign(filterStrategy, thresholds)
        })
        after(() => {
          Object.assign(filterStrategy, measured)
        })

        it('answer exactly the contacts that meet them, in the order asked for', async () => {
          const world = await planted()
          const ask = asker(server(), world.workspace.owner.key)
          await fc.assert(
            fc.asyncProperty(filtersOf(world), maybe(sorts), async (filter, sort) => {
              const expected = answerOf(world, { filter, sort })
              const page = await ask({ ...inputOf({ filter, sort }), limit: 100 })
              assert.deepEqual(ids(page.data), expected.slice(0, 100))
              assertTotal(page, expected.length)
              assert.equal(page.next_cursor === null, expected.length <= 100)
            }),
            { numRuns: runs(60, 400) },
          )
        })

        it('answer the same on pages of every size', async () => {
          const world = await planted()
          const run = doAs(server(), world.workspace.owner.key)
          const limits = fc.array(fc.integer({ min: 10, max: 100 }), { minLength: 1, maxLength: 3 })
          await fc.assert(
            fc.asyncProperty(
              filtersOf(world),
              sorts,
              limits,
              fc.constantFrom('summary', 'full'),
              async (filter, sort, sizes, detail) => {
                const pages = await everyPage(run, 'crm_search_contacts', { filter, sort, detail }, sizes)
                assert.deepEqual(
                  pages.flatMap((page) => ids(page.data)),
                  answerOf(world, { filter, sort }),
                )
                for (const { total, approximate } of pages.slice(1))
                  assert.deepEqual([total, approximate], [null, null])
              },
            ),
            { numRuns: runs(6, 24) },
          )
        })

        it('hold together with a saved filter, a query and tags', async () => {
          const world = await planted()
          const run = doAs(server(), world.workspace.owner.key)
          const names = fc.constantFrom(
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
            fc.constantFrom(...new Set(world.facts.flatMap((fact) => ids(fact.tags))), ...world.foreign.tags),
            { minLength: 1, maxLength: 3 },
          )
          const asked = fc.record({
            filter: maybe(filtersOf(world)),
            saved: maybe(fc.constantFrom(...world.setting.saved.keys())),
            query: maybe(names),
            tagIds: maybe(tags),
            sort: maybe(sorts),
          })
          await fc.assert(
            fc.asyncProperty(asked, async (wanted) => {
              const expected = answerOf(world, wanted)
              const page: ContactsPage = await run('crm_search_contacts', { ...inputOf(wanted), limit: 100 })
              assert.deepEqual(ids(page.data), expected.slice(0, 100))
              assertTotal(page, expected.length)
            }),
            { numRuns: runs(20, 120) },
          )
        })

        it('are counted exactly', async () => {
          const world = await planted()
          const run = doAs(server(), world.workspace.owner.key)
          await fc.assert(
            fc.asyncProperty(
              maybe(filtersOf(world)),
              maybe(fc.constantFrom(...world.setting.saved.keys())),
              async (filter, saved) => {
                const { count, approximate } = await run('crm_count_contacts', inputOf({ filter, saved }))
                assert.deepEqual([count, approximate], [answerOf(world, { filter, saved }).length, false])
              },
            ),
            { numRuns: runs(20, 120) },
          )
        })
      })
    }

    it('find what was just written, and no longer what was changed or deleted', async () => {
      const world = await plantNasty(server(), 60)
      const { workspace, facts } = world
      const run = doAs(server(), workspace.owner.key)
      const [select, number] = [
        (n: number) => ['red', 'SS', null][n % 3],
        (n: number) => [1, 2.5, null][n % 3],
      ]
      for (const [n, fact] of facts.entries()) {
        if (n % 4 === 0) await run('crm_delete_contact', { contact_id: fact.id })
        else if (n % 4 === 1) {
          await run('crm_update_contact', {
            contact_id: fact.id,
            name: n % 8 === 1 ? null : `Straße ${n}`,
            starred: n % 8 === 1,
            email: n % 3 === 0 ? null : 'new@example.com',
            attributes: {
              f_select: select(n),
              f_multiselect: n % 8 === 1 ? ['ß', 'red'] : null,
              f_number: number(n),
              f_text: `neu ${n}`,
              f_date: '2026-03-09',
              f_boolean: n % 3 === 0,
            },
          })
        } else if (n % 4 === 2)
          await run('crm_tag_contacts', { contact_ids: [fact.id], tags: ['Neu', '100%'] })
        else
          await run('crm_upsert_contact', {
            phone: `+1555777${String(n).padStart(4, '0')}`,
            name: `Ada ${n}`,
            attributes: { f_text: 'Pro', f_decimal: '12.5', f_multiselect: ['gr%en'] },
            tags: ['VIP'],
          })
      }
      const changed = { ...world, facts: await readFacts(server().db, workspace.id) }
      assert.notDeepEqual(ids(changed.facts), ids(facts))
      await fc.assert(
        fc.asyncProperty(filtersOf(changed), sorts, async (filter, sort) => {
          const page: ContactsPage = await run('crm_search_contacts', { filter, sort, limit: 100 })
          assert.deepEqual(ids(page.data), answerOf(changed, { filter, sort }))
        }),
        { numRuns: runs(50, 300) },
      )
    })

    it('show on their pages every contact that stays exactly once, while others come, change and go', async () => {
      const changes = fc.array(fc.nat(), { minLength: 1, maxLength: 5 })
      const limits = fc.array(fc.integer({ min: 2, max: 15 }), { minLength: 1, maxLength: 3 })
      let made = 0
      await fc.assert(
        fc.asyncProperty(fc.gen(), sorts, limits, changes, async (draw, sort, sizes, picks) => {
          const world = await plantNasty(server(), 40)
          const run = doAs(server(), world.workspace.owner.key)
          // Often everyone, so that there are pages to change between.
          const filter = draw(() =>
            fc.oneof(
              fc.constant<JsonObject>({ name: { ne: 'nobody' } }),
              fc.constant<JsonObject>({ tags: { none: { name: { eq: 'empty' } } } }),
              filtersOf(world),
            ),
          )
          const touched = new Set<string>()
          const pages = await everyPage(run, 'crm_search_contacts', { filter, sort }, sizes, async (page) => {
            const pick = picks[page % picks.length]!
            const victim = world.facts[pick % world.facts.length]!
            if (touched.has(victim.id)) return
            touched.add(victim.id)
            if (pick % 3 === 0) await run('crm_delete_contact', { contact_id: victim.id })
            else if (pick % 3 === 1)
              await run('crm_update_contact', {
                contact_id: victim.id,
                name: pick % 2 === 0 ? null : 'Ada',
                starred: pick % 2 === 0,
                attributes: { f_text: 'Pro' },
              })
            else
              await run('crm_upsert_contact', {
                phone: `+1555888${String(made++).padStart(4, '0')}`,
                name: 'Ada',
                tags: ['VIP'],
              })
          })
          const seen = pages.flatMap((page) => ids(page.data))
          const known = new Set(ids(world.facts))
          assert.deepEqual(
            seen.filter((id) => known.has(id) && !touched.has(id)),
            answerOf(world, { filter, sort }).filter((id) => !touched.has(id)),
          )
          // What changes its place may be met again there.
          if (!['updatedAt', 'name'].includes(sort.field)) assert.equal(new Set(seen).size, seen.length)
        }),
        { numRuns: runs(6, 24) },
      )
    })

    it('find options as free text, by parts and by patterns', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const options = [
        { label: 'With care', value: 'with care' },
        { label: 'Plain', value: 'plain' },
      ]
      const chosen = { select: 'with care', radio: 'with care', multiselect: ['plain', 'with care'] }
      for (const type of Object.keys(chosen))
        await run('crm_create_custom_field', { key: type, type, options })
      const { id } = await run('crm_upsert_contact', { phone: '+15550100042', attributes: chosen })
      for (const type of Object.keys(chosen)) {
        for (const test of [
          { regex: '^with care$' },
          { regex: 'ith.car' },
          { contains: 'WITH' },
          { startsWith: 'with c' },
          { endsWith: 'care' },
          { eq: 'with care' },
        ]) {
          const page: ContactsPage = await run('crm_search_contacts', {
            filter: { attributes: { some: { attributeName: { eq: type }, stringValue: test } } },
          })
          assert.deepEqual(ids(page.data), [id], `${type} ${JSON.stringify(test)}`)
        }
      }
    })

    it('never match what belongs to another workspace', async () => {
      const { workspace, foreign } = await planted()
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

    it('take any value whatever without a fault of the server', async () => {
      const { workspace } = await planted()
      const call = callAs(server(), workspace.owner.key)
      const numeric = fc.oneof(
        fc.double(),
        fc.bigInt().map(String),
        fc.constantFrom(
          '1e400',
          '1e-400',
          '1e999999999',
          '-0',
          '.5',
          '5.',
          '0x10',
          'NaN',
          'Infinity',
          '9'.repeat(400),
          `0.${'0'.repeat(400)}1`,
        ),
      )
      const dated = fc.constantFrom(
        '0000-01-01',
        '0001-01-01',
        '9999-12-31',
        '-000001-01-01',
        '+010000-01-01',
        '2026-02-30',
        '2026-03-10T24:00:00Z',
        '2026-12-31T23:59:60Z',
        '-999999y',
        '+99999mo',
        '-0d',
        'NOW',
        '2026-03-10T00:00:00.123456789+23:59',
      )
      const signs = fc.string({
        unit: fc.constantFrom(...'ab0()[]{}|*+?^$.\\,-:=!<>&#\n wdsSmMyYABZ1_é😀'),
        maxLength: 12,
      })
      const pattern = fc.constantFrom(
        '***:a',
        '***=a(',
        '(?i)ADA',
        '(?',
        '[[:alpha:]]',
        '[[.a.]]',
        '[[=a=]]',
        '[[:nonsense:]]',
        'a{1,256}',
        '(a{1,255}){1,255}',
        '\\',
        '(a)\\1',
        '\\y',
        '\\ud800',
        '[b-a]',
      )
      const one = fc.oneof(
        numeric,
        dated,
        signs,
        pattern,
        fc.string({ unit: 'binary', maxLength: 30 }),
        fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>,
        fc.constantFrom('\0', '\ud800', '', ' '),
      )
      const value = fc.oneof(
        { weight: 3, arbitrary: one },
        fc.array(one, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
      ) as fc.Arbitrary<Json>
      const places: ((tests: JsonObject) => JsonObject)[] = [
        ...[
          'id',
          'name',
          'phoneNumber',
          'email',
          'chatappUserId',
          'createdAt',
          'lastActivityAt',
          'dnd',
          'savedFilter',
        ].map((field) => (tests: JsonObject) => ({ [field]: tests })),
        ...['id', 'name'].map((field) => (tests: JsonObject) => ({ tags: { every: { [field]: tests } } })),
        ...['state', 'channelId', 'createdAt', 'unreadCount'].map((field) => (tests: JsonObject) => ({
          conversations: { none: { [field]: tests } },
        })),
        ...['id', 'message_status', 'sentAt'].map((field) => (tests: JsonObject) => ({
          broadcasts: { some: { [field]: tests } },
        })),
        ...customFieldTypes.flatMap((type) =>
          ['stringValue', 'numberValue', 'booleanValue', 'dateValue'].map((kind) => (tests: JsonObject) => ({
            attributes: { some: { attributeName: { eq: keyOf(type) }, [kind]: tests } },
          })),
        ),
      ]
      const op = fc.constantFrom(
        'eq',
        'ne',
        'in',
        'notIn',
        'contains',
        'notContains',
        'startsWith',
        'endsWith',
        'regex',
        'isNull',
        'gt',
        'gte',
        'lt',
        'lte',
        'between',
      )
      let taken = 0
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...places), op, value, async (place, name, wanted) => {
          const { status, body } = await call('crm_search_contacts', {
            filter: place({ [name]: wanted }),
            limit: 1,
          })
          // An expression may take longer than it has, with many others at work beside it.
          assert.ok(
            status === 200 ||
              (status === 400 && body.code === 'invalid_input') ||
              ['saved_filter_not_found', 'query_timeout'].includes(body.reason),
            `${status} ${JSON.stringify(body).slice(0, 300)}`,
          )
          if (status === 200) taken++
        }),
        { numRuns: 400 },
      )
      assert.ok(taken > 20, `${taken} were taken`)
    })
  },
  { now: () => plantedNow },
)

everyDatabase('Many contacts under a filter', (server) => {
  const COUNT = 5000
  type Many = Pick<Planted, 'workspace' | 'facts' | 'setting'>
  let planting: Promise<Many> | undefined
  const planted = (): Promise<Many> => (planting ??= plantMany(server(), COUNT))
  const filters: JsonObject[] = [
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

  it('comes whole, in order, on all pages', async () => {
    const world = await planted()
    const run = doAs(server(), world.workspace.owner.key)
    for (const [n, filter] of filters.entries()) {
      const sort: Sort = { field: Object.keys(orders)[n % 5]!, direction: n % 2 === 0 ? 'asc' : 'desc' }
      const expected = answerOf(world, { filter, sort })
      const pages = await everyPage(run, 'crm_search_contacts', { filter, sort }, [100])
      assert.deepEqual(
        pages.flatMap((page) => ids(page.data)),
        expected,
        JSON.stringify(filter),
      )
      assertTotal(pages[0]!, expected.length)
      const { count, approximate } = await run('crm_count_contacts', { filter })
      assert.deepEqual([count, approximate], [expected.length, false], JSON.stringify(filter))
    }
    assert.ok(
      filters.some((filter) => {
        const n = answerOf(world, { filter }).length
        return n > 3000 && n < COUNT
      }),
    )
  })
})

everyDatabase(
  'A count that has no time',
  (server) => {
    it('is an estimate, and says so', async () => {
      const world = await plantMany(server(), 5000)
      const run = doAs(server(), world.workspace.owner.key)
      const common: JsonObject[] = [
        { starred: { eq: false } },
        { name: { contains: 'person' } },
        { tags: { some: { name: { eq: 'Most' } } } },
        { attributes: { some: { attributeName: { eq: 'score' }, numberValue: { gte: 20 } } } },
        { conversations: { some: { state: { eq: 'open' } } } },
      ]
      for (const filter of common) {
        const expected = answerOf(world, { filter }).length
        const { count, approximate } = await run('crm_count_contacts', { filter })
        assert.equal(approximate, true)
        assert.ok(
          count >= expected / 2 && count <= expected * 2,
          `${JSON.stringify(filter)}: ${count} for ${expected}`,
        )
      }
    })
  },
  { countTimeBox: 0 },
)

describe('Relative dates of a search', () => {
  let clock = Date.parse(plantedNow)
  everyDatabase(
    'count from its first page',
    (server) => {
      it('however long the others are in coming', async () => {
        const workspace = await makeWorkspace(server())
        const run = doAs(server(), workspace.owner.key)
        const made: string[] = []
        for (let n = 0; n < 12; n++) {
          const at = new Date(clock - n * 600_000).toISOString()
          made.push(
            await plantContact(
              server().db,
              workspace.id,
              {
                phone: `155501${String(n).padStart(5, '0')}`,
                name: `Person ${n}`,
                email: null,
                attrs: {},
                tagIds: [],
                groupIds: [],
              },
              at,
            ),
          )
        }
        const filter = { createdAt: { gte: '-1h', lte: 'now' } }
        const pages = await everyPage(run, 'crm_search_contacts', { filter }, [2], async () => {
          clock += 1_800_000
        })
        assert.deepEqual(
          pages.flatMap((page) => ids(page.data)),
          made.slice(0, 7),
        )
      })
    },
    { now: () => new Date(clock).toISOString() },
  )
})
