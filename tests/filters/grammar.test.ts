import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { assertProblem } from '../problems.ts'
import { ALL_OPERATORS, fieldCases, toOperand } from './grammar-cases.ts'
import { assertRefused, createFieldOfEveryType, type Json, setUp } from './grammar-fixtures.ts'

/** Returns the JSON Pointer that follows the last key of each object. */
const toPointer = (filter: unknown): string =>
  filter !== null && typeof filter === 'object' && !Array.isArray(filter)
    ? `/${Object.keys(filter).at(-1)}${toPointer(Object.values(filter).at(-1))}`
    : ''

/** Filters with a wrong name or node, where the error points, and what its fix says. */
const invalidNodes: [filter: Json, pointer: string, fix: RegExp][] = [
  [{ nmae: { eq: 'x' } }, '/nmae', /mean name\?/],
  [{ phone: { eq: '1' } }, '/phone', /mean phoneNumber\?/],
  [{ created_at: { gt: '-1d' } }, '/created_at', /mean createdAt\?/],
  [{ name: { equals: 'x' } }, '/name/equals', /mean eq\?/],
  [{ name: { $in: ['x'] } }, '/name/$in', /mean in\?/],
  [{ name: 'Ada' }, '/name', /"eq"/],
  [{ name: ['Ada'] }, '/name', /"in"/],
  [{ name: { eq: null } }, '/name/eq', /isNull/],
  [{ and: [] }, '/and', /"and"/],
  [{ or: {} }, '/or', /"or"/],
  [{ not: [] }, '/not', /field/],
  [{ and: [1] }, '/and/0', /field/],
  [{ tags: {} }, '/tags', /some/],
  [{ tags: { name: { eq: 'VIP' } } }, '/tags/name', /"some": \{"name"/],
  [{ tags: { any: {} } }, '/tags/any', /mean some\?/],
  [{ attributes: { every: {} } }, '/attributes/every', /some, none/],
  [{ attributes: { some: {} } }, '/attributes/some/attributeName', /key/],
  [{ attributes: { some: { attributeName: 'plan' } } }, '/attributes/some/attributeName', /"eq"/],
  [
    { attributes: { some: { attributeName: { eq: 'plann' } } } },
    '/attributes/some/attributeName/eq',
    /mean plan\?/,
  ],
  [
    { broadcasts: { some: { message_status: { eq: 'not_respond' } } } },
    '/broadcasts/some/message_status/eq',
    /mean not_responded\?/,
  ],
  [{ createdAt: { gte: 'start_of_moth' } }, '/createdAt/gte', /mean start_of_month\?/],
  [{ createdAt: { gte: '7d' } }, '/createdAt/gte', /mean -7d\?/],
  [{ savedFilter: { ne: '5' } }, '/savedFilter/ne', /eq/],
  [{ constructor: { eq: 1 } }, '/constructor', /Use one of/],
  [{ toString: {} }, '/toString', /Use one of/],
]

const keys = fc.constantFrom(
  ...ALL_OPERATORS,
  'and',
  'or',
  'not',
  'some',
  'none',
  'every',
  'attributeName',
  'savedFilter',
  'tags',
  'attributes',
  'conversations',
  'broadcasts',
  'createdAt',
  'phoneNumber',
  'name',
  'id',
  'email',
  'stringValue',
  'numberValue',
  'dateValue',
  'message_status',
  'sentAt',
  '__proto__',
  'constructor',
  '',
)
const operands = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -0,
    1e308,
    '',
    '-7d',
    'end_of_year',
    '-999999y',
    '+999999h',
    '2026-03-29T02:30',
    '9999-12-31',
    '0001-01-01',
    'f_date',
    'f_phone',
    '+1 555',
    '(',
    '[[:foo:]]',
    'a{999}',
    '***=x',
    '(?=',
    '\\',
    '%',
    '9223372036854775808',
    '1e999',
    '\0',
    '\ud800',
  ),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.double(),
  fc.jsonValue({ maxDepth: 2 }),
)
const arbitraryNode = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 9 },
    operands,
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(keys, tie('node'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).node
const arbitraryTests = fc
  .tuple(
    fc.constantFrom(...fieldCases),
    fc.constantFrom(...ALL_OPERATORS),
    fc.oneof(operands, fc.array(operands, { maxLength: 3 }), arbitraryNode),
  )
  .map(([{ wrap }, op, value]) => wrap({ [op]: value }))

everyDatabase('Filter grammar', (server) => {
  it('accepts exactly the operators of each field and validates their operands', async () => {
    const { call, check } = await setUp(server())
    await createFieldOfEveryType(call)
    for (const { name, wrap, operators, good, bad } of fieldCases) {
      const valid = operators.split(' ')
      for (const op of ALL_OPERATORS) {
        const filter = wrap({ [op]: toOperand(op, good) })
        const reply = await check(filter)
        if (valid.includes(op)) assert.equal(reply.status, 200, `${name} ${op}: ${reply.text}`)
        else {
          assertRefused(reply, { pointer: `#/filter${toPointer(filter)}`, code: 'unknown_operator' })
          assert.deepEqual(reply.body.errors[0].allowed, valid, name)
        }
      }
      for (const value of [...bad, null, {}]) {
        const reply = await check(wrap({ eq: value }))
        assert.equal(reply.status, 400, `${name} ${JSON.stringify(value)}: ${reply.text}`)
        assert.match(reply.body.errors[0].pointer, /\/eq$/)
      }
      for (const test of [{}, null, good, [good]])
        assert.equal((await check(wrap(test as Json))).status, 400, `${name} ${JSON.stringify(test)}`)
      for (const list of valid.filter((op) => op === 'in' || op === 'notIn')) {
        for (const value of [[], good, null])
          assert.equal((await check(wrap({ [list]: value }))).status, 400, `${name} ${list}`)
      }
      if (valid.includes('between'))
        for (const value of [[], [good], [good, good, good], good])
          assert.equal((await check(wrap({ between: value }))).status, 400, `${name} between`)
      if (valid.includes('isNull'))
        for (const value of ['true', 1, null, []])
          assert.equal((await check(wrap({ isNull: value }))).status, 400, `${name} isNull`)
    }
  })

  it('refuses unknown fields, operators and quantifiers with a pointer and a suggestion', async () => {
    const { check, call } = await setUp(server())
    await call('crm_create_custom_field', { key: 'plan', type: 'text' })
    for (const [filter, pointer, fix] of invalidNodes) {
      const reply = await check(filter)
      assertRefused(reply, { pointer: `#/filter${pointer}` })
      assert.match(reply.body.errors[0].fix, fix, reply.text)
    }
    const reply = await check({ nmae: { eq: 1 }, or: [{ id: { eq: 'x' } }, { dnd: { is: true } }] })
    assert.deepEqual(
      reply.body.errors.map((e: { pointer: string }) => e.pointer),
      ['#/filter/nmae', '#/filter/or/0/id/eq', '#/filter/or/1/dnd/is'],
    )
  })

  it('refuses a custom field hidden from the staff member as an unknown one', async () => {
    const { workspace, check, call } = await setUp(server())
    await call('crm_create_custom_field', { key: 'plan', type: 'text' })
    await call('crm_create_custom_field', { key: 'salary', type: 'int', visibility: 'manager_only' })
    const agent = callAs(server(), (await workspace.staff({ role: 'agent' })).key)
    const filter = { attributes: { some: { attributeName: { eq: 'salary' } } } }
    assert.equal((await check(filter)).status, 200)
    const reply = await agent('crm_check_filter', { filter })
    assertRefused(reply, { pointer: '#/filter/attributes/some/attributeName/eq', code: 'unknown_attribute' })
    assert.deepEqual(reply.body.errors[0].allowed, ['email', 'plan'])
    const unknown = await agent('crm_check_filter', {
      filter: { attributes: { some: { attributeName: { eq: 'salarx' } } } },
    })
    assert.equal(unknown.text.replaceAll(/req_\w+/g, ''), reply.text.replaceAll(/req_\w+/g, ''))
  })

  it('answers arbitrary JSON with a result or a valid problem', async () => {
    const { call } = await setUp(server())
    await createFieldOfEveryType(call)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(arbitraryTests, arbitraryNode), { minLength: 20, maxLength: 20 }),
        async (filters) => {
          await Promise.all(
            filters.map(async (filter) => {
              const reply = await call('crm_check_filter', { filter })
              if (reply.status !== 200) {
                assert.ok([400, 404].includes(reply.status), `${JSON.stringify(filter)} ${reply.text}`)
                assertProblem(reply, server().url)
                return
              }
              const again = await call('crm_check_filter', { filter: reply.body.filter })
              assert.deepEqual(
                { ...again.body, warnings: [] },
                { ...reply.body, resolved_dates: [], warnings: [] },
                JSON.stringify(filter),
              )
              assert.match(reply.body.explanation, /^(All contacts|Contacts [^]+)\.$/)
            }),
          )
        },
      ),
      { numRuns: runs(8, 120) },
    )
  })
})
