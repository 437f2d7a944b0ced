import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { customFieldTypes } from '../../catalog/custom-fields.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

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
