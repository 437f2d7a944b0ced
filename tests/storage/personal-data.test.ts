import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog, type Operation } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import { tables } from '../../storage/database.ts'
import { type PersonalData, personalData } from '../../storage/personal-data.ts'
import { callAs, doAs } from '../calls.ts'
import { type Door, doorsOf, everyDatabase } from '../doors.ts'
import { createSandboxDriver } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { buildExampleInputs, seedWorld, type World } from '../world.ts'

const operations: readonly Operation[] = catalog
const declared: Readonly<Record<string, PersonalData | 'none'>> = personalData

/** What only the person has: in names, texts and values, and in phones. */
const MARKER = 'quillbymark'
const DIGITS = '5557719204'

/** The schema's tables, partitions as their table, and every column that can hold a text or bytes. */
const listColumns = async (db: Db): Promise<{ table: string; column: string; type: string }[]> =>
  (
    await sql<{ table: string; column: string; type: string }>`
      select i.table_name as table, i.column_name as column, i.data_type as type
      from information_schema.columns i join pg_class c
        on c.relname = i.table_name and c.relnamespace = 'public'::regnamespace
      where i.table_schema = 'public' and c.relkind in ('r', 'p') and not c.relispartition
        and i.data_type in ('text', 'ARRAY', 'json', 'jsonb', 'bytea', 'bigint', 'numeric')`.execute(db)
  ).rows

/** Returns the columns of the whole database that hold one of the texts: as it is, spaced, folded or as bytes. */
const findColumnsWith = async (db: Db, texts: readonly string[]): Promise<string[]> => {
  const found: string[] = []
  for (const { table, column, type } of await listColumns(db)) {
    const value = sql.ref(column)
    const hits = texts.flatMap((text) => [
      sql<boolean>`strpos(regexp_replace(lower(${value}::text), '[^a-z0-9]', '', 'g'), ${text}) > 0`,
      ...(type === 'bytea' ? [sql<boolean>`position(convert_to(${text}, 'UTF8') in ${value}) > 0`] : []),
    ])
    const { rows } = await sql`
      select 1 from ${sql.table(table)} where ${sql.join(hits, sql` or `)} limit 1`.execute(db)
    if (rows.length > 0) found.push(`${table}.${column}`)
  }
  return found.sort()
}

const isDeclared = (name: string): boolean => {
  const [table, column] = name.split('.')
  const entry = declared[table!]
  return entry !== undefined && entry !== 'none' && entry.columns.includes(column!)
}

/** A world in which inputs name one marked person. */
const seedPerson = async (server: TestServer, workspace: TestWorkspace): Promise<World> => {
  const world = await seedWorld(server, workspace, 'Plain', '0142')
  const run = doAs(server, workspace.owner.key)
  const phone = `+1${DIGITS}`
  const { id } = await run('crm_upsert_contact', {
    phone,
    name: `Ada ${MARKER}`,
    email: `${MARKER}@example.com`,
    external_id: `${MARKER}-7`,
    metadata: { origin: `${MARKER} fair` },
    attributes: { remark: `${MARKER} likes tea` },
  })
  await run('crm_create_saved_filter', { name: 'Her number', filter: { phoneNumber: { eq: phone } } })
  const sandbox = createSandboxDriver(server, workspace)
  await sandbox.say({ from: phone, name: `Ada ${MARKER}`, text: `Good day from ${MARKER}` })
  const conversations = await server.db
    .selectFrom('conversations')
    .select(['id'])
    .where('workspace_id', '=', workspace.id)
    .where('contact_id', '=', id)
    .execute()
  assert.equal(conversations.length, 1)
  // An agent asks before it replies: the call waits for a person.
  const agent = await workspace.staff({ name: 'Mina', role: 'manager' }, { agent: true })
  const text = `Dear ${MARKER}`
  const asked = await callAs(server, agent.key)('messaging_send_reply', {
    conversation_id: conversations[0]!.id,
    text,
  })
  assert.equal(asked.status, 202, asked.text)
  const ids = { ...world.ids, contacts: [id, ...world.ids['contacts']!] }
  return { ...world, ids: { ...ids, conversations: [conversations[0]!.id, ...world.ids['conversations']!] } }
}

/** Puts the marker into texts of inputs about the contact or a conversation, and the person's phone into phones. */
const markInput = (input: Record<string, unknown>): Record<string, unknown> => {
  const isAboutPerson = input['contact_id'] !== undefined || input['conversation_id'] !== undefined
  const mark = (field: string, value: unknown): unknown => {
    if (field === 'phone') return `+1${DIGITS}`
    const isText = field === 'text' || field === 'close_reason' || field === 'reason'
    return isText && isAboutPerson ? `${MARKER} ${String(value)}` : value
  }
  return Object.fromEntries(Object.entries(input).map(([field, value]) => [field, mark(field, value)]))
}

/** Runs every operation for the person, those that delete last. Returns the names of those that answered. */
const runEverything = async (world: World, doors: readonly Door[]): Promise<Set<string>> => {
  const answered = new Set<string>()
  const isLast = (op: Operation): boolean => op.confirm !== undefined || op.name === 'crm_merge_contacts'
  const ordered = [...operations.filter((op) => !isLast(op)), ...operations.filter(isLast)]
  for (const [n, op] of ordered.entries()) {
    if (op.name === 'crm_delete_contact') continue
    for (const input of buildExampleInputs(world, op).map(markInput)) {
      const reply = await doors[n % 2]!.call(op.name, input, {
        ...(op.dryRun ? { idempotencyKey: `person-${crypto.randomUUID()}` } : {}),
        ...(op.confirm ? { confirm: op.confirm } : {}),
      })
      assert.ok(reply.status < 500, `${op.name}: ${reply.text}`)
      if (reply.status < 300) answered.add(op.name)
    }
  }
  return answered
}

everyDatabase('What is held on a person', (server) => {
  it('is declared for every table of the schema, with columns that it has', async () => {
    const columns = await listColumns(server().db)
    const inSchema = [...new Set(columns.map(({ table }) => table))].filter(
      (table) => !['migrations', 'migrations_lock'].includes(table),
    )
    assert.deepEqual(
      [...new Set([...inSchema, ...Object.keys(tables)])].filter((table) => declared[table] === undefined),
      [],
      'say in storage/personal-data.ts what these tables hold of customers',
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
    assert.ok(answered.size > operations.length * 0.75, `${answered.size} of ${operations.length} answered`)
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

it('The guide of privacy shows what is declared', () => {
  const guide = readFileSync(new URL('../../docs/privacy.md', import.meta.url), 'utf8')
  const words = { removed: 'removed', unlinked: 'loses the contact', kept: 'stays' }
  const rows = Object.entries(declared).flatMap(([table, entry]) => {
    if (entry === 'none') return []
    const columns = entry.columns.map((column) => `\`${column}\``).join(', ')
    return [`| \`${table}\` | ${columns} | ${words[entry.onDelete]} | ${entry.until} |`]
  })
  assert.deepEqual(
    guide.split('\n').filter((line) => line.startsWith('| `')),
    rows,
  )
})
