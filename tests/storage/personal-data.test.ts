import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog } from '../../catalog/index.ts'
import { tables } from '../../storage/database.ts'
import type { PersonalData } from '../../storage/privacy/personal-data-types.ts'
import { doAs } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import {
  declared,
  DIGITS,
  findColumnsWith,
  listColumns,
  MARKER,
  runEverything,
  seedPerson,
} from '../person.ts'
import { makeWorkspace } from '../servers.ts'

const isDeclared = (name: string): boolean => {
  const [table, column] = name.split('.')
  const entry = declared[table!]
  return entry !== undefined && entry !== 'none' && entry.columns.includes(column!)
}

everyDatabase('What is held on a person', (server) => {
  it('is declared for every table of the schema, with columns that it has', async () => {
    const columns = await listColumns(server().db)
    const inSchema = [...new Set(columns.map(({ table }) => table))].filter((table) => table !== 'migrations')
    assert.deepEqual(
      [...new Set([...inSchema, ...Object.keys(tables)])].filter((table) => declared[table] === undefined),
      [],
      'say in storage/privacy/personal-data.ts what these tables hold of customers',
    )
    const missing = Object.entries(declared).flatMap(([table, entry]) =>
      (entry === 'none' ? [] : entry.columns)
        .filter((column) => !Object.keys(tables[table as keyof typeof tables] ?? {}).includes(column))
        .map((column) => `${table}.${column}`),
    )
    assert.deepEqual(missing, [])
  })

  it('is in no column that is not declared, whatever was done with the person', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedPerson(server(), workspace)
    const answered = await runEverything(world, doorsOf(server().url, workspace.owner.key))
    await server().settle()
    assert.ok(answered.size > catalog.length * 0.75, `${answered.size} of ${catalog.length} answered`)
    const found = await findColumnsWith(server().db, [MARKER, DIGITS])
    const expected = ['contacts.phone', 'contact_facts.metadata', 'messages.text', 'events.data']
    for (const name of [...expected, 'approvals.input', 'saved_filters.filter', 'sandbox_messages.body'])
      assert.ok(found.includes(name), `${name} is not among ${found.join(', ')}`)
    assert.deepEqual(
      found.filter((name) => !isDeclared(name)),
      [],
    )
  })

  it('leaves with the contact where the declaration says so', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedPerson(server(), workspace)
    const contactId = world.ids['contacts']![0]!
    await doAs(server(), workspace.owner.key)('crm_delete_contact', { contact_id: contactId })
    for (const [table, entry] of Object.entries(declared)) {
      if (entry === 'none' || entry.onDelete === 'kept') continue
      const idColumn = table === 'contacts' ? 'id' : 'contact_id'
      const { rows } = await sql`
        select 1 from ${sql.table(table)}
        where workspace_id = ${workspace.id} and ${sql.ref(idColumn)} = ${contactId}`.execute(server().db)
      assert.equal(rows.length, 0, table)
    }
  })
})

const treatments = { cleared: 'cleared', pseudonym: 'the id stays', expires: 'expires' } as const

/** What an erasure does: to all columns, where it is the same. */
const describeErasure = ({ erase }: PersonalData): string => {
  if (erase === 'remove') return 'removed'
  const kinds = Object.entries(erase as Record<string, keyof typeof treatments>)
  if (new Set(kinds.map(([, kind]) => kind)).size === 1) return treatments[kinds[0]![1]]
  return kinds.map(([column, kind]) => `\`${column}\`: ${treatments[kind]}`).join(', ')
}

/** What an export has: all columns but some, with the rows of another table, or nothing. */
const describeExported = ({ exported }: PersonalData): string => {
  if (exported.not !== undefined) return `no: ${exported.not}`
  const { in: holder, without = {} } = exported
  const left = Object.entries(without as Record<string, string>)
  const kinds = [...new Set(left.map(([, reason]) => reason))].map((reason) => {
    const columns = left.filter(([, one]) => one === reason).map(([column]) => `\`${column}\``)
    return `without ${columns.join(', ')}: ${reason}`
  })
  return [holder === undefined ? 'yes' : `in \`${holder}\``, ...kinds].join('; ')
}

it('Every column has its treatment on an erasure', () => {
  for (const [table, entry] of Object.entries(declared)) {
    if (entry === 'none' || entry.erase === 'remove') continue
    assert.deepEqual(Object.keys(entry.erase).sort(), [...entry.columns].sort(), table)
  }
})

it('The guide of privacy shows what is declared', () => {
  const guide = readFileSync(new URL('../../docs/privacy.md', import.meta.url), 'utf8')
  const words = { removed: 'removed', unlinked: 'loses the contact', kept: 'stays' }
  const rows = Object.entries(declared).flatMap(([table, entry]) => {
    if (entry === 'none') return []
    const columns = entry.columns.map((column) => `\`${column}\``).join(', ')
    const erased = describeErasure(entry)
    const exported = describeExported(entry)
    return [
      `| \`${table}\` | ${columns} | ${words[entry.onDelete]} | ${erased} | ${exported} | ${entry.until} |`,
    ]
  })
  assert.deepEqual(
    guide.split('\n').filter((line) => line.startsWith('| `')),
    rows,
  )
})
