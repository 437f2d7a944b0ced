import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs, doAs } from '../calls.ts'
import { listContacts, useImportFiles } from '../cli/import-files.ts'
import { everyDatabase, everyDoor, runCli } from '../doors.ts'
import { startS3 } from '../media/s3.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { finishErasures } from '../person.ts'
import { makeWorkspace, startWithOptions, type TestServer } from '../servers.ts'
import { sha256 } from './archive.ts'
import { download, finishExports } from './files.ts'

const files = useImportFiles()
const EVERYBODY = { filter: {}, all: true }

/** Exports contacts. Returns the export as it is then, and the file. */
const exportFile = async (server: TestServer, key: string, input: Record<string, unknown>) => {
  const run = doAs(server, key)
  const { export: made } = await run('crm_export_contacts', input)
  await finishExports(server)
  const shown = await run('crm_get_export', { export_id: made.id })
  assert.deepEqual([shown.state, shown.progress], ['done', 1], shown.problem)
  const bytes = await download(shown.url)
  assert.deepEqual([bytes.length, sha256(bytes)], [shown.size, shown.sha256])
  return { shown, text: bytes.toString() }
}

/** What the command line writes of the same contacts with the same key. */
const exportByPages = async (server: TestServer, key: string, argv: readonly string[]): Promise<string> => {
  const { exit, stdout, stderr } = await runCli(['contacts', 'export', ...argv], files.envFor(server, key))
  assert.equal(exit, 0, stderr)
  return stdout
}

const fields = [
  { key: 'city', type: 'text' },
  { key: 'score', type: 'decimal' },
  { key: 'born', type: 'datetime' },
  { key: 'note', type: 'textarea', visibility: 'manager_only' },
  { key: 'mobile', type: 'phone' },
]

/** Contacts with all that a line can have, of which some is hidden from some. */
const seedContacts = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  for (const field of fields) await run('crm_create_custom_field', field)
  const { group } = await run('crm_create_group', { name: 'Club; "A"' })
  const phone = generatePhone()
  await run('crm_upsert_contact', {
    phone,
    name: '=Ada, "Countess"',
    email: 'ada@example.com',
    tags: ['VIP', 'a, b'],
    group_ids: [group.id],
    metadata: { source: 'Fair' },
    attributes: {
      city: 'Löbau\nSachsen',
      score: '-12.5',
      born: '2026-02-28T12:30:15.123Z',
      note: 'secret',
      mobile: generatePhone(),
    },
  })
  for (const name of ['Grace', 'Alan', '漢 🙂'])
    await run('crm_upsert_contact', { phone: generatePhone(), name, tags: ['Fair'] })
  await createSandboxDriver(server, workspace).say({ from: phone, text: 'Hello' })
  return { workspace, run }
}

const countRows = async (server: TestServer, table: string, exportId: string): Promise<number> =>
  (await sql`select from ${sql.table(table)} where export_id = ${exportId}`.execute(server.db)).rows.length

everyDoor('An export of contacts', (test) => {
  test('is rehearsed, made, listed and downloaded', async ({ call, server }) => {
    for (const name of ['Ada', 'Grace', 'Alan'])
      await call('crm_upsert_contact', { phone: generatePhone(), name, starred: name !== 'Alan' })
    const filter = { starred: { eq: true } }
    const { export: rehearsed } = (await call('crm_export_contacts', { filter, dry_run: true })).body
    assert.deepEqual(
      [rehearsed.id, rehearsed.file_name, rehearsed.contacts.total],
      [null, 'contacts-export.csv', 2],
    )
    assert.deepEqual((await call('crm_list_exports', {})).body.data, [])

    const { status, body } = await call('crm_export_contacts', { filter })
    assert.deepEqual([status, body.export.kind, body.export.contacts.total], [202, 'contacts', 2])
    await finishExports(server)
    const shown = await call('crm_get_export', { export_id: body.export.id })
    const { url, url_expires_at: _, ...made } = shown.body
    assert.deepEqual([made.state, made.file_name], ['done', `contacts-export-${made.id}.csv`])
    assert.deepEqual(made.contacts, { format: 'csv', total: 2, done: 2, written: 2, truncated: 0 })
    assert.deepEqual((await call('crm_list_exports', {})).body.data, [made])
    const answer = await fetch(url)
    assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8')
    assert.match(answer.headers.get('content-disposition')!, /contacts-export-\d+\.csv/)
    assert.match(await answer.text(), /^id,name,[^\r]+\r\n\d+,Grace,[^\r]+\r\n\d+,Ada,[^\r]+\r\n$/)
    const { data: audited } = (await call('audit_list', { operation: 'crm_get_export', limit: 10 })).body
    assert.ok(audited.some(({ changes }: any) => changes?.downloaded === 'whole'))
  })

  test('says what is wrong', async ({ call, as, workspace }) => {
    const { id } = (await call('crm_upsert_contact', { phone: generatePhone() })).body.contact
    for (const [input, status, field] of [
      [{}, 400, undefined],
      [{ filter: {} }, 400, '#/filter'],
      [{ filter: { starred: { eq: true } }, all: true }, 400, '#/all'],
      [{ filter: { nosuch: { eq: 1 } } }, 400, undefined],
      [{ ...EVERYBODY, format: 'xlsx' }, 400, '#/format'],
      [{ contact_ids: [id], saved_filter_id: '1' }, 400, undefined],
      [{ contact_ids: [] }, 400, '#/contact_ids'],
      [{ contact_ids: [id, '999999999'] }, 404, undefined],
      [{ saved_filter_id: '999999999' }, 404, undefined],
    ] as const)
      for (const dryRun of [true, false]) {
        const refused = await call('crm_export_contacts', { ...input, ...(dryRun ? { dry_run: true } : {}) })
        assert.equal(refused.status, status, `${JSON.stringify(input)}: ${refused.text}`)
        if (field) assert.equal(refused.body.errors[0].pointer, field, refused.text)
      }
    const writer = await workspace.key(workspace.owner.staffId, { scopes: ['crm:write'] })
    const { status, body } = await as(writer.key)('crm_export_contacts', { contact_ids: [id] })
    assert.deepEqual([status, body.code], [403, 'insufficient_scope'])
    const hidden = await workspace.staff({ name: 'Eva', role: 'agent' }, { phones: false })
    const byPhone = { filter: { phoneNumber: { startsWith: '1555' } }, dry_run: true }
    assert.equal((await as(hidden.key)('crm_export_contacts', byPhone)).body.reason, 'phone_hidden')
    assert.deepEqual((await call('crm_list_exports', {})).body.data, [])
  })
})

everyDatabase('The file of contacts', (server) => {
  it('has the bytes of the command line for whoever asks, and is imported whole', async () => {
    const { workspace } = await seedContacts(server())
    const keys = {
      owner: workspace.owner.key,
      hidden: (await workspace.staff({ name: 'Ida', role: 'agent' }, { phones: false })).key,
      limited: (await workspace.staff({ name: 'Uma', role: 'agent', channel_ids: [] } as never)).key,
    }
    const texts: Record<string, string> = {}
    for (const [who, key] of Object.entries(keys))
      for (const format of ['csv', 'jsonl']) {
        const { text } = await exportFile(server(), key, { ...EVERYBODY, format })
        const flag = format === 'csv' ? 'csv' : 'ndjson'
        assert.equal(text, await exportByPages(server(), key, ['--format', flag]), who)
        texts[`${who} ${format}`] = text
      }
    assert.match(texts['owner csv']!, /attributes\.note.*secret/s)
    assert.doesNotMatch(texts['hidden csv']!, /attributes\.note|secret|source/)
    assert.match(texts['hidden csv']!, /\*\*\*/)
    assert.notEqual(texts['limited jsonl'], texts['owner jsonl'])
    const original = await listContacts(server(), workspace)
    for (const format of ['csv', 'jsonl']) {
      const other = await files.createScene(server(), fields)
      const file = files.writeRows(texts[`owner ${format}`]!, format === 'csv' ? 'csv' : 'ndjson')
      const { exit, summary, stderr } = await other.run([file, '--create-groups'])
      assert.deepEqual([exit, summary.created], [0, 4], stderr)
      assert.deepEqual(await listContacts(server(), other.workspace), original)
    }
  })

  it('has the contacts of a filter, of a saved filter, or of ids, newest first', async () => {
    const { workspace, run } = await seedContacts(server())
    const { key } = workspace.owner
    const filter = { tags: { some: { name: { eq: 'Fair' } } } }
    const { saved_filter: saved } = await run('crm_create_saved_filter', { name: 'Fair', filter })
    const { data } = await run('crm_search_contacts', { filter })
    const ids = data.map((contact: { id: string }) => contact.id)
    assert.equal(ids.length, 3)
    const expected = await exportByPages(server(), key, ['--filter', JSON.stringify(filter)])
    const named = { contact_ids: [ids[2], ids[1], ids[0], ids[1]] }
    for (const input of [{ filter }, { saved_filter_id: saved.id }, named])
      assert.equal((await exportFile(server(), key, input)).text, expected)
    const nobody = { filter: { name: { eq: 'nobody' } } }
    const empty = await exportByPages(server(), key, ['--filter', JSON.stringify(nobody.filter)])
    assert.equal((await exportFile(server(), key, nobody)).text, empty)
    assert.equal((await exportFile(server(), key, { ...nobody, format: 'jsonl' })).text, '')
  })

  it('is for the key that asked, and for those from whom nothing is hidden', async () => {
    const { workspace, run } = await seedContacts(server())
    const agent = await workspace.staff({ name: 'Ida', role: 'agent' })
    const { shown } = await exportFile(server(), agent.key, EVERYBODY)
    assert.ok((await run('crm_get_export', { export_id: shown.id })).url)
    const { shown: owners } = await exportFile(server(), workspace.owner.key, EVERYBODY)
    const { data } = await doAs(server(), agent.key)('crm_list_exports')
    assert.equal(data.map(({ id }: { id: string }) => id).join(), shown.id)
    const other = await workspace.key(agent.staffId)
    const limited = await workspace.staff({ name: 'Eva', role: 'manager' }, { phones: false })
    for (const [key, id] of [
      [agent.key, owners.id],
      [other.key, shown.id],
      [limited.key, shown.id],
    ] as const)
      assert.equal((await callAs(server(), key)('crm_get_export', { export_id: id })).status, 404)
    // The file was made for somebody who saw something else.
    await sql`
      update exports set contacts = jsonb_set(contacts, '{view}', '"another"') where id = ${shown.id}`.execute(
      server().db,
    )
    assert.equal((await doAs(server(), agent.key)('crm_get_export', { export_id: shown.id })).url, null)
    assert.ok((await run('crm_get_export', { export_id: shown.id })).url)
  })

  it('has several parts where it is long', async () => {
    const { workspace, run } = await seedContacts(server())
    for (const [from, length] of [
      [0, 500],
      [500, 200],
    ] as const) {
      const rows = Array.from({ length }, (_, n) => ({
        phone: `+1555${3_000_000 + from + n}`,
        metadata: { n: String(n) },
      }))
      await run('crm_import_contacts', { rows })
    }
    await sql`
      update contact_facts set metadata = jsonb_build_object('text', repeat('long ', 1800))
      where workspace_id = ${workspace.id}`.execute(server().db)
    const { key } = workspace.owner
    const { shown, text } = await exportFile(server(), key, EVERYBODY)
    assert.ok(text === (await exportByPages(server(), key, [])))
    assert.deepEqual([shown.contacts.total, shown.contacts.written], [704, 704])
    assert.ok((await countRows(server(), 'export_parts', shown.id)) > 1)
  })

  it('is erased with any person in it', async () => {
    const { workspace, run } = await seedContacts(server())
    const { key } = workspace.owner
    const { data } = await run('crm_search_contacts', {})
    const { shown } = await exportFile(server(), key, EVERYBODY)
    const { shown: others } = await exportFile(server(), key, { contact_ids: [data[1].id] })
    await run('crm_erase_contact', { contact_id: data[0].id })
    const gone = await fetch(shown.url)
    assert.deepEqual([gone.status, ((await gone.json()) as any).reason], [404, 'export_gone'])
    const after = await run('crm_get_export', { export_id: shown.id })
    assert.deepEqual([after.state, after.url, after.sha256, after.size], ['erased', null, null, null])
    assert.equal((await fetch(others.url)).status, 200)
    await finishErasures(server(), workspace.id)
    for (const table of ['export_parts', 'export_batches'])
      assert.equal(await countRows(server(), table, shown.id), 0)
    const { data: erasures } = await run('crm_list_erasures')
    assert.deepEqual(
      erasures[0].tables
        .filter(({ table }: any) => table.startsWith('export'))
        .map(({ table, deleted, cleared }: any) => [table, deleted, cleared]),
      [
        ['export_batches', 1, 0],
        ['export_parts', 1, 0],
        ['exports', 0, 1],
      ],
    )
  })
})

everyDatabase('An export of contacts that waits for its store', (server) => {
  it('is of those who are there then, and of the key as it is then', async () => {
    const s3 = await startS3()
    const running = await startWithOptions(server().database, { media: s3.location('contacts-of') })
    const { db } = running
    try {
      const { workspace, run } = await seedContacts(running)
      const { data } = await run('crm_search_contacts', {})
      const [first, second, third] = data.map(({ id }: { id: string }) => id)
      const agent = await workspace.staff({ name: 'Ida', role: 'agent' })
      const begin = async (key: string, input: Record<string, unknown>): Promise<string> =>
        (await doAs(running, key)('crm_export_contacts', input)).export.id
      s3.fault = 503
      const left = await begin(workspace.owner.key, { filter: { id: { in: [first, second] } } })
      const revoked = await workspace.key(agent.staffId)
      const ids = [
        left,
        await begin(revoked.key, { contact_ids: [second] }),
        await begin(agent.key, { contact_ids: [second] }),
        await begin(workspace.owner.key, { contact_ids: [third] }),
      ]
      await run('crm_update_contact', { contact_id: second, name: 'New name' })
      await run('crm_delete_contact', { contact_id: first })
      await run('crm_erase_contact', { contact_id: third })
      await sql`update api_keys set revoked_at = now() where id = ${revoked.keyId}`.execute(db)
      await sql`update api_keys set phones = false where id = ${agent.keyId}`.execute(db)
      s3.fault = undefined
      await finishExports(running)
      const states = []
      for (const id of ids) {
        const { state, problem } = await run('crm_get_export', { export_id: id })
        states.push([state, problem?.match(/revoked|changed/)?.[0]].join(' '))
      }
      assert.deepEqual(states, ['done ', 'failed revoked', 'failed changed', 'erased '])
      const shown = await run('crm_get_export', { export_id: left })
      assert.deepEqual([shown.contacts.total, shown.contacts.done, shown.contacts.written], [2, 2, 1])
      const text = (await download(shown.url)).toString()
      assert.deepEqual([text.split('\r\n').length, /New name/.test(text)], [3, true])
      for (const id of ids.slice(1)) assert.equal(await countRows(running, 'export_batches', id), 0)
      await sql`update exports set file_until = now() - interval '1 second' where id = ${left}`.execute(db)
      await running.app.jobs.job('export-retention').runOnce()
      assert.equal((await run('crm_get_export', { export_id: left })).state, 'expired')
      assert.equal(await countRows(running, 'export_batches', left), 0)
    } finally {
      await running.close()
      await s3.close()
    }
  })
})

everyDatabase("An export of contacts by an agent's key", (server) => {
  it('waits for a person, and is made when they approve', async () => {
    const { ask, person, work } = await createAgentScene(server())
    await person('crm_upsert_contact', { phone: generatePhone(), name: 'Ada' })
    const asked = await ask('crm_export_contacts', EVERYBODY)
    assert.deepEqual([asked.status, asked.body.approval?.status], [202, 'pending'], asked.text)
    const { status, text } = await person('approvals_approve', { approval_id: asked.body.approval.id })
    assert.equal(status, 200, text)
    await work()
    await finishExports(server())
    const [made] = (await person('crm_list_exports', {})).body.data
    assert.deepEqual([made.kind, made.state], ['contacts', 'done'])
    assert.ok((await ask('crm_get_export', { export_id: made.id })).body.url)
  })

  it('is the only one whose file it gets', async () => {
    const { ask, as, person, work, manager, workspace } = await createAgentScene(server())
    const own = (await ask('crm_export_contacts', EVERYBODY)).body.approval
    await person('approvals_approve', { approval_id: own.id })
    await work()
    await finishExports(server())
    const [mine] = (await person('crm_list_exports', {})).body.data
    const { shown } = await exportFile(server(), workspace.owner.key, EVERYBODY)
    const other = await workspace.key(manager.staffId, { agent: true })
    const colleague = await workspace.key(manager.staffId)
    const urlOf = async (call: typeof ask, id: string): Promise<string | null> =>
      (await call('crm_get_export', { export_id: id })).body.url
    assert.ok((await urlOf(ask, mine.id)) && (await urlOf(as(colleague.key), shown.id)))
    assert.deepEqual([await urlOf(ask, shown.id), await urlOf(as(other.key), mine.id)], [null, null])
  })

  it('has the contacts that the person was shown, and no others', async () => {
    const { ask, person, work, workspace } = await createAgentScene(server())
    const add = async (name: string): Promise<string> =>
      (await person('crm_upsert_contact', { phone: generatePhone(), name })).body.contact.id
    const [shown, later] = [await add('Ada'), await add('Bob')]
    await person('crm_tag_contacts', { contact_ids: [shown], tags: ['Guests'] })
    const filter = { tags: { some: { name: { eq: 'Guests' } } } }
    const { body } = await ask('crm_export_contacts', { filter })
    const { summary } = (await person('approvals_get', { approval_id: body.approval.id })).body
    assert.ok(summary.includes('Contacts: 1'), summary.join('\n'))
    assert.match(summary.join('\n'), /The filter means: .*Guests/)
    assert.equal((await ask('crm_tag_contacts', { contact_ids: [later], tags: ['Guests'] })).status, 200)
    await person('approvals_approve', { approval_id: body.approval.id })
    await work()
    await finishExports(server())
    const [made] = (await person('crm_list_exports', {})).body.data
    assert.deepEqual([made.state, made.contacts.total, made.contacts.written], ['done', 1, 1])
    // Nothing of the plan is left.
    const plans = await server()
      .db.selectFrom('bulk_jobs')
      .select('id')
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual(plans, [])
  })
})
