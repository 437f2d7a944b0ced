import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { customFieldTypes } from '../../catalog/custom-fields.ts'
import { listFields } from '../../storage/contacts/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import { toAttributeRows, type ValueRow, type Attrs } from '../../storage/contacts/values.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

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

const options = ['Red', 'grün', 'BLUE', 'İ', 'ß'].map((label) => ({ label, value: label }))
const hasOptions = (type: string): boolean => ['select', 'multiselect', 'radio'].includes(type)

/** Creates a workspace with a custom field of each type. */
const createScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  for (const type of customFieldTypes)
    await run('crm_create_custom_field', {
      key: type === 'email' ? 'mail' : type,
      type,
      ...(hasOptions(type) ? { options } : {}),
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
const option = fc.constantFrom(...options.map((o) => o.value))
const address = fc.constantFrom('Ada@Example.com', 'bob@example.com')
const number = fc.double({ noNaN: true, noDefaultInfinity: true })
const day = fc.constantFrom('0000-02-29', '0001-01-01', '1969-12-31', '2026-10-01', '9999-12-31')
const values: Record<string, fc.Arbitrary<unknown>> = {
  text,
  textarea: text,
  select: option,
  radio: option,
  multiselect: fc.shuffledSubarray(options.map((o) => o.value)),
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
    const { call, run, rows } = await createScene(server())
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
    const { run, workspace } = await createScene(server())
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
    const { run, workspace } = await createScene(server())
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
    const { run, rows } = await createScene(server())
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
