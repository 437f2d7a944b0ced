import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { searchText, updateContactRow } from '../../storage/contacts/contacts.ts'
import { fold } from '../../storage/values/text.ts'
import { callAs, doAs, plantContact } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { runs } from '../level.ts'

type Row = {
  id: string
  name: string | null
  phone: string | null
  tags: number[]
  groups: number[]
  starred: boolean
  dnd: boolean
  createdAt: string
  updatedAt: string
}
type Fixture = { key: string; rows: Row[]; tags: string[]; groups: string[] }

const toTime = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
const names = [null, 'Ada', 'ada', 'Émile', 'Zoë', 'Ælf', '李']

/**
 * Inserts 64 contacts with every combination of tags, groups and `starred`, with ties in every sort key, and
 * some without a name or a phone.
 */
const createFixture = async (server: TestServer): Promise<Fixture> => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  const groups: string[] = []
  for (const name of ['North', 'South']) groups.push((await run('crm_create_group', { name })).group.id)
  await run('crm_upsert_contact', { phone: '+15550109999', tags: ['one', 'two', 'three'] })
  const listed = (await run('crm_list_tags')).data as { id: string; name: string }[]
  const tags = ['one', 'two', 'three'].map((name) => listed.find((t) => t.name === name)!.id)
  await run('crm_delete_contact', { contact_id: (await run('crm_search_contacts')).data[0].id })
  const rows: Row[] = []
  for (let i = 0; i < 64; i++) {
    const name = names[i % names.length]!
    const row = {
      name,
      phone: `1555010${String((i * 37) % 64).padStart(4, '0')}`,
      starred: (i & 32) !== 0,
      dnd: i % 3 === 0,
      createdAt: toTime(i >> 2),
      updatedAt: toTime((i * 5) % 16),
      tags: [0, 1, 2].filter((n) => i & (1 << n)),
      groups: [0, 1].filter((n) => i & (8 << n)),
    }
    const id = await plantContact(
      server.db,
      workspace.id,
      {
        phone: row.phone,
        name,
        email: null,
        attrs: {},
        tagIds: row.tags.map((n) => tags[n]!),
        groupIds: row.groups.map((n) => groups[n]!),
      },
      row.createdAt,
    )
    await updateContactRow(
      server.db,
      workspace.id,
      { id },
      { starred: row.starred, dnd: row.dnd },
      row.updatedAt,
    )
    const hasNoPhone = i % 16 === 0
    // Web chat contacts have no phone; no operation can create one yet.
    if (hasNoPhone)
      await server.db
        .updateTable('contacts')
        .set({ phone: null, search: searchText(name, null) })
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', id)
        .execute()
    rows.push({ id, ...row, phone: hasNoPhone ? null : row.phone })
  }
  return { key: workspace.owner.key, rows, tags, groups }
}

const subset = (n: number) => fc.subarray(Array.from({ length: n }, (_, i) => i))
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const criteria = fc.record({
  query: optional(fc.constantFrom('ADA', 'a', 'é', 'ÆLF', 'zoë', '李', '0100', '1555 010 00', 'nobody')),
  tags: optional(subset(3)),
  groups: optional(subset(2)),
  starred: optional(fc.boolean()),
  dnd: optional(fc.boolean()),
  notInAnyGroup: optional(fc.boolean()),
})
type Criteria = typeof criteria extends fc.Arbitrary<infer T> ? T : never

const toInput = (
  { query, tags, groups, starred, dnd, notInAnyGroup }: Criteria,
  fixture: Fixture,
): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({
      query,
      tag_ids: tags?.map((n) => fixture.tags[n]),
      group_ids: groups?.map((n) => fixture.groups[n]),
      starred,
      dnd,
      not_in_any_group: notInAnyGroup,
    }),
  ) as Record<string, unknown>

const matches =
  ({ query, tags, groups, starred, dnd, notInAnyGroup }: Criteria) =>
  (row: Row): boolean =>
    (query === undefined ||
      (row.name ?? '').toLowerCase().includes(query.toLowerCase()) ||
      (row.phone ?? '').includes(query.replaceAll(' ', ''))) &&
    // An empty list is no condition.
    (!tags?.length || tags.some((n) => row.tags.includes(n))) &&
    (!groups?.length || groups.some((n) => row.groups.includes(n))) &&
    (starred === undefined || row.starred === starred) &&
    (dnd === undefined || row.dnd === dnd) &&
    (notInAnyGroup === undefined || (row.groups.length === 0) === notInAnyGroup)

const toBytes = (text: string | null) => Buffer.from(text ?? '')
const compareIds = (a: Row, b: Row): number => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)
const comparators: Record<string, (a: Row, b: Row) => number> = {
  createdAt: (a, b) => a.createdAt.localeCompare(b.createdAt),
  updatedAt: (a, b) => a.updatedAt.localeCompare(b.updatedAt),
  id: compareIds,
  name: (a, b) =>
    Buffer.compare(toBytes(a.name?.toLowerCase() ?? null), toBytes(b.name?.toLowerCase() ?? null)),
  phoneNumber: (a, b) => Buffer.compare(toBytes(a.phone), toBytes(b.phone)),
}
const sort = fc.record({
  field: fc.constantFrom(...Object.keys(comparators)),
  direction: fc.constantFrom('asc', 'desc'),
})
const sortIds = (
  rows: readonly Row[],
  { field, direction }: { field: string; direction: string },
): string[] => {
  const ascending = rows
    .toSorted((a, b) => comparators[field]!(a, b) || compareIds(a, b))
    .map((row) => row.id)
  return direction === 'asc' ? ascending : ascending.reverse()
}
const toIds = (body: { data: { id: string }[] }): string[] => body.data.map((row) => row.id)

everyDatabase('Contact search', (server) => {
  let fixturePromise: Promise<Fixture> | undefined
  const loadFixture = (): Promise<Fixture> => (fixturePromise ??= createFixture(server()))

  it('returns contacts that match all conditions, in the requested order, with an exact total', async () => {
    const fixture = await loadFixture()
    const run = doAs(server(), fixture.key)
    await fc.assert(
      fc.asyncProperty(
        criteria,
        optional(sort),
        fc.integer({ min: 1, max: 100 }),
        async (conditions, order, limit) => {
          const found = await run('crm_search_contacts', {
            ...toInput(conditions, fixture),
            ...(order ? { sort: order } : {}),
            limit,
          })
          const expected = sortIds(
            fixture.rows.filter(matches(conditions)),
            order ?? { field: 'createdAt', direction: 'desc' },
          )
          assert.deepEqual(toIds(found), expected.slice(0, limit))
          assert.deepEqual([found.total, found.approximate], [expected.length, false])
          assert.equal(found.next_cursor === null, expected.length <= limit)
        },
      ),
      { numRuns: runs(40, 240) },
    )
  })

  it('sorts by every field in both directions, ties by id, missing values as empty text', async () => {
    const fixture = await loadFixture()
    const run = doAs(server(), fixture.key)
    for (const field of Object.keys(comparators))
      for (const direction of ['asc', 'desc']) {
        const found = await run('crm_search_contacts', { sort: { field, direction }, limit: 100 })
        assert.deepEqual(toIds(found), sortIds(fixture.rows, { field, direction }), `${field} ${direction}`)
      }
    assert.deepEqual(
      toIds(await run('crm_search_contacts', { sort: { field: 'name' }, limit: 100 })),
      sortIds(fixture.rows, { field: 'name', direction: 'desc' }),
    )
  })

  it('email, tags and groups are in full rows only', async () => {
    const fixture = await loadFixture()
    const run = doAs(server(), fixture.key)
    const row = fixture.rows.find((r) => r.tags.length === 3 && r.groups.length === 2)!
    const input = { tag_ids: fixture.tags, sort: { field: 'id' }, limit: 100 }
    type FoundContact = {
      id: string
      email?: string | null
      tags: { name: string }[]
      groups: { name: string }[]
    }
    const pick = (body: { data: FoundContact[] }) => body.data.find((c) => c.id === row.id)!
    const summary = pick(await run('crm_search_contacts', input))
    for (const field of ['email', 'tags', 'groups']) assert.ok(!(field in summary), field)
    const full = pick(await run('crm_search_contacts', { ...input, detail: 'full' }))
    assert.equal(full.email, null)
    assert.deepEqual(
      full.tags.map((t) => t.name),
      ['one', 'three', 'two'],
    )
    assert.deepEqual(
      full.groups.map((g) => g.name),
      ['North', 'South'],
    )
    assert.deepEqual(full, await run('crm_get_contact', { contact_id: row.id }))
  })

  it('unknown ids match nothing, even when they exceed bigint', async () => {
    const fixture = await loadFixture()
    const run = doAs(server(), fixture.key)
    for (const id of ['999999999', '9223372036854775807', '9223372036854775808', '9999999999999999999']) {
      assert.equal((await run('crm_search_contacts', { tag_ids: [id] })).total, 0)
      assert.equal((await run('crm_search_contacts', { group_ids: [id] })).total, 0)
      assert.deepEqual(
        (await run('crm_search_contacts', { group_ids: [id, fixture.groups[0]!], limit: 100 })).total,
        fixture.rows.filter((r) => r.groups.includes(0)).length,
      )
    }
    const call = callAs(server(), fixture.key)
    for (const field of ['tag_ids', 'group_ids']) {
      const { status, body } = await call('crm_search_contacts', {
        [field]: Array.from({ length: 51 }, (_, i) => i + 1),
      })
      assert.equal(status, 400)
      assert.equal(body.errors[0].pointer, `#/${field}`)
    }
  })
})

/** Characters with their case folding by Unicode's CaseFolding.txt. */
const folded: Record<string, string> = {
  a: 'a',
  A: 'a',
  ß: 'ss',
  ẞ: 'ss',
  s: 's',
  S: 's',
  ſ: 's',
  σ: 'σ',
  Σ: 'σ',
  ς: 'σ',
  i: 'i',
  I: 'i',
  ı: 'ı',
  İ: 'i\u0307',
  é: 'é',
  É: 'é',
  'e\u0301': 'é',
  e: 'e',
  ж: 'ж',
  Ж: 'ж',
  ﬁ: 'fi',
  k: 'k',
  '\u212a': 'k',
  µ: 'μ',
  Μ: 'μ',
  漢: '漢',
  '😀': '😀',
  𐐀: '𐐨',
  𐐨: '𐐨',
  '%': '%',
  _: '_',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '(': '(',
  '-': '-',
  '+': '+',
  '.': '.',
  ' ': ' ',
  '\n': '\n',
  '0': '0',
  '1': '1',
  '5': '5',
}
const characters = Object.keys(folded)
const foldAll = (text: readonly string[]): string => text.map((char) => folded[char]!).join('')
const text = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(...characters), { minLength, maxLength })
/** A substring of a text with each character in any case. */
const substring = (characterList: readonly string[]) =>
  fc
    .tuple(fc.nat(characterList.length - 1), fc.integer({ min: 1, max: 8 }))
    .chain(([from, length]) =>
      fc.tuple(
        ...characterList
          .slice(from, from + length)
          .map((char) => fc.constantFrom(...characters.filter((other) => folded[other] === folded[char]))),
      ),
    )

everyDatabase('Contact search by query', (server) => {
  it('matches a substring of name or phone, ignoring Unicode case, with no wildcards', async () => {
    const batch = fc.array(text(1, 12), { minLength: 20, maxLength: 40 })
    const scenario = batch.chain((names) =>
      fc.tuple(
        fc.constant(names),
        fc.array(fc.oneof(text(1, 4), fc.constantFrom(...names).chain(substring)), {
          minLength: 15,
          maxLength: 15,
        }),
      ),
    )
    await fc.assert(
      fc.asyncProperty(scenario, async ([contactNames, queries]) => {
        const workspace = await makeWorkspace(server())
        const run = doAs(server(), workspace.owner.key)
        const rows = contactNames.map((name, i) => ({
          name: foldAll(name),
          phone: `150${String(i * 7).padStart(4, '1')}5`,
        }))
        for (const [i, name] of contactNames.entries()) {
          await plantContact(
            server().db,
            workspace.id,
            { phone: rows[i]!.phone, name: name.join(''), email: null, attrs: {}, tagIds: [], groupIds: [] },
            toTime(i),
          )
        }
        for (const untrimmed of queries) {
          const query = untrimmed.slice(
            untrimmed.findIndex((c) => c.trim() !== ''),
            untrimmed.findLastIndex((c) => c.trim() !== '') + 1,
          )
          if (query.length === 0) continue
          const [foldedQuery, plain] = [foldAll(query), query.join('')]
          const digits = /^[\d\s+().\-/]+$/.test(plain) ? plain.replaceAll(/\D/g, '') : ''
          const expected = rows
            .filter(
              ({ name, phone }) =>
                name.includes(foldedQuery) ||
                phone.includes(plain) ||
                (digits !== '' && phone.includes(digits)),
            )
            .map((r) => r.phone)
          const found = await run('crm_search_contacts', { query: plain, limit: 100 })
          assert.deepEqual(
            found.data.map((c: { phone: string }) => c.phone).sort(),
            expected.sort(),
            JSON.stringify(plain),
          )
          assert.equal(found.total, expected.length)
        }
      }),
      { numRuns: 5 },
    )
  })

  it('has 1 to 100 code points after trimming', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    for (const query of ['', '   ', 'x'.repeat(101), '😀'.repeat(101)])
      assert.equal((await call('crm_search_contacts', { query })).status, 400)
    for (const query of ['x', ` ${'x'.repeat(100)} `, '😀'.repeat(100)])
      assert.equal((await call('crm_search_contacts', { query })).status, 200)
    assert.equal((await call('crm_search_contacts', { query: 'a\0b' })).status, 400)
  })
})

it('Folding text is idempotent', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => assert.equal(fold(fold(value)), fold(value))),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(text(0, 20), (chars) => assert.equal(fold(chars.join('')), foldAll(chars))),
    { numRuns: 2000 },
  )
})
