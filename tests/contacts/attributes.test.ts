import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { customFieldTypes } from '../../catalog/custom-fields.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { listFields } from '../../storage/contacts/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import { type Attrs, toAttributeRows, type ValueRow } from '../../storage/contacts/values.ts'

const phone = '+15550100042'
const options = [
  { label: 'Red, or so', value: 'red' },
  { label: 'Green', value: 'green' },
  { label: '1', value: 'one' },
  { label: 'Two', value: '2' },
]
const toKey = (type: string): string => `f_${type}`

/** Creates a workspace with a custom field of each type; `set` sets values and returns all, by key. */
const createScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  const call = callAs(server, workspace.owner.key)
  for (const type of customFieldTypes) {
    await run('crm_create_custom_field', {
      key: toKey(type),
      label: `The ${type}`,
      type,
      ...(['select', 'multiselect', 'radio'].includes(type) ? { options } : {}),
    })
  }
  const set = async (attributes: Record<string, unknown>) =>
    new Map<string, AttributeView>(
      (await run('crm_upsert_contact', { phone, attributes })).contact.attributes.map(
        (a: AttributeView & { key: string }) => [a.key, a],
      ),
    )
  return { workspace, run, call, set }
}
type AttributeView = { label: string; type: string; value: unknown; display: string; typed_value: unknown }

/**
 * The input, and what is shown: value, display and typed_value. Only the value where display and typed_value equal it.
 */
const validInputs: Record<(typeof customFieldTypes)[number], [unknown, unknown, string?, unknown?][]> = {
  text: [
    ['Hello', 'Hello'],
    ['  spaces stay ', '  spaces stay '],
    [42, '42'],
    [true, 'true'],
    ['漢字 😀', '漢字 😀'],
  ],
  textarea: [['two\nlines', 'two\nlines']],
  select: [
    ['red', 'red', 'Red, or so', 'red'],
    ['Green', 'green', 'Green', 'green'],
    ['one', 'one', '1', 'one'],
    [1, 'one', '1', 'one'],
    [2, '2', 'Two', '2'],
    [' red ', 'red', 'Red, or so', 'red'],
  ],
  radio: [['green', 'green', 'Green', 'green']],
  multiselect: [
    [['green', 'red'], 'green,red', 'Green, Red, or so', ['green', 'red']],
    ['red,Green', 'red,green', 'Red, or so, Green', ['red', 'green']],
    ['red', 'red', 'Red, or so', ['red']],
    [['red', 'red', 'Red, or so'], 'red', 'Red, or so', ['red']],
    [2, '2', 'Two', ['2']],
    [' green , 2,', 'green,2', 'Green, Two', ['green', '2']],
  ],
  checkbox: [
    [true, 'Yes', 'Yes', true],
    ['no', 'No', 'No', false],
    [1, 'Yes', 'Yes', true],
    ['0', 'No', 'No', false],
  ],
  boolean: [
    [false, 'No', 'No', false],
    ['TRUE', 'Yes', 'Yes', true],
    ['Yes', 'Yes', 'Yes', true],
  ],
  date: [
    ['2026-02-28', '2026-02-28'],
    ['2024-02-29', '2024-02-29'],
  ],
  datetime: [
    ['2026-10-01T09:30:00Z', '2026-10-01 09:30:00', '2026-10-01 09:30:00', '2026-10-01T09:30:00.000Z'],
    ['2026-10-01T09:30:00+02:00', '2026-10-01 07:30:00', '2026-10-01 07:30:00', '2026-10-01T07:30:00.000Z'],
    ['2026-10-01T00:30+0530', '2026-09-30 19:00:00', '2026-09-30 19:00:00', '2026-09-30T19:00:00.000Z'],
    ['2026-10-01 09:30:00', '2026-10-01 09:30:00', '2026-10-01 09:30:00', '2026-10-01T09:30:00.000Z'],
    ['2026-10-01T09:30:00.123456Z', '2026-10-01 09:30:00', '2026-10-01 09:30:00', '2026-10-01T09:30:00.123Z'],
  ],
  number: [
    [12.5, 12.5, '12.5', 12.5],
    ['-3', -3, '-3', -3],
    ['1e3', 1000, '1000', 1000],
    [-0, 0, '0', 0],
  ],
  float: [
    [0.1, 0.1, '0.1', 0.1],
    ['.5', 0.5, '0.5', 0.5],
    [1e-7, 1e-7, '1e-7', 1e-7],
  ],
  int: [
    [7, 7, '7', 7],
    ['-12', -12, '-12', -12],
    [9007199254740991, 9007199254740991, '9007199254740991', 9007199254740991],
  ],
  decimal: [
    ['12.5', '12.50000000', '12.50000000', 12.5],
    [12, '12.00000000', '12.00000000', 12],
    ['-0.00000001', '-0.00000001', '-0.00000001', -1e-8],
    [1e-8, '0.00000001', '0.00000001', 1e-8],
    [1.5e-7, '0.00000015', '0.00000015', 1.5e-7],
    ['-0', '0.00000000', '0.00000000', 0],
    ['007.10', '7.10000000', '7.10000000', 7.1],
    ['+3.', '3.00000000', '3.00000000', 3],
    [
      '12345678901234567890.12345678',
      '12345678901234567890.12345678',
      '12345678901234567890.12345678',
      Number('12345678901234567890.12345678'),
    ],
  ],
  email: [
    ['ada@example.com', 'ada@example.com'],
    [' ada@example.com ', 'ada@example.com'],
  ],
  url: [
    ['https://example.com/a?b=c', 'https://example.com/a?b=c'],
    ['http://example.com', 'http://example.com'],
  ],
  phone: [
    ['+49 30 1234567', '49301234567'],
    ['0044 20 7946 0958', '442079460958'],
    [15550100001, '15550100001'],
  ],
}

const invalidInputs: Record<(typeof customFieldTypes)[number], unknown[]> = {
  text: [{}, ['a'], 'x'.repeat(10_001)],
  textarea: [{ a: 1 }],
  select: ['blue', 3, ['red'], {}, 'red,green'],
  radio: ['GREEN', false],
  multiselect: [['red', 'blue'], 'red,blue', [null], {}, [['red']]],
  checkbox: ['maybe', 2, {}, [true]],
  boolean: ['ja', {}, ['true']],
  date: ['2026-02-29', '2026-13-01', '01.10.2026', '2026-10-01T00:00:00Z', 20261001, '2026-1-1', true],
  datetime: ['2026-10-01', 'tomorrow', '2026-10-01T25:00:00Z', 1790847000, '2026-10-01T09:30:00+99:00'],
  number: ['12,5', 'ten', true, {}, 'Infinity', 'NaN', '0x10', '1e999'],
  float: ['1.2.3', [1]],
  int: [1.5, '1.5', 9007199254740992, 'x'],
  decimal: ['1.123456789', '123456789012345678901', 1e21, 1e-9, 1.23456789e-7, '1e3', '.5', 'x', true, '1,5'],
  email: ['ada', 'ada@', `${'a'.repeat(250)}@example.com`, 1, ['a@example.com']],
  url: [
    'example.com',
    'ftp://example.com',
    'javascript:alert(1)',
    '/a',
    `https://example.com/${'x'.repeat(2000)}`,
    1,
  ],
  phone: ['030 1234567', 'home', '12', {}],
}

everyDatabase('Custom field values', (server) => {
  it('each type is shown as value, display and typed_value', async () => {
    const { set } = await createScene(server())
    for (const type of customFieldTypes)
      for (const [input, value, display = value, typed = value] of validInputs[type]) {
        const actual = (await set({ [toKey(type)]: input })).get(toKey(type))
        assert.deepEqual(
          actual,
          { key: toKey(type), label: `The ${type}`, type, value, display, typed_value: typed },
          `${type} ${JSON.stringify(input)}`,
        )
      }
  })

  it('an invalid value is rejected with field and fix, and nothing changes', async () => {
    const { call, run, set } = await createScene(server())
    const before = await set(
      Object.fromEntries(customFieldTypes.map((type) => [toKey(type), validInputs[type][0]![0]])),
    )
    for (const type of customFieldTypes)
      for (const input of invalidInputs[type]) {
        const { status, body } = await call('crm_upsert_contact', {
          phone,
          name: 'Changed',
          attributes: { [toKey(type)]: input },
        })
        const label = `${type} ${JSON.stringify(input).slice(0, 60)}`
        assert.deepEqual([status, body.code], [400, 'invalid_input'], label)
        assert.deepEqual(
          [body.errors.length, body.errors[0].pointer, body.errors[0].code],
          [1, `#/attributes/${toKey(type)}`, 'invalid_value'],
          label,
        )
        assert.ok(body.errors[0].fix.length > 5, label)
        if (['select', 'radio', 'multiselect'].includes(type))
          assert.deepEqual(
            body.errors[0].allowed,
            options.map((o) => o.value),
          )
      }
    const contact = (await run('crm_search_contacts', { detail: 'full' })).data[0]
    assert.equal(contact.name, null)
    assert.deepEqual(new Map(contact.attributes.map((a: { key: string }) => [a.key, a])), before)
    const several = await call('crm_upsert_contact', {
      phone,
      attributes: { f_int: 'x', f_date: 'x', nope: 1 },
    })
    assert.deepEqual(
      several.body.errors.map((e: { pointer: string }) => e.pointer),
      ['#/attributes/f_int', '#/attributes/f_date', '#/attributes/nope'],
    )
  })

  it('null and an empty string clear one value and leave the others', async () => {
    const { run, set } = await createScene(server())
    for (const empty of [null, '', '  ', []]) {
      await set(Object.fromEntries(customFieldTypes.map((type) => [toKey(type), validInputs[type][0]![0]])))
      for (const type of customFieldTypes) {
        const remaining = await set({ [toKey(type)]: empty })
        assert.ok(!remaining.has(toKey(type)), `${type} ${JSON.stringify(empty)}`)
        assert.equal(remaining.size, customFieldTypes.length - 1 - customFieldTypes.indexOf(type))
      }
    }
    const again = await run('crm_upsert_contact', { phone, attributes: { f_text: null } })
    assert.equal(again.action, 'unchanged')
  })

  it('read after write returns the values that were set', async () => {
    const { set } = await createScene(server())
    const storedText = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 60 })
      .filter((t) => !t.includes('\0') && t.trim() !== '')
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? 0 : n))
    const dates = fc.date({ min: new Date('1000-01-02'), max: new Date('9000-01-01'), noInvalidDate: true })
    const decimal = fc.tuple(
      fc.constantFrom('', '-'),
      fc.bigInt({ min: 0n, max: 10n ** 20n - 1n }),
      fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 8 }),
    )
    const inputs = fc.record({
      text: storedText,
      textarea: storedText,
      number: finite,
      float: finite,
      int: fc.maxSafeInteger(),
      decimal,
      date: dates,
      datetime: dates,
      boolean: fc.boolean(),
      offset: fc.integer({ min: -14 * 60, max: 14 * 60 }),
      selected: fc.shuffledSubarray(options, { minLength: 1 }),
      byLabel: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(inputs, async (input) => {
        const [sign, integer, fraction] = input.decimal
        const local = new Date(input.datetime.getTime() + input.offset * 60_000).toISOString().slice(0, -1)
        const [hours, minutes] = [Math.floor(Math.abs(input.offset) / 60), Math.abs(input.offset) % 60].map(
          (n) => String(n).padStart(2, '0'),
        )
        const values = await set({
          f_text: input.text,
          f_textarea: input.textarea,
          f_number: input.number,
          f_float: String(input.float),
          f_int: input.int,
          f_decimal: `${sign}${integer}${fraction === '' ? '' : `.${fraction}`}`,
          f_date: input.date.toISOString().slice(0, 10),
          f_datetime: `${local}${input.offset < 0 ? '-' : '+'}${hours}:${minutes}`,
          f_boolean: input.boolean,
          f_multiselect: input.selected.map((o) => (input.byLabel ? o.label : o.value)),
        })
        const pick = (type: string) => {
          const { value, display, typed_value } = values.get(toKey(type))!
          return [value, display, typed_value]
        }
        for (const type of ['text', 'textarea'] as const)
          assert.deepEqual(pick(type), [input[type], input[type], input[type]])
        for (const type of ['number', 'float', 'int'] as const)
          assert.deepEqual(pick(type), [input[type], String(input[type]), input[type]])
        const digits = `${integer}.${fraction.padEnd(8, '0')}`
        const exact = `${/[1-9]/.test(digits) ? sign : ''}${digits}`
        assert.deepEqual(pick('decimal'), [exact, exact, Number(exact)])
        const day = input.date.toISOString().slice(0, 10)
        assert.deepEqual(pick('date'), [day, day, day])
        const instant = input.datetime.toISOString()
        assert.deepEqual(pick('datetime'), [
          instant.slice(0, 19).replace('T', ' '),
          instant.slice(0, 19).replace('T', ' '),
          instant,
        ])
        assert.deepEqual(pick('multiselect'), [
          input.selected.map((o) => o.value).join(','),
          input.selected.map((o) => o.label).join(', '),
          input.selected.map((o) => o.value),
        ])
        assert.deepEqual(pick('boolean'), [
          input.boolean ? 'Yes' : 'No',
          input.boolean ? 'Yes' : 'No',
          input.boolean,
        ])
      }),
      { numRuns: runs(20, 200) },
    )
  })

  it('long text is stored in full and shown with 2000 characters, no code point split', async () => {
    const { run, set } = await createScene(server())
    const long = `${'a'.repeat(1990)}${'😀'.repeat(20)}`
    const values = await set({ f_text: long, f_textarea: 'é'.repeat(2000) })
    const clipped = `${'a'.repeat(1990)}${'😀'.repeat(10)}`
    assert.deepEqual(
      [values.get('f_text')!.value, values.get('f_text')!.display, values.get('f_text')!.typed_value],
      [clipped, clipped, clipped],
    )
    assert.equal(values.get('f_textarea')!.value, 'é'.repeat(2000))
    assert.equal(
      (await run('crm_upsert_contact', { phone, attributes: { f_text: long } })).action,
      'unchanged',
    )
    assert.equal(
      (await run('crm_upsert_contact', { phone, attributes: { f_text: clipped } })).action,
      'updated',
    )
  })

  it('stored values stay when the options of their field change', async () => {
    const { run, set } = await createScene(server())
    await set({ f_select: 'red', f_multiselect: ['green', 'red'] })
    const fields = (await run('crm_list_custom_fields', { search: 'select' })).data as {
      id: string
      key: string
    }[]
    for (const { id } of fields)
      await run('crm_update_custom_field', {
        custom_field_id: id,
        options: [{ label: 'Grass', value: 'green' }],
      })
    const values = await set({})
    assert.deepEqual([values.get('f_select')!.value, values.get('f_select')!.display], ['red', 'red'])
    assert.deepEqual(
      [values.get('f_multiselect')!.value, values.get('f_multiselect')!.display],
      ['green,red', 'Grass, red'],
    )
  })
})

type Row = ValueRow & { contact_id: string }

const toSortedJson = (rows: readonly Row[]): string[] => rows.map((row) => JSON.stringify(row)).sort()

/**
 * Returns the stored rows of all fields that are not deleted, and the rows that the values of the contacts
 * require.
 */
const loadRows = async (db: Db, workspaceId: string): Promise<{ actual: string[]; expected: string[] }> => {
  const types = new Map((await listFields(db, workspaceId)).map((field) => [field.id, field.type]))
  const { rows: contacts } = await sql<{ contact_id: string; attrs: Attrs }>`
    select contact_id, attrs from contact_facts where workspace_id = ${workspaceId}`.execute(db)
  const { rows: actual } = await sql<Row>`
    select field_id, n, text_key, free, number_value, bool_value,
      (extract(epoch from time_value) * 1000)::bigint as time_value, contact_id
    from contact_attributes
    where workspace_id = ${workspaceId} and field_id = any(${[...types.keys()]}::bigint[])`.execute(db)
  const toNumberText = (text: string | null) => (text === null ? null : String(Number(text)))
  // ISO 8601 calls the year 1 BC 0000.
  const toMilliseconds = (text: string | null) =>
    text === null ? null : String(Date.parse(text.replace(/^0001(.*) BC$/, '0000$1')))
  const expected = contacts.flatMap(({ contact_id, attrs }) =>
    toAttributeRows(types, attrs).map((row) => ({
      ...row,
      time_value: toMilliseconds(row.time_value),
      contact_id,
    })),
  )
  const normalize = (rows: readonly Row[]) =>
    toSortedJson(rows.map((row) => ({ ...row, number_value: toNumberText(row.number_value) })))
  return { actual: normalize(actual), expected: normalize(expected) }
}

const rowOptions = ['Red', 'grün', 'BLUE', 'İ', 'ß'].map((label) => ({ label, value: label }))
const hasOptions = (type: string): boolean => ['select', 'multiselect', 'radio'].includes(type)

/** Creates a workspace with a custom field of each type. */
const createRowScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  for (const type of customFieldTypes)
    await run('crm_create_custom_field', {
      key: type === 'email' ? 'mail' : type,
      type,
      ...(hasOptions(type) ? { options: rowOptions } : {}),
    })
  return {
    workspace,
    run,
    call: callAs(server, workspace.owner.key),
    rows: () => loadRows(server.db, workspace.id),
  }
}

const text = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 30 })
  .filter((t) => !t.includes('\0') && t.trim() !== '')
const option = fc.constantFrom(...rowOptions.map((o) => o.value))
const address = fc.constantFrom('Ada@Example.com', 'bob@example.com')
const number = fc.double({ noNaN: true, noDefaultInfinity: true })
const day = fc.constantFrom('0000-02-29', '0001-01-01', '1969-12-31', '2026-10-01', '9999-12-31')
const values: Record<string, fc.Arbitrary<unknown>> = {
  text,
  textarea: text,
  select: option,
  radio: option,
  multiselect: fc.shuffledSubarray(rowOptions.map((o) => o.value)),
  checkbox: fc.boolean(),
  boolean: fc.boolean(),
  date: day,
  datetime: day.map((d) => `${d}T23:59:59.999Z`),
  number,
  float: number,
  int: fc.maxSafeInteger(),
  decimal: fc.constantFrom('-12.5', '0', '12345678901234567890.12345678'),
  mail: address,
  email: address,
  url: fc.constantFrom('https://example.com/A?b', 'http://example.com'),
  phone: fc.constantFrom('+49 30 1234567', '+15550100077'),
}
const attributes = fc.record(
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, fc.option(value, { freq: 4 })])),
  { requiredKeys: [] },
)
const contactIndex = fc.integer({ min: 0, max: 3 })
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('upsert' as const),
      contactIndex,
      attributes,
      dryRun: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('update' as const),
      contactIndex,
      attributes,
      dryRun: fc.constant(false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('delete' as const),
      contactIndex,
      attributes: fc.constant({}),
      dryRun: fc.boolean(),
    }),
  },
)

everyDatabase('Search rows of custom field values', (server) => {
  it('match the stored values after any sequence of writes, clears and deletes', async () => {
    const { call, run, rows } = await createRowScene(server())
    let maxRows = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        for (const { op, contactIndex: n, attributes: input, dryRun } of steps) {
          const phone = `1555010000${n}`
          const before = dryRun ? await rows() : undefined
          const options = dryRun ? { dry_run: true } : {}
          const id = (await run('crm_search_contacts', { query: phone })).data[0]?.id
          if (op === 'upsert')
            await run('crm_upsert_contact', { phone: `+${phone}`, attributes: input, ...options })
          else if (id !== undefined && op === 'update')
            await run('crm_update_contact', { contact_id: id, attributes: input })
          else if (id !== undefined) await run('crm_delete_contact', { contact_id: id, ...options })
          const { actual, expected } = await rows()
          assert.deepEqual(actual, expected)
          if (before) assert.deepEqual(actual, before.actual)
          maxRows = Math.max(maxRows, actual.length)
        }
      }),
      { numRuns: runs(10, 60) },
    )
    assert.ok(maxRows > 20, `the generated contacts had ${maxRows} rows at most`)
    const contacts = (await run('crm_search_contacts', {})).data as { id: string }[]
    for (const { id } of contacts) await run('crm_delete_contact', { contact_id: id })
    assert.deepEqual(await rows(), { actual: [], expected: [] })
    // A rejected upsert writes no rows.
    assert.equal(
      (
        await call('crm_upsert_contact', {
          phone: '+15550100009',
          attributes: { text: 'discarded', int: 'x' },
        })
      ).status,
      400,
    )
    assert.deepEqual(await rows(), { actual: [], expected: [] })
  })

  it('hold folded text, exact numbers, dates as midnight, and one row per selected option', async () => {
    const { run, workspace } = await createRowScene(server())
    const { db } = server()
    const selectColumn = async (column: string) =>
      (
        await sql
          .raw<{ row: unknown }>(`
      select f.key || ' ' || a.n as key, ${column} as row
      from contact_attributes a
      join custom_fields f on f.workspace_id = a.workspace_id and f.id = a.field_id
      where a.workspace_id = ${workspace.id} and (${column}) is not null order by 1`)
          .execute(db)
      ).rows.map((row) => Object.values(row))
    await run('crm_upsert_contact', {
      phone: '+15550100001',
      email: 'Ada@Example.com',
      attributes: {
        text: 'Straße',
        multiselect: ['BLUE', 'Red'],
        decimal: '12345678901234567890.12345678',
        int: 9007199254740991,
        number: 1e-7,
        boolean: false,
        date: '0000-02-29',
        datetime: '2026-10-01T09:30:00.5+02:00',
      },
    })
    assert.deepEqual(await selectColumn('text_key'), [
      ['email 0', 'ada@example.com'],
      ['multiselect 0', 'blue'],
      ['multiselect 1', 'red'],
      ['text 0', 'strasse'],
    ])
    assert.deepEqual(await selectColumn('nullif(free, false)'), [
      ['email 0', true],
      ['text 0', true],
    ])
    assert.deepEqual(await selectColumn('number_value'), [
      ['decimal 0', '12345678901234567890.12345678'],
      ['int 0', '9007199254740991'],
      ['number 0', '0.0000001'],
    ])
    assert.deepEqual(await selectColumn('bool_value'), [['boolean 0', false]])
    assert.deepEqual(await selectColumn('extract(epoch from time_value)::bigint'), [
      ['date 0', String(Date.parse('0000-02-29') / 1000)],
      ['datetime 0', String(Math.round(Date.parse('2026-10-01T07:30:00.5Z') / 1000))],
    ])
  })

  it('are not rewritten for a field that did not change', async () => {
    const { run, workspace } = await createRowScene(server())
    const loadRowLocations = async () =>
      new Map(
        (
          await sql<{ key: string; location: string }>`
      select f.key || ' ' || a.n as key, a.ctid::text as location
      from contact_attributes a
      join custom_fields f on f.workspace_id = a.workspace_id and f.id = a.field_id
      where a.workspace_id = ${workspace.id}`.execute(server().db)
        ).rows.map((row) => [row.key, row.location]),
      )
    await run('crm_upsert_contact', {
      phone: '+15550100001',
      attributes: { text: 'one', int: 1, multiselect: ['Red', 'BLUE', 'ß'], boolean: true },
    })
    const before = await loadRowLocations()
    await run('crm_upsert_contact', {
      phone: '+15550100001',
      attributes: { text: 'one', int: 2, multiselect: ['ß'], boolean: null },
    })
    const after = await loadRowLocations()
    assert.deepEqual([...after.keys()].sort(), ['int 0', 'multiselect 0', 'text 0'])
    assert.equal(after.get('text 0'), before.get('text 0'))
    assert.notEqual(after.get('int 0'), before.get('int 0'))
  })

  it('of a deleted field are kept apart from those of a new field with the same key', async () => {
    const { run, rows } = await createRowScene(server())
    await run('crm_upsert_contact', { phone: '+15550100001', attributes: { text: 'old', int: 1 } })
    const [old] = (await run('crm_list_custom_fields', { type: 'text' })).data
    await run('crm_delete_custom_field', { custom_field_id: old.id })
    await run('crm_create_custom_field', { key: 'text', type: 'int' })
    await run('crm_upsert_contact', { phone: '+15550100001', attributes: { text: 5 } })
    const { actual, expected } = await rows()
    assert.deepEqual(actual, expected)
    assert.equal(actual.length, 2)
  })
})
