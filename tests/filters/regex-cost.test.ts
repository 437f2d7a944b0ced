import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import postgres from 'postgres'
import { filterLimits } from '../../catalog/filters.ts'
import { estimateRegex } from '../../server/domains/filters/regex-cost.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { callAs } from '../calls.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import { assertRefused } from './grammar-fixtures.ts'

/** What people look for in names, phones, addresses and codes. */
const ordinaryPatterns = [
  '^A.*a$',
  '(?i)^a\\d+(?=b)',
  '^\\+?\\d{7,15}$',
  '^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}$',
  '^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
  '^[A-Z]{2}\\d{2}[A-Z0-9]{11,30}$',
  '^(Mr|Mrs|Ms|Dr)\\.? ',
  '\\yVIP\\y',
  '^https?://([\\w-]+\\.)+[\\w-]+(/\\S*)?$',
  '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
  '^(?:\\d{1,3}\\.){3}\\d{1,3}$',
  '(.)\\1{2,}',
  "^[[:alpha:] .'-]{2,40}$",
  '^.{1,50}$',
  '^.{0,100}$',
  '^\\s|\\s$',
  '  +',
  '[^\\x20-\\x7e]',
  '^(?!test)',
  '(gmail|yahoo|hotmail|outlook)\\.(com|de|fr|co\\.uk)$',
  '^49(15|16|17)\\d{8,9}$',
  '^(1|44|49|33|39|34)\\d+',
  '^[A-Z][a-z]+ [A-Z][a-z]+$',
  '^[A-Z]{3}-\\d{4,6}$',
  'order[ _-]?#?\\d{3,10}',
  '(?i)\\m(test|demo|dummy|fake)\\M',
  '^([a-z0-9]+-)*[a-z0-9]+$',
  '^#[0-9a-fA-F]{6}$',
  '^(\\d{4}[ -]?){3}\\d{4}$',
  '^\\$?\\d{1,3}(,\\d{3})*(\\.\\d{2})?$',
  '[áéíóúñü]',
  '^(red|green|blue|black|white|yellow|orange|purple|brown|grey)$',
  '(?i)(street|st\\.|avenue|ave\\.|road|rd\\.) \\d+',
  '^\\w+( \\w+){0,4}$',
  '(?x) ^ \\d{3} - \\d{4} $ # phone',
  '***=a.b(c',
  '(?<=\\(0\\))\\d+',
  '\\m(\\w+)\\s+\\1\\M',
  '^(?=.*\\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$',
  '^[^@]+@(?!example)',
  '^[A-Z0-9]{17}$',
  '^(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d)?$',
  '[\\u0400-\\u04ff]+',
]

/** Expressions that take PostgreSQL from a second to minutes to compile, or to match. */
const hostilePatterns = [
  '((a{1,100}){1,100}){1,100}',
  '(?:(?:\\y){0,5})+',
  '(?:\\y){1,20}',
  '(?i)(?:(?:\\y)*(?:a)*){0,255}',
  '((?:\\d|\\s|$|[a-z]|\\y|é|\\W)){10}',
  '((?:(?:ab)*?){50})\\1{10}',
  '(?x)(a{255} ) {255}',
  '***:((x{99}){99})',
  '[[:alpha:]{]((x{99}){99})',
  '[\\]]((x{99}){99})',
  '(?b)\\(\\(x\\{99\\}\\)\\{99\\}\\)\\{99\\}',
  '^(x*)(x*)(x*)(x*)y\\1\\2\\3\\4y$',
]

everyDoor('Regular expressions', (test) => {
  test('too complex ones are refused before the database sees them, in every operation', async ({ call }) => {
    const [regex] = hostilePatterns
    const filter = { and: [{ name: { regex: '^A' } }, { tags: { some: { name: { regex } } } }] }
    for (const [op, more] of [
      ['crm_check_filter', {}],
      ['crm_search_contacts', {}],
      ['crm_count_contacts', {}],
      ['crm_create_saved_filter', { name: 'x' }],
      ['crm_create_saved_filter', { name: 'x', dry_run: true, count: true }],
    ] as const) {
      const reply = await call(op, { filter, ...more })
      assertRefused(reply, {
        reason: 'regex_too_complex',
        pointer: '#/filter/and/1/tags/some/name/regex',
        code: 'regex_too_complex',
      })
      assert.ok(reply.body.errors[0].fix.includes('contains'), reply.text)
      assert.ok(reply.body.detail.includes(regex), reply.text)
    }
  })
})

everyDatabase('Regular expressions', (server) => {
  it('ordinary ones are accepted, alone and several in one filter', async () => {
    const call = callAs(server(), (await makeWorkspace(server())).owner.key)
    for (const regex of ordinaryPatterns) {
      const { status, text } = await call('crm_check_filter', { filter: { name: { regex } } })
      assert.equal(status, 200, `${regex}: ${text}`)
    }
    for (let from = 0; from < ordinaryPatterns.length; from += 12) {
      const or = ordinaryPatterns.slice(from, from + 12).map((regex) => ({ name: { regex } }))
      const { status, text } = await call('crm_count_contacts', { filter: { or } })
      assert.equal(status, 200, text)
    }
  })

  it('hostile ones are refused, and many that are each within the limit', async () => {
    const call = callAs(server(), (await makeWorkspace(server())).owner.key)
    for (const regex of hostilePatterns) {
      const { status, body } = await call('crm_check_filter', { filter: { name: { regex } } })
      assert.deepEqual([status, body.reason], [400, 'regex_too_complex'], regex)
    }
    const or = Array.from({ length: 30 }, (_, n) => ({ name: { regex: `^(?:[a-z]${n}){50}$` } }))
    const { status, body } = await call('crm_search_contacts', { filter: { or } })
    assert.deepEqual([status, body.reason], [400, 'regex_too_complex'])
    // The same expression counts once.
    const same = Array.from({ length: 30 }, () => or[0])
    assert.equal((await call('crm_search_contacts', { filter: { or: same } })).status, 200)
  })
})

const atoms = [
  'a',
  'ab',
  '.',
  '\\w',
  '\\S',
  '[a-z]',
  '[^a]',
  '[[:alpha:]]',
  'é',
  '',
  '\\m',
  '\\y',
  '^',
  '$',
  '(?:)',
]
const quantifiers = [
  '',
  '*',
  '+',
  '?',
  '{2}',
  '{3,}',
  '{0,5}',
  '{10}',
  '{1,20}',
  '{50}',
  '{0,255}',
  '*?',
  '{2,10}?',
  '{0}',
]

/** Expressions of every construct, nested and repeated as a hostile client would. */
const { expression } = fc.letrec<Record<'expression' | 'group', string>>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.tuple(fc.constantFrom(...atoms), fc.constantFrom(...quantifiers)).map((parts) => parts.join('')),
    fc.tuple(tie('group'), fc.constantFrom(...quantifiers)).map((parts) => parts.join('')),
    fc.array(tie('expression'), { minLength: 2, maxLength: 3 }).map((parts) => parts.join('')),
    fc.tuple(tie('group'), fc.constantFrom('\\1', '\\1*', '\\1{10}')).map((parts) => parts.join('')),
  ),
  group: fc
    .tuple(
      fc.constantFrom('(', '(?:', '(?:', '(?=', '(?!', '(?<=', '(?<!'),
      fc.array(tie('expression'), { minLength: 1, maxLength: 5 }),
    )
    .map(([open, branches]) => `${open}${branches.join('|')})`),
}))

const url = process.env.WCRM_TEST_POSTGRES_URL

describe('The estimate of a regular expression', () => {
  it('bounds the time that PostgreSQL takes to compile it', { skip: url === undefined }, async () => {
    const client = postgres(url!, {
      max: 1,
      onnotice: () => {},
      connection: { statement_timeout: 1000 } as never,
    })
    try {
      await fc.assert(
        fc.asyncProperty(expression, async (pattern) => {
          const { cost, backReferences } = estimateRegex(pattern)
          fc.pre(pattern.length <= filterLimits.regex)
          if (cost > filterLimits.regexCost || backReferences > filterLimits.regexBackReferences) return
          try {
            await client`select '' ~ ${pattern}`
          } catch (error) {
            assert.equal((error as { code: string }).code, '2201B', `${cost} ${pattern}`)
          }
        }),
        { numRuns: runs(2000, 30_000) },
      )
    } finally {
      await client.end()
    }
  })
})
