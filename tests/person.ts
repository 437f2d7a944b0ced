import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { catalog, type Operation } from '../catalog/index.ts'
import type { Db } from '../storage/database.ts'
import { personalData } from '../storage/privacy/personal-data.ts'
import type { PersonalData } from '../storage/privacy/personal-data-types.ts'
import { callAs, doAs } from './calls.ts'
import type { Door } from './doors.ts'
import { createSandboxDriver } from './messaging/fixtures.ts'
import type { TestServer, TestWorkspace } from './servers.ts'
import { buildExampleInputs, seedWorld, type World } from './world.ts'

/* Creates a marked person, runs every operation on them, and searches the whole database for their data. */

export const declared: Readonly<Record<string, PersonalData | 'none'>> = personalData

/** The unique markers of the person: in names, texts and values, and in phones. */
export const MARKER = 'quillbymark'
export const DIGITS = '5557719204'

/** The schema's tables, partitions as their table, and every column that can hold a text or bytes. */
export const listColumns = async (db: Db): Promise<{ table: string; column: string; type: string }[]> =>
  (
    await sql<{ table: string; column: string; type: string }>`
      select i.table_name as table, i.column_name as column, i.data_type as type
      from information_schema.columns i join pg_class c
        on c.relname = i.table_name and c.relnamespace = 'public'::regnamespace
      where i.table_schema = 'public' and c.relkind in ('r', 'p') and not c.relispartition
        and i.data_type in ('text', 'ARRAY', 'json', 'jsonb', 'bytea', 'bigint', 'numeric')`.execute(db)
  ).rows

/** Returns the columns of the whole database that hold one of the texts: as it is, spaced, folded or as bytes. */
export const findColumnsWith = async (db: Db, texts: readonly string[]): Promise<string[]> => {
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

/** A world in which inputs name one marked person. */
export const seedPerson = async (server: TestServer, workspace: TestWorkspace): Promise<World> => {
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

/** Runs every operation for the person, deletions last. Returns the names of those that succeeded. */
export const runEverything = async (world: World, doors: readonly Door[]): Promise<Set<string>> => {
  const answered = new Set<string>()
  const isLast = (op: Operation): boolean => op.confirm !== undefined || op.name === 'crm_merge_contacts'
  const ordered = [...catalog.filter((op) => !isLast(op)), ...catalog.filter(isLast)]
  for (const [n, op] of ordered.entries()) {
    if (op.name.startsWith('crm_delete_contact') || op.name === 'crm_erase_contact') continue
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

/** Runs the job until the erasures of a workspace are done. */
export const finishErasures = async (server: TestServer, workspaceId: string): Promise<void> => {
  // It waits for transactions of other tests, which may take long.
  const end = performance.now() + 60_000
  while (performance.now() < end) {
    await sql`
      update runs set run_after = clock_timestamp()
      where workspace_id = ${workspaceId} and kind = 'erasures'`.execute(server.db)
    await server.app.jobs.job('erasures').runOnce()
    if (server.app.media) await server.app.jobs.job('file-removal').runOnce()
    const { rows } = await sql`
      select from erasures where workspace_id = ${workspaceId} and state = 'running'`.execute(server.db)
    if (rows.length === 0) return
  }
  const { rows } = await sql`
    select r.step, r.position, e.is_repeated, e.subject,
      (select json_agg(d) from media d where d.state = 'lost' and d.key is not null) as files,
      (select json_agg(p) from export_parts p where p.workspace_id = e.workspace_id) as parts,
      (select json_agg(json_build_object('id', x.id, 'kind', x.kind, 'state', x.state, 'contact_id', x.contact_id))
        from exports x where x.workspace_id = e.workspace_id) as exports
    from erasures e join runs r on r.workspace_id = e.workspace_id and r.kind = 'erasures' and r.subject = e.id::text
    where e.workspace_id = ${workspaceId} and e.state = 'running'`.execute(server.db)
  assert.fail(`an erasure does not end: ${JSON.stringify(rows)}`)
}
