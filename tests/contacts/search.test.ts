import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { searchText, updateContactRow } from '../../storage/contacts.ts'
import { fold } from '../../storage/text.ts'
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
  created: string
  updated: string
}
type Planted = { key: string; rows: Row[]; tags: string[]; groups: string[] }

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
const names = [null, 'Ada', 'ada', 'Émile', 'Zoë', 'Ælf', '李']

/**
 * 64 contacts in which every combination of tags, groups and marks occurs, with ties in every sort key, and
 * some without name or phone.
 */
const plant = async (server: TestServer): Promise<Planted> => {
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
      created: at(i >> 2),
      updated: at((i * 5) % 16),
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
      row.created,
    )
    await updateContactRow(
      server.db,
      workspace.id,
      { id, phone: row.phone },
      { starred: row.starred, dnd: row.dnd },
      row.updated,
    )
    const hasNoPhone = i % 16 === 0
    // Contacts of web chat have no phone; no operation of today makes one.
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

const some = (n: number) => fc.subarray(Array.from({ length: n }, (_, i) => i))
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const conditions = fc.record({
  query: maybe(fc.constantFrom('ADA', 'a', 'é', 'ÆLF', 'zoë', '李', '0100', '1555 010 00', 'nobody')),
  tags: maybe(some(3)),
  groups: maybe(some(2)),
  starred: maybe(fc.boolean()),
  dnd: maybe(fc.boolean()),
  none: maybe(fc.boolean()),
})
type Conditions = typeof conditions extends fc.Arbitrary<infer T> ? T : never

const inputOf = (
  { query, tags, groups, starred, dnd, none }: Conditions,
  planted: Planted,
): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({
      query,
      tag_ids: tags?.map((n) => planted.tags[n]),
      group_ids: groups?.map((n) => planted.groups[n]),
      starred,
      dnd,
      not_in_any_group: none,
    }),
  ) as Record<string, unknown>

const holds =
  ({ query, tags, groups, starred, dnd, none }: Conditions) =>
  (row: Row): boolean =>
    (query === undefined ||
      (row.name ?? '').toLowerCase().includes(query.toLowerCase()) ||
      (row.phone ?? '').includes(query.replaceAll(' ', ''))) &&
    // No ids ask for nothing.
    (!tags?.length || tags.some((n) => row.tags.includes(n))) &&
    (!groups?.length || groups.some((n) => row.groups.includes(n))) &&
    (starred === undefined || row.starred === starred) &&
    (dnd === undefined || row.dnd === dnd) &&
    (none === undefined || (row.groups.length === 0) === none)

const bytes = (text: string | null) => Buffer.from(text ?? '')
const byId = (a: Row, b: Row): number => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)
const orders: Record<string, (a: Row, b: Row) => number> = {
  createdAt: (a, b) => a.created.localeCompare(b.created),
  updatedAt: (a, b) => a.updated.localeCompare(b.updated),
  id: byId,
  name: (a, b) => Buffer.compare(bytes(a.name?.toLowerCase() ?? null), bytes(b.name?.toLowerCase() ?? null)),
  phoneNumber: (a, b) => Buffer.compare(bytes(a.phone), bytes(b.phone)),
}
const sort = fc.record({
  field: fc.constantFrom(...Object.keys(orders)),
  direction: fc.constantFrom('asc', 'desc'),
})
const sorted = (
  rows: readonly Row[],
  { field, direction }: { field: string; direction: string },
): string[] => {
  const ascending = rows.toSorted((a, b) => orders[field]!(a, b) || byId(a, b)).map((row) => row.id)
  return direction === 'asc' ? ascending : ascending.reverse()
}
const idsOf = (body: { data: { id: string }[] }): string[] => body.data.map((row) => row.id)

everyDatabase('Contact search', (server) => {
  let planting: Promise<Planted> | undefined
  const planted = (): Promise<Planted> => (planting ??= plant(server()))

  it('returns the contacts that match all conditions, in the requested order, with an exact total', async () => {
    const world = await planted()
    const run = doAs(server(), world.key)
    await fc.assert(
      fc.asyncProperty(
        conditions,
        maybe(sort),
        fc.integer({ min: 1, max: 100 }),
        async (wanted, order, limit) => {
          const found = await run('crm_search_contacts', {
            ...inputOf(wanted, world),
            ...(order ? { sort: order } : {}),
            limit,
          })
          const expected = sorted(
            world.rows.filter(holds(wanted)),
            order ?? { field: 'createdAt', direction: 'desc' },
          )
          assert.deepEqual(idsOf(found), expected.slice(0, limit))
          assert.deepEqual([found.total, found.approximate], [expected.length, false])
          assert.equal(found.next_cursor === null, expected.length <= limit)
        },
      ),
      { numRuns: runs(40, 240) },
    )
  })

  it('sorts by every field in both directions, ties by id, missing values as empty text', async () => {
    const world = await planted()
    const run = doAs(server(), world.key)
    for (const field of Object.keys(orders))
      for (const direction of ['asc', 'desc']) {
        const found = await run('crm_search_contacts', { sort: { field, direction }, limit: 100 })
        assert.deepEqual(idsOf(found), sorted(world.rows, { field, direction }), `${field} ${direction}`)
      }
    assert.deepEqual(
      idsOf(await run('crm_search_contacts', { sort: { field: 'name' }, limit: 100 })),
      sorted(world.rows, { field: 'name', direction: 'desc' }),
    )
  })

  it('email, tags and groups are in full rows only', async () => {
    const world = await planted()
    const run = doAs(server(), world.key)
    const row = world.rows.find((r) => r.tags.length === 3 && r.groups.length === 2)!
    const ask = { tag_ids: world.tags, sort: { field: 'id' }, limit: 100 }
    type Found = { id: string; email?: string | null; tags: { name: string }[]; groups: { name: string }[] }
    const pick = (body: { data: Found[] }) => body.data.find((c) => c.id === row.id)!
    const summary = pick(await run('crm_search_contacts', ask))
    for (const field of ['email', 'tags', 'groups']) assert.ok(!(field in summary), field)
    const full = pick(await run('crm_search_contacts', { ...ask, detail: 'full' }))
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
    const world = await planted()
    const run = doAs(server(), world.key)
    for (const id of ['999999999', '9223372036854775807', '9223372036854775808', '9999999999999999999']) {
      assert.equal((await run('crm_search_contacts', { tag_ids: [id] })).total, 0)
      assert.equal((await run('crm_search_contacts', { group_ids: [id] })).total, 0)
      assert.deepEqual(
        (await run('crm_search_contacts', { group_ids: [id, world.groups[0]!], limit: 100 })).total,
        world.rows.filter((r) => r.groups.includes(0)).length,
      )
    }
    const call = callAs(server(), world.key)
    for (const field of ['tag_ids', 'group_ids']) {
      const { status, body } = await call('crm_search_contacts', {
        [field]: Array.from({ length: 51 }, (_, i) => i + 1),
      })
      assert.equal(status, 400)
      assert.equal(body.errors[0].pointer, `#/${field}`)
    }
  })
})

/**
 * Each character with what it is when case is ignored, by Unicode's CaseFolding.txt; those with equal
 * values are equal.
 */
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
const text = (least: number, most: number) =>
  fc.array(fc.constantFrom(...characters), { minLength: least, maxLength: most })
/** A part of a text with each character in any of its cases. */
const partOf = (whole: readonly string[]) =>
  fc
    .tuple(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 8 }))
    .chain(([from, length]) =>
      fc.tuple(
        ...whole
          .slice(from, from + length)
          .map((char) => fc.constantFrom(...characters.filter((other) => folded[other] === folded[char]))),
      ),
    )

everyDatabase('Contact search by query', (server) => {
  it('matches a substring of name or phone, ignoring Unicode case, with no wildcards', async () => {
    const batch = fc.array(text(1, 12), { minLength: 20, maxLength: 40 })
    const scene = batch.chain((made) =>
      fc.tuple(
        fc.constant(made),
        fc.array(fc.oneof(text(1, 4), fc.constantFrom(...made).chain(partOf)), {
          minLength: 15,
          maxLength: 15,
        }),
      ),
    )
    await fc.assert(
      fc.asyncProperty(scene, async ([made, queries]) => {
        const workspace = await makeWorkspace(server())
        const run = doAs(server(), workspace.owner.key)
        const rows = made.map((name, i) => ({
          name: foldAll(name),
          phone: `150${String(i * 7).padStart(4, '1')}5`,
        }))
        for (const [i, name] of made.entries()) {
          await plantContact(
            server().db,
            workspace.id,
            { phone: rows[i]!.phone, name: name.join(''), email: null, attrs: {}, tagIds: [], groupIds: [] },
            at(i),
          )
        }
        for (const raw of queries) {
          const query = raw.slice(
            raw.findIndex((c) => c.trim() !== ''),
            raw.findLastIndex((c) => c.trim() !== '') + 1,
          )
          if (query.length === 0) continue
          const [wanted, plain] = [foldAll(query), query.join('')]
          const digits = /^[\d\s+().\-/]+$/.test(plain) ? plain.replaceAll(/\D/g, '') : ''
          const expected = rows
            .filter(
              ({ name, phone }) =>
                name.includes(wanted) || phone.includes(plain) || (digits !== '' && phone.includes(digits)),
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
    fc.property(fc.string({ unit: 'binary' }), (any) => assert.equal(fold(fold(any)), fold(any))),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(text(0, 20), (chars) => assert.equal(fold(chars.join('')), foldAll(chars))),
    { numRuns: 2000 },
  )
})
