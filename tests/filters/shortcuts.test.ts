import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { extractRegexLiterals, foldRegex } from '../../storage/filters/patterns.ts'
import { filterStrategy } from '../../storage/filters/strategy.ts'
import { fold } from '../../storage/values/text.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import type { JsonObject } from './model.ts'

const value = (key: string, stringValue: JsonObject) => ({
  attributes: { some: { attributeName: { eq: key }, stringValue } },
})
const city = (test: JsonObject) => value('city', test)
const color = (test: JsonObject) => value('colors', test)
const tagged = (name: string) => ({ tags: { some: { name: { eq: name } } } })
const untagged = (...names: string[]) => ({ tags: { none: { name: { in: names } } } })

const people = [
  {
    name: 'Zoë §5',
    attributes: { city: 'Köln', colors: ['red', 'blue'], member: true },
    tags: ['VIP', 'lead'],
  },
  { name: 'Max Qvist', attributes: { city: 'köln', colors: ['red'] }, tags: ['VIP'] },
  { name: 'x1', attributes: { city: 'Oslo', member: false }, tags: ['lead'] },
  { name: 'Xaver', attributes: { city: `${'a'.repeat(210)}ß` } },
] as const

/** Filters, and the places in `people` of those who match. */
const filterCases: [JsonObject, number[]][] = [
  [{ and: [city({ eq: 'Köln' }), city({ eq: 'Oslo' })] }, []],
  [{ and: [city({ in: ['Köln', 'Oslo'] }), city({ eq: 'Oslo' })] }, [2]],
  [{ and: [color({ eq: 'red' }), color({ eq: 'blue' })] }, [0]],
  [color({ in: ['red', 'blue'], eq: 'blue' }), [0]],
  [{ and: [tagged('VIP'), untagged('VIP', 'lead')] }, []],
  [{ and: [tagged('VIP'), untagged('lead')] }, [1]],
  [{ and: [tagged('VIP'), { tags: { none: {} } }] }, []],
  [{ and: [tagged('VIP'), { not: tagged('VIP') }] }, []],
  [{ or: [{ and: [tagged('VIP'), { not: tagged('VIP') }] }, tagged('lead')] }, [0, 2]],
  [{ not: { and: [city({ eq: 'Köln' }), city({ eq: 'Oslo' })] } }, [0, 1, 2, 3]],
  [{ and: [tagged('nobody has this'), city({ eq: 'Oslo' })] }, []],
  [{ not: tagged('nobody has this') }, [0, 1, 2, 3]],
  [{ and: [{ createdAt: { gte: 'now' } }, { createdAt: { lt: '-1d' } }] }, []],
  [{ and: [city({ eq: 'Köln' }), color({ eq: 'red' }), tagged('VIP'), tagged('lead')] }, [0]],
  [{ and: [city({ eq: 'köln' }), color({ eq: 'red' })] }, [1]],
  [
    {
      and: [
        { attributes: { some: { attributeName: { eq: 'member' }, booleanValue: { ne: true } } } },
        tagged('lead'),
      ],
    },
    [2],
  ],
  [
    {
      or: [
        { attributes: { some: { attributeName: { eq: 'member' }, booleanValue: { eq: true } } } },
        city({ eq: 'Oslo' }),
      ],
    },
    [0, 2],
  ],
  [{ and: [tagged('VIP'), { createdAt: { gte: '-1d' } }, { name: { contains: 'q' } }] }, [1]],
  [{ and: [tagged('VIP'), { createdAt: { gte: '-1d' } }, untagged('lead')] }, [1]],
  [{ name: { startsWith: 'x' }, starred: { eq: true } }, []],
  [{ name: { contains: '§' } }, [0]],
  [{ name: { contains: 'QV' } }, [1]],
  [{ name: { startsWith: 'x' } }, [2, 3]],
  [{ name: { contains: '~|' } }, []],
  [{ name: { regex: '^[xyz]+[0-9]$' } }, [2]],
  [{ name: { regex: 'v[aeiou]r$' } }, [3]],
  [{ name: { regex: '^Zo' } }, [0]],
  [{ name: { regex: '^Zo.' } }, [0]],
  [city({ contains: 'ö' }), [0, 1]],
  [city({ contains: 'ß' }), [3]],
  [city({ endsWith: 'O' }), [2]],
  [city({ regex: '^[A-Z]' }), [0, 2]],
  [city({ contains: '§' }), []],
]

everyDatabase('Filters that an index or their form decides', (server) => {
  it('match the same contacts as conditions that are tested one by one', async () => {
    const { owner } = await makeWorkspace(server())
    const run = doAs(server(), owner.key)
    const options = ['red', 'blue'].map((color) => ({ label: color, value: color }))
    await run('crm_create_custom_field', { key: 'city', type: 'text' })
    await run('crm_create_custom_field', { key: 'colors', type: 'multiselect', options })
    await run('crm_create_custom_field', { key: 'member', type: 'boolean' })
    for (const [n, person] of people.entries())
      await run('crm_upsert_contact', { phone: `+1555010000${n}`, ...person })
    const names: string[] = people.map(({ name }) => name)
    for (const [filter, expected] of filterCases) {
      const { data, total, approximate } = await run('crm_search_contacts', { filter })
      const found = data.map(({ name }: { name: string }) => names.indexOf(name)).toSorted()
      assert.deepEqual(
        [found, total, approximate],
        [expected, expected.length, false],
        JSON.stringify(filter),
      )
    }
  })
})

everyDatabase('Pages of contacts of one kind', (server) => {
  const given = { ...filterStrategy }
  before(() => {
    Object.assign(filterStrategy, { maxExactTotal: 0, minSampleMatches: 1, maxFirstRows: 4 })
  })
  after(() => {
    Object.assign(filterStrategy, given)
  })

  it('begin far down the list, and hold contacts whose ids are out of order', async () => {
    const { id: workspaceId, owner } = await makeWorkspace(server())
    const run = doAs(server(), owner.key)
    const ids: string[] = []
    for (let n = 0; n < 12; n++) {
      const tags = [n < 6 ? 'old' : 'new']
      ids.push((await run('crm_upsert_contact', { phone: `+155501001${n + 10}`, tags })).id)
    }
    // By time: 8, 0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 1.
    const setCreation = (n: number, at: string) =>
      sql`update contacts set created_at = ${at}::timestamptz
        where workspace_id = ${workspaceId} and id = ${ids[n]}`.execute(server().db)
    for (const [n, minute] of [1, 59, 3, 4, 5, 6, 7, 8, 0, 10, 11, 12].entries())
      await setCreation(n, `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`)
    const list = async (tag: string, direction: 'asc' | 'desc'): Promise<number[]> => {
      const sort = { field: 'createdAt', direction }
      const { data, next_cursor: next } = await run('crm_search_contacts', {
        filter: tagged(tag),
        sort,
        limit: 2,
      })
      assert.notEqual(next, null)
      return data.map(({ id }: { id: string }) => ids.indexOf(id))
    }
    assert.deepEqual(await list('old', 'desc'), [1, 5])
    assert.deepEqual(await list('old', 'asc'), [0, 2])
    assert.deepEqual(await list('new', 'asc'), [8, 6])
    assert.deepEqual(await list('new', 'desc'), [11, 10])
    Object.assign(filterStrategy, { maxCountedContacts: 0, maxExactTotal: 10 })
    const { total, approximate } = await run('crm_search_contacts', { filter: untagged('old'), limit: 2 })
    assert.deepEqual([total, approximate], [6, false])
  })
})

describe('Regular expressions for folded text', () => {
  const atom = fc.constantFrom('a', 'Z', '1', ' ', '.', '[ab]', '[A-C0]', '[xyz]', 'e')
  const regexes = fc
    .record({
      start: fc.constantFrom('', '^'),
      atoms: fc.array(fc.tuple(atom, fc.constantFrom('', '', '', '+', '*', '?')), {
        minLength: 1,
        maxLength: 5,
      }),
      end: fc.constantFrom('', '$'),
    })
    .map(({ start, atoms, end }) => `${start}${atoms.map((parts) => parts.join('')).join('')}${end}`)
  const texts = fc.array(
    fc.constantFrom('a', 'A', 'b', 'B', 'c', '0', '1', 'e', 'E', 'z', 'Z', 'x', ' ', 'ß', '\u0301', '\u0308'),
    { maxLength: 6 },
  )

  it('match wherever the given expression does', () => {
    fc.assert(
      fc.property(regexes, texts, (regex, characters) => {
        const text = characters.join('')
        const folded = foldRegex(regex)!
        fc.pre(new RegExp(regex, 'su').test(text))
        const key = fold(text)
        assert.match(key, new RegExp(folded.source, 'su'))
        assert.match(`${key}\n15550100000`, new RegExp(folded.inLine, 'su'))
        if (folded.first) assert.ok(folded.first.includes(key[0]!), `${folded.first.join('')} ${key}`)
      }),
      { numRuns: runs(1000, 20_000) },
    )
  })

  it('have the literals that their matches have', () => {
    const letters = fc.constantFrom('a', 'Z', '1', 'e', 'ü', 'Ö', 'й', 'ß', 'σ', ' ', '.', '[ab]', '-')
    const expressions = fc
      .record({
        start: fc.constantFrom('', '^'),
        atoms: fc.array(fc.tuple(letters, fc.constantFrom('', '', '', '', '+', '*', '?')), {
          minLength: 3,
          maxLength: 6,
        }),
        end: fc.constantFrom('', '$'),
      })
      .map(({ start, atoms, end }) => `${start}${atoms.map((parts) => parts.join('')).join('')}${end}`)
    const around = fc.array(fc.constantFrom('a', 'E', 'ü', 'и', '\u0301', '\u0306', '\u0308', ' ', 'ß'), {
      maxLength: 2,
    })
    fc.assert(
      fc.property(
        expressions,
        around,
        around,
        fc.infiniteStream(fc.nat(2)),
        (regex, before, after, picks) => {
          const isOpen = (anchor: string) => !regex.includes(anchor)
          const body = regex
            .replaceAll(/[\^$]/g, '')
            .replaceAll(/(\[ab\]|.)([+*?]?)/gsu, (_, atom, quantifier) => {
              const text = atom === '.' ? 'e\u0301'[picks.next().value! % 2]! : atom === '[ab]' ? 'b' : atom
              return quantifier === ''
                ? text
                : text.repeat(picks.next().value! + (quantifier === '+' ? 1 : 0))
            })
          const text = `${isOpen('^') ? before.join('') : ''}${body}${isOpen('$') ? after.join('') : ''}`
          fc.pre(new RegExp(regex, 'su').test(text))
          const { runs: found, prefix } = extractRegexLiterals(regex)
          for (const run of found) assert.ok(fold(text).includes(run), `${regex} ${run} ${text}`)
          if (prefix !== undefined) assert.ok(fold(text).startsWith(prefix), `${regex} ${prefix} ${text}`)
        },
      ),
      { numRuns: runs(2000, 50_000) },
    )
    assert.deepEqual(extractRegexLiterals('Müller'), { runs: ['mülle'], prefix: undefined })
    assert.deepEqual(extractRegexLiterals('^Zoë Qvist$'), { runs: ['zoë', 'qvist'], prefix: 'zoë' })
  })

  it('are none for what is not parsed', () => {
    for (const regex of ['a|b', '(a)', '\\d', 'a{2}', '[^a]', '[a-Z]', '[[:alpha:]]', 'a+?', '', '^$'])
      assert.equal(foldRegex(regex), undefined, regex)
  })
})
