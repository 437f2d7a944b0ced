import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { customFieldTypes, optionTypes } from '../../catalog/custom-fields.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

type Json = Record<string, unknown>

// What the contract (section 4) says may stand where.
const TEXT = 'eq ne in notIn contains notContains startsWith endsWith regex isNull'
const ID = 'eq ne in notIn'
const REF = 'eq ne in notIn isNull'
const TIME = 'eq ne gt gte lt lte between isNull'
const NUMBER = 'eq ne gt gte lt lte between in notIn isNull'
const FLAG = 'eq ne isNull'
const every = [...new Set(`${TEXT} ${TIME} ${NUMBER}`.split(' '))]
const at =
  (field: string) =>
  (test: Json): Json => ({ [field]: test })
const within =
  (relation: string, quantifier: string, field: string, more: Json = {}) =>
  (test: Json): Json => ({ [relation]: { [quantifier]: { ...more, [field]: test } } })
const valueOf = (field: string, key: string) =>
  within('attributes', 'some', field, { attributeName: { eq: key } })
const places: { name: string; of: (test: Json) => Json; operators: string; good: unknown; bad: unknown[] }[] =
  [
    ...['name', 'phoneNumber', 'email', 'chatappUserId', 'webVisitorId'].map((field) => ({
      name: field,
      of: at(field),
      operators: TEXT,
      good: '555',
      bad: [5, true, {}],
    })),
    {
      name: 'id',
      of: at('id'),
      operators: ID,
      good: '7',
      bad: ['Ada', '0', '07', '-1', 1.5, 0, -3, true, '12345678901234567890'],
    },
    ...['createdAt', 'updatedAt', 'lastActivityAt'].map((field) => ({
      name: field,
      of: at(field),
      operators: TIME,
      good: '-7d',
      bad: [
        'soon',
        7,
        true,
        '2026-02-30',
        '2026-13-01T00:00:00Z',
        '7d',
        '-7x',
        '-9999999d',
        '+999999y',
        '0000-12-31',
        '',
      ],
    })),
    ...['dnd', 'starred'].map((field) => ({
      name: field,
      of: at(field),
      operators: FLAG,
      good: true,
      bad: ['true', 1, 0],
    })),
    ...['tags', 'groups'].flatMap((relation) =>
      ['some', 'none', 'every'].flatMap((quantifier) => [
        {
          name: `${relation}.${quantifier}.id`,
          of: within(relation, quantifier, 'id'),
          operators: REF,
          good: 7,
          bad: ['VIP', true],
        },
        {
          name: `${relation}.${quantifier}.name`,
          of: within(relation, quantifier, 'name'),
          operators: TEXT,
          good: 'VIP',
          bad: [7],
        },
      ]),
    ),
    { name: 'stringValue', of: valueOf('stringValue', 'f_text'), operators: TEXT, good: 'a', bad: [7] },
    {
      name: 'numberValue',
      of: valueOf('numberValue', 'f_decimal'),
      operators: NUMBER,
      good: '12.50',
      bad: ['x', '1e9999', '', '1,5', true],
    },
    {
      name: 'booleanValue',
      of: valueOf('booleanValue', 'f_checkbox'),
      operators: FLAG,
      good: false,
      bad: ['no', 1],
    },
    {
      name: 'dateValue',
      of: valueOf('dateValue', 'f_date'),
      operators: TIME,
      good: '2026-10-01',
      bad: ['1 October', 20261001],
    },
    {
      name: 'state',
      of: within('conversations', 'some', 'state'),
      operators: ID,
      good: 'open',
      bad: ['opened', true],
    },
    ...['channelId', 'assignedStaffId', 'assignedTeamId'].map((field) => ({
      name: field,
      of: within('conversations', 'none', field),
      operators: REF,
      good: '3',
      bad: ['Ada'],
    })),
    ...['createdAt', 'lastActivityAt'].map((field) => ({
      name: `conversations.${field}`,
      of: within('conversations', 'some', field),
      operators: TIME,
      good: 'start_of_week',
      bad: ['week'],
    })),
    {
      name: 'unreadCount',
      of: within('conversations', 'some', 'unreadCount'),
      operators: NUMBER,
      good: 3,
      bad: ['three'],
    },
    {
      name: 'broadcasts.id',
      of: within('broadcasts', 'some', 'id'),
      operators: REF,
      good: '5',
      bad: ['spring'],
    },
    {
      name: 'message_status',
      of: within('broadcasts', 'none', 'message_status'),
      operators: ID,
      good: 'not_responded',
      bad: ['seen'],
    },
    {
      name: 'sentAt',
      of: within('broadcasts', 'some', 'sentAt'),
      operators: TIME,
      good: 'yesterday',
      bad: ['never'],
    },
  ]
const operand = (op: string, value: unknown): unknown =>
  op === 'isNull' ? true : op === 'in' || op === 'notIn' ? [value] : op === 'between' ? [value, value] : value
const pointerTo = (filter: unknown): string =>
  filter !== null && typeof filter === 'object' && !Array.isArray(filter)
    ? `/${Object.keys(filter).at(-1)}${pointerTo(Object.values(filter).at(-1))}`
    : ''

const make = async (server: TestServer, timezone = 'UTC') => {
  const workspace = await makeWorkspace(server, { timezone })
  const call = callAs(server, workspace.owner.key)
  return {
    workspace,
    call,
    run: doAs(server, workspace.owner.key),
    check: async (filter: unknown) => await call('crm_check_filter', { filter }),
  }
}

const fieldOfEveryType = async (call: ReturnType<typeof callAs>): Promise<void> => {
  for (const type of customFieldTypes) {
    await call('crm_create_custom_field', {
      key: `f_${type}`,
      label: `Field ${type}`,
      type,
      ...(optionTypes.includes(type)
        ? {
            options: [
              { label: 'Gold plan', value: 'gold' },
              { label: 'Basic', value: 'basic' },
            ],
          }
        : {}),
    })
  }
}

const refused = (
  reply: Reply,
  expected: { status?: number; reason?: string; pointer: string; code?: string },
): void => {
  assert.equal(reply.status, expected.status ?? 400, reply.text)
  assert.equal(reply.body.reason, expected.reason, reply.text)
  assert.equal(reply.body.errors[0].pointer, expected.pointer, reply.text)
  if (expected.code) assert.equal(reply.body.errors[0].code, expected.code, reply.text)
  assert.ok(reply.body.errors[0].fix, reply.text)
}

everyDatabase('The grammar of contact filters', (server) => {
  it('takes the operators of each field, and no others', async () => {
    const { call, check } = await make(server())
    await fieldOfEveryType(call)
    for (const { name, of, operators, good, bad } of places) {
      const valid = operators.split(' ')
      for (const op of every) {
        const filter = of({ [op]: operand(op, good) })
        const reply = await check(filter)
        if (valid.includes(op)) assert.equal(reply.status, 200, `${name} ${op}: ${reply.text}`)
        else {
          refused(reply, { pointer: `#/filter${pointerTo(filter)}`, code: 'unknown_operator' })
          assert.deepEqual(reply.body.errors[0].allowed, valid, name)
        }
      }
      for (const value of [...bad, null, {}]) {
        const reply = await check(of({ eq: value }))
        assert.equal(reply.status, 400, `${name} ${JSON.stringify(value)}: ${reply.text}`)
        assert.match(reply.body.errors[0].pointer, /\/eq$/)
      }
      for (const test of [{}, null, good, [good]])
        assert.equal((await check(of(test as Json))).status, 400, `${name} ${JSON.stringify(test)}`)
      for (const list of valid.filter((op) => op === 'in' || op === 'notIn')) {
        for (const value of [[], good, null])
          assert.equal((await check(of({ [list]: value }))).status, 400, `${name} ${list}`)
      }
      if (valid.includes('between'))
        for (const value of [[], [good], [good, good, good], good])
          assert.equal((await check(of({ between: value }))).status, 400, `${name} between`)
      if (valid.includes('isNull'))
        for (const value of ['true', 1, null, []])
          assert.equal((await check(of({ isNull: value }))).status, 400, `${name} isNull`)
    }
  })

  it('refuses what is no node, no quantifier, no field, and says what was meant', async () => {
    const { check, call } = await make(server())
    await call('crm_create_custom_field', { key: 'plan', type: 'text' })
    const cases: [filter: Json, pointer: string, fix: RegExp][] = [
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
    for (const [filter, pointer, fix] of cases) {
      const reply = await check(filter)
      refused(reply, { pointer: `#/filter${pointer}` })
      assert.match(reply.body.errors[0].fix, fix, reply.text)
    }
    const many = await check({ nmae: { eq: 1 }, or: [{ id: { eq: 'x' } }, { dnd: { is: true } }] })
    assert.deepEqual(
      many.body.errors.map((e: { pointer: string }) => e.pointer),
      ['#/filter/nmae', '#/filter/or/0/id/eq', '#/filter/or/1/dnd/is'],
    )
  })

  it('knows only the custom fields that the staff member sees', async () => {
    const { workspace, check, call } = await make(server())
    await call('crm_create_custom_field', { key: 'plan', type: 'text' })
    await call('crm_create_custom_field', { key: 'salary', type: 'int', visibility: 'manager_only' })
    const agent = callAs(server(), (await workspace.staff({ role: 'agent' })).key)
    const filter = { attributes: { some: { attributeName: { eq: 'salary' } } } }
    assert.equal((await check(filter)).status, 200)
    const reply = await agent('crm_check_filter', { filter })
    refused(reply, { pointer: '#/filter/attributes/some/attributeName/eq', code: 'unknown_attribute' })
    assert.deepEqual(reply.body.errors[0].allowed, ['email', 'plan'])
    const other = await agent('crm_check_filter', {
      filter: { attributes: { some: { attributeName: { eq: 'salarx' } } } },
    })
    assert.equal(other.text.replaceAll(/req_\w+/g, ''), reply.text.replaceAll(/req_\w+/g, ''))
  })

  it("is refused on no account with a fault of the server's", async () => {
    const { call } = await make(server())
    await fieldOfEveryType(call)
    const words = fc.constantFrom(
      ...every,
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
    const values = fc.oneof(
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
    const node = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 9 },
        values,
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(words, tie('node'), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).node
    const spoilt = fc
      .tuple(
        fc.constantFrom(...places),
        fc.constantFrom(...every),
        fc.oneof(values, fc.array(values, { maxLength: 3 }), node),
      )
      .map(([place, op, value]) => place.of({ [op]: value }))
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(spoilt, node), { minLength: 20, maxLength: 20 }),
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
      { numRuns: 60 },
    )
  })
})

const leaf = { name: { eq: 'x' } }
const nested = (levels: number, inner: unknown = leaf): unknown =>
  levels === 0 ? inner : { not: nested(levels - 1, inner) }
const sized = (bytes: number): Json => {
  const filter = { name: { in: [] as string[] } }
  const room = bytes - JSON.stringify(filter).length
  // Each of these items takes 103 bytes with its quotes and comma, but the first has no comma.
  const whole = Math.floor((room + 1) / 103) - 1
  filter.name.in = Array.from({ length: whole }, (_, n) => `${n}`.padStart(100, 'x'))
  filter.name.in.push('y'.repeat(room + 1 - whole * 103 - 3))
  return filter
}

everyDoor('Limits of contact filters', (test) => {
  test('each has an edge and a reason', async ({ call }) => {
    const check = async (filter: unknown) => await call('crm_check_filter', { filter })
    const edges: [reason: string, within: unknown, beyond: unknown, pointer: string][] = [
      ['filter_too_deep', nested(7), nested(8), '#/filter/not/not/not/not/not/not/not/not/name'],
      [
        'filter_too_deep',
        nested(6, { tags: { some: { id: { eq: 1 } } } }),
        nested(7, { tags: { some: { id: { eq: 1 } } } }),
        '#/filter/not/not/not/not/not/not/not/tags/some/id',
      ],
      [
        'filter_too_many_conditions',
        { and: Array.from({ length: 60 }, () => leaf) },
        { and: Array.from({ length: 61 }, () => leaf) },
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
      ['filter_too_large', sized(16_384), sized(16_385), '#/filter'],
    ]
    for (const [reason, inside, beyond, pointer] of edges) {
      const good = await check(inside)
      assert.equal(good.status, 200, `${reason}: ${good.text}`)
      refused(await check(beyond), { reason, pointer, code: reason })
    }
    assert.equal(JSON.stringify(sized(16_384)).length, 16_384)
    const deepest = (await check(nested(7))).body
    assert.deepEqual([deepest.depth, deepest.conditions], [8, 1])
    const several = (
      await check({
        name: { contains: 'a', startsWith: 'b' },
        attributes: { some: { attributeName: { eq: 'email' }, stringValue: { isNull: false } } },
      })
    ).body
    assert.deepEqual([several.depth, several.conditions], [2, 4])
  })

  test("a regular expression is PostgreSQL's to judge, also in a rehearsal", async ({ call }) => {
    const filter = {
      and: [leaf, { name: { regex: '^A.*a$' } }, { tags: { none: { name: { regex: 'a(b' } } } }],
    }
    refused(await call('crm_check_filter', { filter }), {
      reason: 'filter_regex_invalid',
      pointer: '#/filter/and/2/tags/none/name/regex',
    })
    refused(await call('crm_create_saved_filter', { name: 'x', filter, dry_run: true }), {
      reason: 'filter_regex_invalid',
      pointer: '#/filter/and/2/tags/none/name/regex',
    })
    assert.equal(
      (await call('crm_check_filter', { filter: { name: { regex: '(?i)^a\\d+(?=b)' } } })).status,
      200,
    )
  })

  test('a filter that looks mistaken is answered with warnings, and said in words', async ({ call }) => {
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

everyDoor(
  'Contact filters switched off',
  (test) => {
    test('are refused wherever one is used', async ({ call }) => {
      const uses: [string, Json][] = [
        ['crm_check_filter', { filter: {} }],
        ['crm_search_contacts', { filter: {} }],
        ['crm_search_contacts', { saved_filter_id: '1' }],
        ['crm_count_contacts', { filter: {} }],
        ['crm_count_contacts', { saved_filter_id: 1 }],
        ['crm_create_saved_filter', { name: 'x', filter: {} }],
      ]
      for (const [op, input] of uses) {
        const reply = await call(op, input)
        assert.deepEqual(
          [reply.status, reply.body.code, reply.body.reason],
          [503, 'service_unconfigured', 'advanced_filter_disabled'],
          op,
        )
      }
      for (const op of ['crm_search_contacts', 'crm_count_contacts'])
        assert.equal((await call(op)).status, 200)
    })
  },
  { advancedFilters: 'off' },
)

let now = '2026-10-01T09:30:00.000Z'

everyDatabase(
  'Dates of contact filters',
  (server) => {
    /** The instants that these mean in a zone at a time. */
    const meanings = async (timezone: string, time: string, dates: Record<string, string>) => {
      now = time
      const { check } = await make(server(), timezone)
      for (const [date, expected] of Object.entries(dates)) {
        const { status, body, text } = await check({ createdAt: { gte: date } })
        assert.equal(status, 200, `${date}: ${text}`)
        assert.equal(body.filter.createdAt.gte, expected, `${date} in ${timezone} at ${time}`)
        const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(date) && date.length > 10
        assert.deepEqual(
          body.resolved_dates,
          hasZone ? [] : [{ path: '#/filter/createdAt/gte', input: date, value: expected }],
        )
      }
    }

    it('are instants, or are read in the zone of the workspace', async () => {
      await meanings('UTC', '2026-10-01T09:30:00.000Z', {
        now: '2026-10-01T09:30:00.000Z',
        today: '2026-10-01T00:00:00.000Z',
        yesterday: '2026-09-30T00:00:00.000Z',
        '-7d': '2026-09-24T09:30:00.000Z',
        '+3d': '2026-10-04T09:30:00.000Z',
        '-90m': '2026-10-01T08:00:00.000Z',
        '-25h': '2026-09-30T08:30:00.000Z',
        '+2w': '2026-10-15T09:30:00.000Z',
        '-1mo': '2026-09-01T09:30:00.000Z',
        '-1y': '2025-10-01T09:30:00.000Z',
        '-0d': '2026-10-01T09:30:00.000Z',
        start_of_day: '2026-10-01T00:00:00.000Z',
        end_of_day: '2026-10-01T23:59:59.999Z',
        start_of_week: '2026-09-28T00:00:00.000Z',
        end_of_week: '2026-10-04T23:59:59.999Z',
        start_of_month: '2026-10-01T00:00:00.000Z',
        end_of_month: '2026-10-31T23:59:59.999Z',
        start_of_quarter: '2026-10-01T00:00:00.000Z',
        end_of_quarter: '2026-12-31T23:59:59.999Z',
        start_of_year: '2026-01-01T00:00:00.000Z',
        end_of_year: '2026-12-31T23:59:59.999Z',
        '2026-10-01T09:30:00Z': '2026-10-01T09:30:00.000Z',
        '2026-10-01T09:30+02:00': '2026-10-01T07:30:00.000Z',
        '2026-10-01 09:30:15.1239-0530': '2026-10-01T15:00:15.123Z',
        '2026-10-01': '2026-10-01T00:00:00.000Z',
        '2026-10-01T09:30': '2026-10-01T09:30:00.000Z',
        '0001-01-01': '0001-01-01T00:00:00.000Z',
        '9999-12-31T23:59:59.999Z': '9999-12-31T23:59:59.999Z',
      })
      await meanings('Asia/Kathmandu', '2026-09-30T18:30:00.000Z', {
        today: '2026-09-30T18:15:00.000Z',
        start_of_month: '2026-09-30T18:15:00.000Z',
        end_of_day: '2026-10-01T18:14:59.999Z',
        '2026-10-01T12:00': '2026-10-01T06:15:00.000Z',
        '-1d': '2026-09-29T18:30:00.000Z',
      })
    })

    it('stay within a month, and go by the local calendar', async () => {
      await meanings('UTC', '2028-03-31T12:00:00.000Z', {
        '-1mo': '2028-02-29T12:00:00.000Z',
        '+1mo': '2028-04-30T12:00:00.000Z',
        '-13mo': '2027-02-28T12:00:00.000Z',
        start_of_quarter: '2028-01-01T00:00:00.000Z',
      })
      await meanings('UTC', '2028-02-29T12:00:00.000Z', {
        '-1y': '2027-02-28T12:00:00.000Z',
        end_of_month: '2028-02-29T23:59:59.999Z',
      })
      await meanings('Pacific/Auckland', '2026-12-31T12:00:00.000Z', {
        start_of_year: '2026-12-31T11:00:00.000Z',
        yesterday: '2026-12-30T11:00:00.000Z',
      })
    })

    it('know when the clocks change', async () => {
      // In Berlin 02:00 to 03:00 is skipped on 29 March 2026, and comes twice on 25 October.
      await meanings('Europe/Berlin', '2026-03-30T00:30:00.000Z', {
        '2026-03-29T02:30': '2026-03-29T01:30:00.000Z',
        '2026-03-29': '2026-03-28T23:00:00.000Z',
        '2026-03-30': '2026-03-29T22:00:00.000Z',
        '-1d': '2026-03-29T01:30:00.000Z',
        '-24h': '2026-03-29T00:30:00.000Z',
        start_of_week: '2026-03-29T22:00:00.000Z',
        yesterday: '2026-03-28T23:00:00.000Z',
      })
      await meanings('Europe/Berlin', '2026-10-25T12:00:00.000Z', {
        '2026-10-25T02:30': '2026-10-25T00:30:00.000Z',
        start_of_day: '2026-10-24T22:00:00.000Z',
        end_of_day: '2026-10-25T22:59:59.999Z',
        '-1d': '2026-10-24T11:00:00.000Z',
        '-24h': '2026-10-24T12:00:00.000Z',
      })
      // Half an hour at Lord Howe; in Santiago the skipped hour is the first of the day.
      await meanings('Australia/Lord_Howe', '2026-10-04T12:00:00.000Z', {
        '2026-10-04T02:15': '2026-10-03T15:45:00.000Z',
        '-1d': '2026-10-03T12:30:00.000Z',
      })
      await meanings('America/Santiago', '2026-09-06T12:00:00.000Z', {
        today: '2026-09-06T04:00:00.000Z',
        start_of_day: '2026-09-06T04:00:00.000Z',
        '2026-09-06': '2026-09-06T04:00:00.000Z',
      })
    })

    it("of a field that holds days are days of the workspace's calendar", async () => {
      now = '2026-10-01T22:30:00.000Z'
      const { check, call } = await make(server(), 'Europe/Berlin')
      await call('crm_create_custom_field', { key: 'due', type: 'date' })
      await call('crm_create_custom_field', { key: 'met', type: 'datetime' })
      const of = (key: string, date: string) => ({
        attributes: { some: { attributeName: { eq: key }, dateValue: { lte: date } } },
      })
      for (const [date, day] of Object.entries({
        today: '2026-10-02',
        '-1d': '2026-10-01',
        '2026-10-05': '2026-10-05',
        '2026-10-05T23:30:00Z': '2026-10-06',
        end_of_month: '2026-10-31',
      })) {
        const { body } = await check(of('due', date))
        assert.deepEqual(body.filter, of('due', day))
        assert.deepEqual((await check(body.filter)).body.warnings, [])
      }
      assert.deepEqual((await check(of('due', '2026-10-05'))).body.resolved_dates, [])
      assert.deepEqual(
        (await check(of('met', '2026-10-05'))).body.filter,
        of('met', '2026-10-04T22:00:00.000Z'),
      )
    })

    it('mean the same whenever they are read again', async () => {
      now = '2026-10-01T09:30:00.000Z'
      const { run, check } = await make(server(), 'Asia/Kolkata')
      const { saved_filter: saved, resolved_dates: resolved } = await run('crm_create_saved_filter', {
        name: 'New',
        filter: { createdAt: { between: ['-7d', 'end_of_day'] } },
      })
      assert.deepEqual(saved.filter, {
        createdAt: { between: ['2026-09-24T09:30:00.000Z', '2026-10-01T18:29:59.999Z'] },
      })
      assert.deepEqual(
        resolved.map((r: { path: string }) => r.path),
        ['#/filter/createdAt/between/0', '#/filter/createdAt/between/1'],
      )
      now = '2027-01-01T00:00:00.000Z'
      const again = (await check(saved.filter)).body
      assert.deepEqual([again.filter, again.resolved_dates], [saved.filter, []])
    })
  },
  { now: () => now },
)

everyDatabase(
  'Warnings of contact filters',
  (server) => {
    it('point at each condition that may not mean what it looks like, and at no other', async () => {
      now = '2026-10-01T09:30:00.000Z'
      const { call, check } = await make(server(), 'Europe/Berlin')
      await fieldOfEveryType(call)
      await call('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP'] })
      const value = (key: string, field: string, test: Json, quantifier = 'some') =>
        within('attributes', quantifier, field, { attributeName: { eq: key } })(test)
      const cases: [filter: Json, pointer: string, says: RegExp][] = [
        [
          { broadcasts: { some: { message_status: { in: ['failed', 'not_responded'] } } } },
          '/broadcasts/some/message_status/in',
          /broadcast id/,
        ],
        [
          { broadcasts: { some: { id: { eq: 1 }, message_status: { eq: 'sent' } } } },
          '/broadcasts/some/message_status/eq',
          /"delivered","read"/,
        ],
        [{ name: { ne: 'Ada' } }, '/name/ne', /without name/],
        [{ lastActivityAt: { ne: '2026-10-01T00:00:00Z' } }, '/lastActivityAt/ne', /millisecond/],
        [{ webVisitorId: { notIn: ['a'] } }, '/webVisitorId/notIn', /isNull/],
        [{ email: { notContains: 'x' } }, '/email/notContains', /without email/],
        [
          { conversations: { some: { assignedStaffId: { ne: '5' } } } },
          '/conversations/some/assignedStaffId/ne',
          /without assignedStaffId/,
        ],
        [{ tags: { some: { name: { ne: 'VIP' } } } }, '/tags/some/name/ne', /none with eq/],
        [{ groups: { none: { id: { notIn: [1] } } } }, '/groups/none/id/notIn', /no other/],
        [value('f_select', 'stringValue', { ne: 'gold' }), '/attributes/some/stringValue/ne', /none with eq/],
        [
          { createdAt: { between: ['2026-09-02T00:00:00Z', '2026-09-01T00:00:00Z'] } },
          '/createdAt/between',
          /round/,
        ],
        [
          value('f_int', 'numberValue', { between: [10, 9] }),
          '/attributes/some/numberValue/between',
          /round/,
        ],
        [{ createdAt: { gte: '2026-09-01' } }, '/createdAt/gte', /Europe\/Berlin/],
        [{ createdAt: { lt: '2026-09-01T10:00' } }, '/createdAt/lt', /time zone/],
        [{ createdAt: { eq: 'today' } }, '/createdAt/eq', /millisecond/],
        [{ createdAt: { lte: 'today' } }, '/createdAt/lte', /first instant/],
        [{ createdAt: { between: ['-7d', 'start_of_day'] } }, '/createdAt/between', /first instant/],
        [{ createdAt: { gt: '-1d', lt: '-2d' } }, '/createdAt', /both gt and lt/],
        [
          value('f_int', 'numberValue', { gte: 10, lt: 10 }),
          '/attributes/some/numberValue',
          /both gte and lt/,
        ],
        [{ createdAt: { gte: '+1d' } }, '/createdAt/gte', /future/],
        [{ broadcasts: { some: { sentAt: { gt: '+1h' } } } }, '/broadcasts/some/sentAt/gt', /future/],
        [{ tags: { every: { name: { eq: 'VIP' } } } }, '/tags/every', /without any/],
        [{ groups: { every: {} } }, '/groups/every', /Every contact/],
        [value('f_int', 'stringValue', { eq: '5' }), '/attributes/some/stringValue', /numberValue/],
        [value('f_text', 'dateValue', { gt: '-1d' }), '/attributes/some/dateValue', /stringValue/],
        [
          value('f_select', 'stringValue', { eq: 'gold plan' }),
          '/attributes/some/stringValue/eq',
          /use "gold"/,
        ],
        [
          value('f_multiselect', 'stringValue', { in: ['gold', 'silver'] }),
          '/attributes/some/stringValue/in',
          /gold, basic/,
        ],
        [value('f_text', 'stringValue', { isNull: true }), '/attributes/some/stringValue/isNull', /use none/],
        [
          value('f_date', 'dateValue', { gt: '2026-10-01T10:00:00Z' }),
          '/attributes/some/dateValue/gt',
          /holds days/,
        ],
        [{ name: { regex: 'ada' } }, '/name/regex', /contains/],
        [{ phoneNumber: { regex: '^\\+49' } }, '/phoneNumber/regex', /without \+/],
        [{ phoneNumber: { eq: 'Ada' } }, '/phoneNumber/eq', /not a phone/],
        [{ phoneNumber: { startsWith: '0170' } }, '/phoneNumber/startsWith', /leading zeros/],
        [
          value('f_phone', 'stringValue', { contains: 'x5' }),
          '/attributes/some/stringValue/contains',
          /not a phone/,
        ],
        [{ name: { eq: '' } }, '/name/eq', /isNull/],
        [{ name: { contains: '' } }, '/name/contains', /Every text/],
        [{ name: { eq: 'Ada ' } }, '/name/eq', /space/],
        [{ tags: { none: { name: { eq: 'vip' } } } }, '/tags/none/name/eq', /written "VIP"/],
        [
          { tags: { some: { name: { in: ['VIP', 'VPI'] } } } },
          '/tags/some/name/in',
          /no tag with the name "VPI"/,
        ],
        [{ groups: { some: { id: { eq: '9223372036854775807' } } } }, '/groups/some/id/eq', /no group/],
        [{ not: {} }, '/not', /No contact/],
        [{ or: [leaf, {}] }, '/or/1', /every contact/],
        [{ id: { in: [1, 2, '1'] } }, '/id/in', /more than once/],
        [{ name: { isNull: true, contains: 'a' } }, '/name/isNull', /no other/],
        [{ createdAt: { isNull: false } }, '/createdAt/isNull', /always/],
        [{ dnd: { isNull: true } }, '/dnd/isNull', /never met/],
        [
          { attributes: { some: { attributeName: { eq: 'f_decimal' }, numberValue: { eq: 2 ** 60 } } } },
          '/attributes/some/numberValue/eq',
          /as text/,
        ],
      ]
      for (const [filter, pointer, says] of cases) {
        const { body, text } = await check(filter)
        const warning = body.warnings?.find(
          (w: { path: string; message: string }) => w.path === `#/filter${pointer}` && says.test(w.message),
        )
        assert.ok(warning, `${JSON.stringify(filter)} ${text}`)
      }
      const plain: Json[] = [
        {},
        leaf,
        { or: [{ name: { ne: 'Ada' } }, { name: { isNull: true } }] },
        { name: { ne: 'Ada', isNull: false } },
        { id: { ne: 1 } },
        { dnd: { ne: true } },
        { createdAt: { gte: '-7d', lt: 'now' } },
        { createdAt: { gte: 'start_of_month', lte: 'end_of_month' } },
        { lastActivityAt: { isNull: true } },
        { tags: { none: { name: { eq: 'VIP' } } } },
        { tags: { none: {} } },
        { broadcasts: { some: { id: { eq: 5 }, message_status: { eq: 'not_responded' } } } },
        { conversations: { some: { state: { ne: 'closed' }, unreadCount: { gt: 2, lt: 9 } } } },
        { phoneNumber: { startsWith: '+49 170' } },
        { phoneNumber: { eq: '+1 555-010-0042' } },
        { name: { regex: '^A' } },
        value('f_select', 'stringValue', { eq: 'gold' }),
        value('f_date', 'dateValue', { lte: '2026-12-31' }),
        value('f_int', 'numberValue', { gte: 9, lte: 10 }),
        { createdAt: { between: ['2026-09-01T00:00:00Z', '2026-09-02T00:00:00Z'] } },
      ]
      for (const filter of plain)
        assert.deepEqual((await check(filter)).body.warnings, [], JSON.stringify(filter))
    })

    it('stand beside one sentence that says what the filter means', async () => {
      now = '2026-10-01T09:30:00.000Z'
      const { call, check, run } = await make(server(), 'Europe/Berlin')
      await fieldOfEveryType(call)
      const { saved_filter: saved } = await run('crm_create_saved_filter', {
        name: 'My "leads"',
        filter: leaf,
      })
      const sentences: [Json, string][] = [
        [{}, 'All contacts.'],
        [{ and: [{}, {}] }, 'All contacts.'],
        [
          { createdAt: { gte: '-7d' }, name: { contains: 'ada' } },
          'Contacts that were created on or after 24 September 2026, 11:30 (Europe/Berlin) and whose name contains "ada".',
        ],
        [
          { name: { in: ['a', 'b', 'c'] }, dnd: { eq: false }, starred: { ne: false } },
          'Contacts whose name is one of "a", "b" or "c", that are not do-not-disturb and that are starred.',
        ],
        [{ id: { in: [1, 2, 3, 4, 5, 6, 7] } }, 'Contacts whose id is one of 1, 2, 3, 4, 5 and 2 more.'],
        [
          { or: [{ starred: { eq: true } }, { name: { isNull: true }, dnd: { eq: true } }] },
          'Contacts either that are starred, or (whose name is absent and that are do-not-disturb).',
        ],
        [
          { and: [{ or: [leaf, { dnd: { eq: true } }] }, { starred: { eq: true } }] },
          'Contacts (either whose name is "x", or that are do-not-disturb) and that are starred.',
        ],
        [
          { or: [{ or: [leaf, leaf] }, leaf] },
          'Contacts either (either whose name is "x", or whose name is "x"), or whose name is "x".',
        ],
        [{ or: [leaf] }, 'Contacts whose name is "x".'],
        [
          { not: { or: [leaf, { starred: { eq: true } }] } },
          'Contacts that are not among those (either whose name is "x", or that are starred).',
        ],
        [{ not: {} }, 'Contacts that are not among those (all contacts).'],
        [
          {
            lastActivityAt: { isNull: true },
            updatedAt: { between: ['2026-09-30T22:00:00Z', 'end_of_day'] },
          },
          'Contacts that were never active and that were changed from 1 October 2026, 00:00 (Europe/Berlin) to 1 October 2026, 23:59:59 (Europe/Berlin).',
        ],
        [
          {
            tags: {
              some: { name: { eq: 'VIP' } },
              none: { id: { eq: 4 } },
              every: { name: { startsWith: 'V' } },
            },
          },
          'Contacts that have the tag "VIP", that do not have the tag with the id 4 and whose every tag is one (whose name begins with "V").',
        ],
        [{ groups: { none: {} } }, 'Contacts that are in no group.'],
        [{ savedFilter: { eq: saved.id } }, 'Contacts that match the saved filter "My \\"leads\\"".'],
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
          'Contacts that have no value of the custom field "Field int" (that is at least 1 and that is less than 5).',
        ],
        [
          { conversations: { some: { state: { eq: 'open' }, assignedStaffId: { isNull: true } } } },
          'Contacts that have a conversation (whose state is open and whose assigned staff member is absent).',
        ],
        [
          { broadcasts: { some: { id: { eq: 5 }, message_status: { eq: 'not_responded' } } } },
          'Contacts that are recipients of a broadcast (whose id is 5 and that they did not answer).',
        ],
        [
          { phoneNumber: { regex: '^49' }, email: { notContains: 'x' } },
          'Contacts whose phone number matches the regular expression "^49" and whose email address is present and does not contain "x".',
        ],
      ]
      for (const [filter, sentence] of sentences)
        assert.equal((await check(filter)).body.explanation, sentence, JSON.stringify(filter))
    })
  },
  { now: () => now },
)

everyDoor('What a filter may not tell', (test) => {
  test('phones are not compared for whom they are hidden from', async ({ workspace, call, as }) => {
    await call('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    const agent = as((await workspace.staff({ role: 'agent' })).key)
    const hiddenFrom = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    const filters: [Json, string][] = [
      [{ phoneNumber: { startsWith: '1555' } }, '/phoneNumber'],
      [{ not: { chatappUserId: { isNull: true } } }, '/not/chatappUserId'],
      [
        {
          or: [
            leaf,
            { attributes: { none: { attributeName: { eq: 'mobile' }, stringValue: { contains: '5' } } } },
          ],
        },
        '/or/1/attributes/none/attributeName',
      ],
    ]
    for (const [filter, pointer] of filters) {
      refused(await hiddenFrom('crm_check_filter', { filter }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: `#/filter${pointer}`,
      })
      refused(await hiddenFrom('crm_search_contacts', { filter }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: `#/filter${pointer}`,
      })
      refused(await hiddenFrom('crm_count_contacts', { filter }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: `#/filter${pointer}`,
      })
      assert.equal((await agent('crm_check_filter', { filter })).status, 200)
      const { body } = await call('crm_create_saved_filter', { name: 'Phones', filter })
      refused(
        await hiddenFrom('crm_check_filter', {
          filter: { and: [{ savedFilter: { eq: body.saved_filter.id } }] },
        }),
        { status: 403, reason: 'phone_hidden', pointer: '#/filter/and/0/savedFilter/eq' },
      )
      refused(await hiddenFrom('crm_search_contacts', { saved_filter_id: body.saved_filter.id }), {
        status: 403,
        reason: 'phone_hidden',
        pointer: '#/saved_filter_id',
      })
    }
  })

  test('nor are values of manager-only fields for agents', async ({ workspace, call, as }) => {
    await call('crm_create_custom_field', { key: 'salary', type: 'int', visibility: 'manager_only' })
    const agent = as((await workspace.staff({ role: 'agent' })).key)
    const { body } = await call('crm_create_saved_filter', {
      name: 'Rich',
      filter: { attributes: { some: { attributeName: { eq: 'salary' }, numberValue: { gt: 9 } } } },
    })
    refused(await agent('crm_check_filter', { filter: { savedFilter: { eq: body.saved_filter.id } } }), {
      status: 403,
      reason: 'field_hidden',
      pointer: '#/filter/savedFilter/eq',
    })
    const filter = { email: { endsWith: '@example.com' } }
    assert.equal((await agent('crm_check_filter', { filter })).status, 200)
    const email = (await call('crm_list_custom_fields')).body.data.find(
      (f: { key: string }) => f.key === 'email',
    )
    await call('crm_update_custom_field', { custom_field_id: email.id, visibility: 'manager_only' })
    refused(await agent('crm_check_filter', { filter }), {
      status: 403,
      reason: 'field_hidden',
      pointer: '#/filter/email',
    })
    assert.equal((await call('crm_check_filter', { filter })).status, 200)
  })
})

everyDatabase('Saved filters in contact filters', (server) => {
  it('are found in the workspace alone, and hold contacts', async () => {
    const [here, there] = [await make(server()), await make(server())]
    const { saved_filter: foreign } = await there.run('crm_create_saved_filter', { name: 'x', filter: leaf })
    const missing = { status: 404, reason: 'saved_filter_not_found' }
    for (const id of [foreign.id, '9223372036854775808']) {
      refused(await here.check({ not: { savedFilter: { eq: id } } }), {
        ...missing,
        pointer: '#/filter/not/savedFilter/eq',
      })
      refused(await here.call('crm_count_contacts', { saved_filter_id: id }), {
        ...missing,
        pointer: '#/saved_filter_id',
      })
    }
    const { id } = await server()
      .db.insertInto('saved_filters')
      .values({
        workspace_id: here.workspace.id,
        kind: 'conversation',
        name: 'Waiting',
        name_key: 'waiting',
        description: null,
        owner_staff_id: null,
        filter: {},
        created_at: now,
        updated_at: now,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    refused(await here.check({ savedFilter: { eq: id } }), {
      pointer: '#/filter/savedFilter/eq',
      code: 'wrong_kind',
    })
  })

  it('name each other, but not themselves', async () => {
    const { run, call, check } = await make(server())
    const save = async (name: string, filter: Json): Promise<string> =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id
    const first = await save('first', leaf)
    const second = await save('second', { not: { savedFilter: { eq: first } } })
    const third = await save('third', {
      or: [{ savedFilter: { eq: first } }, { savedFilter: { eq: second } }],
    })
    assert.equal((await check({ savedFilter: { eq: third } })).status, 200)
    for (const id of [first, second, third]) {
      refused(
        await call('crm_update_saved_filter', {
          saved_filter_id: first,
          filter: { and: [leaf, { savedFilter: { eq: id } }] },
        }),
        { reason: 'saved_filter_cycle', pointer: '#/filter/and/1/savedFilter/eq' },
      )
    }
    // One that was written before others checked is found too.
    await server()
      .db.updateTable('saved_filters')
      .set({ filter: JSON.stringify({ savedFilter: { eq: third } }) })
      .where('id', '=', first)
      .execute()
    refused(await check({ savedFilter: { eq: second } }), {
      reason: 'saved_filter_cycle',
      pointer: '#/filter/savedFilter/eq',
    })
  })

  it('count with all their conditions', async () => {
    const { run, check } = await make(server())
    const save = async (name: string, filter: Json): Promise<string> =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id
    const ten = await save('ten', { and: Array.from({ length: 9 }, () => leaf) })
    const uses = (times: number, id = ten, more = 0) => ({
      and: [
        ...Array.from({ length: times }, () => ({ savedFilter: { eq: id } })),
        ...Array.from({ length: more }, () => leaf),
      ],
    })
    // Each use is a condition itself, so 59 uses of nine make 590.
    assert.equal((await check(uses(59, ten, 1))).status, 200)
    assert.equal((await check(uses(60))).status, 200)
    const eleven = await save('eleven', { and: Array.from({ length: 10 }, () => leaf) })
    refused(await check(uses(60, eleven)), { reason: 'filter_too_many_conditions', pointer: '#/filter' })
    let last = ten
    for (let n = 0; n < 30; n++)
      last = await save(`chain ${n}`, { not: { not: { savedFilter: { eq: last } } } })
    assert.equal((await check({ savedFilter: { eq: last } })).status, 200)
    for (let n = 0; n < 3; n++)
      last = await save(`more ${n}`, n === 2 ? {} : { not: { savedFilter: { eq: last } } })
    let doubled = ten
    for (let n = 0; n < 5; n++) doubled = await save(`doubled ${n}`, uses(2, doubled))
    refused(await check(uses(2, doubled)), { reason: 'filter_too_many_conditions', pointer: '#/filter' })
  })

  it('may be longer than a filter, their dates being absolute', async () => {
    const { run, check } = await make(server())
    const filter = { ...sized(16_384 - ',"createdAt":{"gte":"-7d"}'.length), createdAt: { gte: '-7d' } }
    const { saved_filter: saved } = await run('crm_create_saved_filter', { name: 'long', filter })
    refused(await check(saved.filter), { reason: 'filter_too_large', pointer: '#/filter' })
    assert.equal((await run('crm_count_contacts', { saved_filter_id: saved.id })).count, 0)
    assert.equal(
      (
        await run('crm_update_saved_filter', {
          saved_filter_id: saved.id,
          name: 'longer',
          dry_run: true,
          count: true,
        })
      ).count,
      0,
    )
  })

  it('that no longer fit are refused by name', async () => {
    const { run, check } = await make(server())
    const field = await run('crm_create_custom_field', { key: 'plan', type: 'text' })
    const { saved_filter: saved } = await run('crm_create_saved_filter', {
      name: 'By plan',
      filter: { and: [leaf, { attributes: { some: { attributeName: { eq: 'plan' } } } }] },
    })
    await run('crm_delete_custom_field', { custom_field_id: field.id })
    const reply = await check({ or: [leaf, { savedFilter: { eq: saved.id } }] })
    refused(reply, { pointer: '#/filter/or/1/savedFilter/eq', code: 'saved_filter_broken' })
    assert.match(reply.body.detail, /"By plan".*#\/and\/1\/attributes\/some\/attributeName\/eq/)
  })
})

everyDatabase('Phones in contact filters', (server) => {
  it('are compared as the digits that are stored', async () => {
    const { run } = await make(server())
    await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    await run('crm_upsert_contact', {
      phone: '+49 170 1234567',
      name: 'Ada',
      attributes: { mobile: '+1 555 010 0042' },
    })
    const matches = async (filter: Json) => (await run('crm_search_contacts', { filter })).data.length
    for (const value of ['+49 170 1234567', '491701234567', '0049 (170) 123-45-67'])
      assert.equal(await matches({ phoneNumber: { eq: value } }), 1, value)
    for (const test of [
      { in: ['+1 555', '+49 170 1234567'] },
      { startsWith: '+49 170' },
      { contains: '170-123' },
      { endsWith: '45 67' },
      { notContains: '+1 555' },
    ])
      assert.equal(await matches({ phoneNumber: test }), 1, JSON.stringify(test))
    assert.equal(await matches({ phoneNumber: { ne: '+49 170 1234567' } }), 0)
    assert.equal(
      await matches({
        attributes: { some: { attributeName: { eq: 'mobile' }, stringValue: { eq: '+1 (555) 010-0042' } } },
      }),
      1,
    )
  })
})
