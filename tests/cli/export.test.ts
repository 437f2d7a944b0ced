import assert from 'node:assert/strict'
import { join } from 'node:path'
import { it } from 'node:test'
import fc from 'fast-check'
import { everyDatabase, runCli } from '../doors.ts'
import { listContacts, useImportFiles } from './import-files.ts'

const files = useImportFiles()

const options = [
  { label: 'b', value: 'a' },
  { label: 'a, c', value: 'b' },
]
const types = [
  'text',
  'textarea',
  'select',
  'multiselect',
  'checkbox',
  'radio',
  'date',
  'datetime',
  'number',
  'email',
  'url',
  'phone',
  'int',
  'float',
  'boolean',
  'decimal',
]
/** One custom field of each type. */
const fields = types.map((type) => ({
  key: `my_${type}`,
  type,
  ...(['select', 'multiselect', 'radio'].includes(type) ? { options } : {}),
}))

/** A value of each custom field. */
const values = {
  my_text: "'=1",
  my_textarea: 'two\nlines, "quoted"; and more',
  my_select: 'a',
  my_multiselect: ['a', 'b'],
  my_checkbox: true,
  my_radio: 'b',
  my_date: '2026-02-28',
  my_datetime: '2026-02-28T12:30:15.123Z',
  my_number: -1.5e-7,
  my_email: 'b@example.com',
  my_url: 'https://example.com/?a,b',
  my_phone: '+15550100099',
  my_int: -42,
  my_float: 0.1,
  my_boolean: false,
  my_decimal: '-12345678901234567890.12345678',
}

everyDatabase('import: exported files', (server, database) => {
  it('an exported file imports unchanged, as CSV and as NDJSON', async () => {
    const { workspace, call } = await files.createScene(server(), fields)
    await call('crm_create_group', { name: 'a; "b"' })
    await call('crm_create_group', { name: 'Club' })
    const groups = ((await call('crm_list_groups')) as { data: { id: string }[] }).data.map(({ id }) => id)
    await call('crm_upsert_contact', {
      phone: '+15550100042',
      name: '=HYPERLINK("x")',
      email: 'ada@example.com',
      tags: ['a, b', '+1', 'say "hi"', '€'],
      group_ids: groups,
      attributes: values,
    })
    await call('crm_upsert_contact', { phone: '+15550100043', tags: ['-'] })
    const original = await listContacts(server(), workspace)
    assert.equal(Object.keys(original[0]!.attributes).length, types.length + 1)
    for (const format of ['csv', 'ndjson']) {
      const file = join(files.folder, `exported-${database}.${format}`)
      const exported = await runCli(
        ['contacts', 'export', '--format', format, '--output', file],
        files.envFor(server(), workspace.owner.key),
      )
      assert.deepEqual(exported, { exit: 0, stdout: '', stderr: '' })
      const other = await files.createScene(server(), fields)
      const { exit, summary, stderr } = await other.run([file, '--create-groups'])
      assert.deepEqual([exit, summary.created], [0, 2], stderr)
      assert.match(stderr, /^Ignored, because these fields are read-only: id, .*created_at/)
      assert.deepEqual(await listContacts(server(), other.workspace), original)
      assert.deepEqual((await other.run([file])).summary.unchanged, 2)
    }
  })

  it('whatever contacts hold comes back from either file', async () => {
    const { workspace, call } = await files.createScene(server(), [
      { key: 'note', type: 'textarea' },
      { key: 'plan', type: 'text' },
    ])
    const { group } = (await call('crm_create_group', { name: '=1+1; "Club", Ä' })) as {
      group: { id: string }
    }
    const hostile = fc
      .array(
        fc.constantFrom(
          '=',
          '+',
          '-',
          '@',
          "'",
          '"',
          ',',
          ';',
          '\n',
          '\t',
          ' ',
          'é',
          '€',
          '漢',
          '🙂',
          'a',
          '0',
        ),
        {
          minLength: 1,
          maxLength: 12,
        },
      )
      .map((parts) => parts.join(''))
    // Names show something, and digits alone are no name, and the id of a tag.
    const name = hostile.map((text) => `${text.replaceAll(/\s+/g, ' ')}x`)
    const contact = fc.record(
      {
        name,
        external_id: name,
        dnd: fc.boolean(),
        starred: fc.boolean(),
        metadata: fc.dictionary(
          fc.constantFrom('a', 'b'),
          hostile.map((text) => `${text}.`),
          { noNullPrototype: true },
        ),
        tags: fc.uniqueArray(name, { maxLength: 4, selector: (tag) => tag.toLowerCase().trim() }),
        group_ids: fc.constantFrom([], [group.id]),
        attributes: fc.record({ note: hostile, plan: hostile }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    )
    const contacts = fc.sample(
      fc.uniqueArray(contact, {
        minLength: 60,
        maxLength: 60,
        selector: (one) => one.external_id?.trim() ?? {},
      }),
      { numRuns: 1, seed: 53 },
    )[0]!
    for (const [n, one] of contacts.entries())
      await call('crm_upsert_contact', { ...one, phone: `+1555010${String(n).padStart(4, '0')}` })
    const original = await listContacts(server(), workspace)
    assert.ok(original.some(({ dnd, starred }) => dnd && starred))
    assert.ok(original.some(({ metadata }) => Object.keys(metadata).length === 2))
    for (const format of ['csv', 'ndjson']) {
      const { stdout } = await runCli(
        ['contacts', 'export', '--format', format],
        files.envFor(server(), workspace.owner.key),
      )
      const other = await files.createScene(server(), [
        { key: 'note', type: 'textarea' },
        { key: 'plan', type: 'text' },
      ])
      const { exit, summary, stderr } = await other.run(['-', '--format', format, '--create-groups'], stdout)
      assert.deepEqual([exit, summary.created], [0, 60], stderr)
      assert.deepEqual(await listContacts(server(), other.workspace), original)
      const again = await other.run(['-', '--format', format], stdout)
      assert.deepEqual(again.summary.unchanged, 60, again.stderr)
    }
  })

  it('an import undoes no opt-out, and refuses flags and metadata that it cannot read', async () => {
    const { workspace, run, call } = await files.createScene(server())
    await call('crm_upsert_contact', { phone: '+15550100042', dnd: true })
    await call('crm_upsert_contact', { phone: '+15550100042', dnd: false, starred: true })
    const file = [
      'phone,dnd,starred,metadata',
      '+15550100042,no,0,"{""erp"": ""B""}"',
      '+15550100043,maybe,,',
      '+15550100044,,,x',
    ]
    const { summary, stderr } = await run(['-'], file.join('\n'))
    assert.deepEqual([summary.updated, summary.failed], [1, 2])
    assert.match(stderr, /Line 3: dnd is neither true nor false[^]*Line 4: metadata is not a JSON object/)
    const [one] = await listContacts(server(), workspace)
    assert.deepEqual([one!.dnd, one!.starred, one!.metadata], [true, false, { erp: 'B' }])
  })

  it('an export accepts a filter and a saved filter', async () => {
    const { workspace, call } = await files.createScene(server())
    for (const n of [2, 3, 4]) await call('crm_upsert_contact', { phone: `+1555010004${n}`, name: `N${n}` })
    const filter = { name: { in: ['N2', 'N4'] } }
    const {
      saved_filter: { id },
    } = (await call('crm_create_saved_filter', { name: 'Even', filter })) as { saved_filter: { id: string } }
    for (const argv of [
      ['--filter', JSON.stringify(filter)],
      ['--saved-filter-id', id],
    ]) {
      const { stdout, stderr } = await runCli(
        ['contacts', 'export', '--format', 'ndjson', '--sort', '{"field":"name","direction":"asc"}', ...argv],
        files.envFor(server(), workspace.owner.key),
      )
      assert.equal(stderr, '')
      assert.deepEqual(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) => (JSON.parse(line) as { name: string }).name),
        ['N2', 'N4'],
      )
    }
  })

  it('masked phones of an export are never imported as phones', async () => {
    const { workspace, run, call } = await files.createScene(server())
    await call('crm_upsert_contact', { phone: '+15550100042', name: 'Ada' })
    const agent = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
    for (const format of ['csv', 'ndjson']) {
      const { stdout } = await runCli(
        ['contacts', 'export', '--format', format],
        files.envFor(server(), agent.key),
      )
      assert.match(stdout, /\*\d{3,4},|\*\d{3,4}"/)
      assert.doesNotMatch(stdout, /15550100042/)
      const { exit, summary, stderr } = await run(['-'], stdout)
      assert.deepEqual([exit, summary.failed, summary.rows], [9, 1, 1])
      assert.match(stderr, /phone is masked/)
    }
  })
})
