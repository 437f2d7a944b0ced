import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { startS3, type TestS3 } from '../media/s3.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import {
  declared,
  DIGITS,
  findColumnsWith,
  finishErasures,
  MARKER,
  runEverything,
  seedPerson,
} from '../person.ts'
import { exportPartKey } from '../../server/media-store.ts'
import { insertPart, listParts } from '../../storage/work/exports.ts'
import { makeWorkspace, startWithOptions, type TestServer } from '../servers.ts'
import { loadWorkspaceRows } from '../world.ts'
import { readPersonArchive, sha256 } from './archive.ts'
import { download, finishExports } from './files.ts'

/** Exports a contact. Returns the export as it is then, and what is in the file. */
const exportContact = async (server: TestServer, key: string, contactId: string) => {
  const run = doAs(server, key)
  const { export: made } = await run('crm_export_person', { contact_id: contactId })
  await finishExports(server)
  const shown = await run('crm_get_export', { export_id: made.id })
  assert.equal(shown.state, 'done')
  const bytes = await download(shown.url)
  assert.deepEqual([bytes.length, sha256(bytes)], [shown.size, shown.sha256])
  return { shown, bytes, ...readPersonArchive(bytes) }
}

everyDoor('An export of a person', (test) => {
  test('is rehearsed, made, listed and downloaded', async ({ call, server, workspace }) => {
    const { id } = (
      await call('crm_upsert_contact', { phone: generatePhone(), name: 'Ada Lovelace', tags: ['VIP'] })
    ).body.contact
    const input = { contact_id: id }
    const before = await loadWorkspaceRows(server.db, workspace.id)
    const { body: rehearsed } = await call('crm_export_person', { ...input, dry_run: true })
    assert.deepEqual([rehearsed.export.id, rehearsed.file_bytes], [null, 0])
    assert.deepEqual(rehearsed.sample, { contact_id: id, name: 'Ada Lovelace' })
    assert.deepEqual(
      rehearsed.export.tables.filter(({ table }: { table: string }) => table === 'contact_tags'),
      [{ table: 'contact_tags', rows: 1 }],
    )
    assert.deepEqual(await loadWorkspaceRows(server.db, workspace.id), before)

    const { status, body } = await call('crm_export_person', input)
    assert.deepEqual([status, body.export.contact_id, body.sample], [202, id, undefined])
    await finishExports(server)
    const {
      url,
      url_expires_at: _,
      ...shown
    } = (await call('crm_get_export', { export_id: body.export.id })).body
    assert.deepEqual([shown.state, shown.progress], ['done', 1])
    assert.deepEqual((await call('crm_list_exports', {})).body.data, [shown])
    assert.deepEqual((await call('crm_list_exports', { contact_id: id, state: 'running' })).body.data, [])
    const bytes = await download(url)
    assert.deepEqual([bytes.length, sha256(bytes)], [shown.size, shown.sha256])
    const { rowsOf } = readPersonArchive(bytes)
    assert.equal(rowsOf('contacts')[0].name, 'Ada Lovelace')
    assert.equal(rowsOf('contact_tags')[0].tag, 'VIP')

    // While one is being made, there is no second one.
    await sql`update exports set state = 'running' where id = ${shown.id}`.execute(server.db)
    assert.equal((await call('crm_export_person', input)).body.export.id, shown.id)
    await sql`update exports set state = 'failed' where id = ${shown.id}`.execute(server.db)
    assert.equal((await call('crm_get_export', { export_id: shown.id })).body.url, null)
    assert.equal((await call('crm_export_person', { contact_id: '999999999' })).status, 404)
    assert.equal((await call('crm_get_export', { export_id: '999999999' })).status, 404)
  })

  test('is for those from whom nothing is hidden', async ({ call, as, workspace, server }) => {
    const { id } = (await call('crm_upsert_contact', { phone: generatePhone() })).body.contact
    const { export: made } = (await call('crm_export_person', { contact_id: id })).body
    await finishExports(server)
    const writer = await workspace.key(workspace.owner.staffId, { scopes: ['crm:write'] })
    const { status, body } = await as(writer.key)('crm_export_person', { contact_id: id, dry_run: true })
    assert.deepEqual([status, body.code], [403, 'insufficient_scope'])
    for (const [staff, reason, options] of [
      [{ name: 'Ida', role: 'agent' }, 'manager_only', {}],
      [{ name: 'Eva', role: 'manager' }, 'phone_hidden', { phones: false }],
      [{ name: 'Uma', role: 'manager', channel_ids: [] }, 'channels_limited', {}],
    ] as const) {
      const limited = as((await workspace.staff(staff as never, options)).key)
      for (const dryRun of [true, false]) {
        const refused = await limited('crm_export_person', { contact_id: id, dry_run: dryRun })
        assert.deepEqual([refused.status, refused.body.reason], [403, reason], staff.name)
      }
      assert.deepEqual((await limited('crm_list_exports', {})).body, { data: [], next_cursor: null })
      assert.equal((await limited('crm_get_export', { export_id: made.id })).status, 404)
    }
  })
})

const mediaFolder = mkdtempSync(join(tmpdir(), 'wcrm-exports-'))
process.once('exit', () => rmSync(mediaFolder, { recursive: true, force: true }))
const listExportFiles = (): string[] =>
  readdirSync(mediaFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes('exports'))
    .map((entry) => join(entry.parentPath, entry.name))

/** A person with a message that has a file. */
const seedWithFile = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const world = await seedPerson(server, workspace)
  const data = Buffer.from(`a file of ${MARKER}`)
  const document = {
    data: data.toString('base64'),
    filename: `${MARKER}.pdf`,
    caption: MARKER,
    mime_type: 'application/pdf',
  }
  await createSandboxDriver(server, workspace).say({
    from: `+1${DIGITS}`,
    message: { type: 'document', document },
  })
  await server.app.jobs.job('media-downloads').runOnce()
  return { workspace, world, data, contactId: world.ids['contacts']![0]!, key: workspace.owner.key }
}

/** Whether a value has the marked person in it, as `findColumnsWith` looks for them. */
const isMarked = (value: unknown): boolean => {
  const text = JSON.stringify(value ?? null)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
  return text.includes(MARKER) || text.includes(DIGITS)
}

everyDatabase(
  'The archive of a person',
  (server) => {
    it('has what is in every column that is declared, and says what it leaves out', async () => {
      const { workspace, world, data, key } = await seedWithFile(server())
      await runEverything(world, doorsOf(server().url, key))
      await server().settle()
      const found = await findColumnsWith(server().db, [MARKER, DIGITS])
      const { rows: own } = await sql<{ id: string }>`
        select id from contacts where workspace_id = ${workspace.id}
          and (strpos(search, ${MARKER}) > 0 or strpos(search, ${DIGITS}) > 0)`.execute(server().db)
      assert.ok(own.length > 0)
      const archives = []
      for (const { id } of own) archives.push(await exportContact(server(), key, id))
      const missing: string[] = []
      for (const name of found) {
        const [table, column] = name.split('.') as [string, string]
        const entry = declared[table]!
        assert.ok(entry !== 'none', table)
        if (entry.exported.not !== undefined || column in (entry.exported.without ?? {})) continue
        const holder = entry.exported.in ?? table
        const rows = archives.flatMap(({ rowsOf }) => rowsOf(holder))
        const nested = { message_reactions: 'reactions', media: 'media', webhook_attempts: 'made' }[table]
        const values = nested ? rows.flatMap((row) => row[nested] ?? []) : rows
        if (!values.some((row) => isMarked(row[column]))) missing.push(name)
      }
      assert.deepEqual(missing, [])
      const files = archives.flatMap((archive) => [...archive.files])
      assert.ok(files.some(([name, bytes]) => name.endsWith(`-${MARKER}.pdf`) && bytes.equals(data)))
      for (const { manifest } of archives)
        assert.deepEqual(
          manifest.tables.map(({ table }: { table: string }) => table).sort(),
          Object.keys(declared)
            .filter((table) => declared[table] !== 'none')
            .sort(),
        )
    })

    it('has nothing of other people', async () => {
      const { workspace, contactId, key } = await seedWithFile(server())
      const run = doAs(server(), key)
      const [phone, name] = [generatePhone(), 'Grace Zzyzxhopper']
      const { contact: other } = await run('crm_upsert_contact', {
        phone,
        name,
        email: 'zzyzxhopper@example.com',
      })
      // What tells of both at once, and what another writes about the person.
      const both = [contactId, other.id]
      await run('crm_tag_contacts', { contact_ids: both, tags: ['Fair'] })
      const rows = [{ phone: `+1${DIGITS}` }, { phone, name }, { phone: '12', name }]
      await run('crm_import_contacts', { rows })
      await run('crm_update_contacts', { contact_ids: both, starred: true })
      const sandbox = createSandboxDriver(server(), workspace)
      await sandbox.say({ from: phone, name, text: `Call Zzyzxhopper or her at +1${DIGITS}` })
      await run('crm_create_saved_filter', {
        name: 'Zzyzxhopper and her',
        filter: { or: [{ phoneNumber: { eq: phone } }, { phoneNumber: { eq: `+1${DIGITS}` } }] },
      })
      await sql`
        with j as (insert into bulk_jobs (workspace_id, state, operation, input, staff_id, key_id, door, request_id,
            created_at, total)
          values (${workspace.id}, 'done', 'crm_untag_contacts', '{}', 1, 1, 'rest', 'req_1', now(), 2) returning id)
        insert into bulk_job_batches (workspace_id, job_id, no, record_ids, failures)
        select ${workspace.id}, id, 0, ${both}::bigint[],
          ${JSON.stringify(both.map((id) => ({ id, code: 'not_found', message: 'No contact.' })))}::text::jsonb
        from j`.execute(server().db)
      const { data: texted } = await run('inbox_search_conversations', { query: phone })
      assert.equal(texted.length, 1)
      await server().settle()
      const { files, rowsOf } = await exportContact(server(), key, contactId)
      for (const [file, bytes] of files) {
        const text = bytes.toString().toLowerCase()
        assert.ok(!text.includes('zzyzx') && !text.includes(phone), `${file}: ${text}`)
      }
      assert.ok(rowsOf('events').some(({ type }) => type === 'contact.tags_added/1'))
      assert.equal(rowsOf('contact_tags')[0].tag, 'Fair')
      const [batch] = rowsOf('bulk_job_batches')
      assert.deepEqual([batch.operation, batch.record_ids], ['crm_untag_contacts', [contactId]])
      assert.ok(!JSON.stringify(batch.failures ?? []).includes(`"${other.id}"`))
    })

    it('is erased with the person at once, and its files', async () => {
      const { workspace, contactId, key } = await seedWithFile(server())
      const { shown } = await exportContact(server(), key, contactId)
      assert.ok(listExportFiles().length > 3)
      for (const file of listExportFiles()) assert.equal(statSync(file).mode & 0o077, 0)
      const run = doAs(server(), key)
      await run('crm_erase_contact', { contact_id: contactId })
      const gone = await fetch(shown.url)
      assert.deepEqual([gone.status, ((await gone.json()) as any).reason], [404, 'export_gone'])
      const after = await run('crm_get_export', { export_id: shown.id })
      assert.deepEqual([after.state, after.url, after.sha256, after.size], ['erased', null, null, null])
      await finishErasures(server(), workspace.id)
      const { rows } = await sql`select from export_parts where workspace_id = ${workspace.id}`.execute(
        server().db,
      )
      assert.equal(rows.length, 0)
      assert.deepEqual(
        listExportFiles().filter((file) => file.includes(`exports/${workspace.id}/`)),
        [],
      )
      const { data } = await run('crm_list_erasures')
      const parts = data[0].tables.find(({ table }: { table: string }) => table === 'export_parts')
      assert.ok(parts.deleted > 3)
    })

    it('is deleted after a week, and forgotten after a month', async () => {
      const { workspace, contactId, key } = await seedWithFile(server())
      const { shown } = await exportContact(server(), key, contactId)
      const keptMs = Date.parse(shown.file_until) - Date.parse(shown.finished_at)
      assert.ok(Math.abs(keptMs - 7 * 86_400_000) < 1000)
      const run = doAs(server(), key)
      const retain = () => server().app.jobs.job('export-retention').runOnce()
      await sql`update exports set file_until = now() - interval '1 second' where id = ${shown.id}`.execute(
        server().db,
      )
      await retain()
      assert.equal((await fetch(shown.url)).status, 404)
      assert.equal((await run('crm_get_export', { export_id: shown.id })).state, 'expired')
      await server().app.jobs.job('file-removal').runOnce()
      assert.deepEqual(
        listExportFiles().filter((file) => file.includes(`exports/${workspace.id}/`)),
        [],
      )
      await sql`update exports set created_at = created_at - interval '31 days' where id = ${shown.id}`.execute(
        server().db,
      )
      await retain()
      assert.equal((await callAs(server(), key)('crm_get_export', { export_id: shown.id })).status, 404)
    })

    it('answers ranges, records every download, and is read by its own URL alone', async () => {
      const { contactId, key } = await seedWithFile(server())
      const { shown, bytes } = await exportContact(server(), key, contactId)
      const middle = Math.floor(bytes.length / 2)
      for (const [range, from, to] of [
        [`bytes=${middle}-`, middle, bytes.length],
        ['bytes=0-9', 0, 10],
        [`bytes=10-${middle}`, 10, middle + 1],
        ['bytes=-5', bytes.length - 5, bytes.length],
      ] as const) {
        const answer = await fetch(shown.url, { headers: { Range: range } })
        assert.equal(answer.status, 206)
        assert.equal(answer.headers.get('content-range'), `bytes ${from}-${to - 1}/${bytes.length}`)
        assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes.subarray(from, to))
      }
      const beyond = await fetch(shown.url, { headers: { Range: `bytes=${bytes.length}-` } })
      assert.equal(beyond.status, 416)
      const head = await fetch(shown.url, { method: 'HEAD', headers: { Range: 'bytes=0-9' } })
      const etag = head.headers.get('etag')!
      assert.deepEqual(
        [head.status, head.headers.get('content-length'), etag, await head.text()],
        [200, String(bytes.length), `"${shown.sha256}"`, ''],
      )
      assert.equal((await fetch(shown.url, { headers: { 'If-None-Match': etag } })).status, 304)
      const resume = { Range: 'bytes=0-1' }
      const same = await fetch(shown.url, { headers: { ...resume, 'If-Range': etag } })
      assert.deepEqual([same.status, (await same.arrayBuffer()).byteLength], [206, 2])
      const other = await fetch(shown.url, { headers: { ...resume, 'If-Range': '"other"' } })
      assert.deepEqual([other.status, (await other.arrayBuffer()).byteLength], [200, bytes.length])
      const run = doAs(server(), key)
      const { data } = await run('audit_list', { operation: 'crm_get_export', limit: 100 })
      const downloads = data.filter(({ target }: any) => target.id === shown.id)
      assert.deepEqual(
        downloads.map(({ changes }: any) => changes.downloaded),
        ['whole', 'bytes=0-1', 'bytes=-5', `bytes=10-${middle}`, 'bytes=0-9', `bytes=${middle}-`, 'whole'],
      )
      const ids = downloads.slice(0, 2).map(({ request_id: id }: any) => id)
      assert.deepEqual(ids, [other.headers.get('request-id'), same.headers.get('request-id')])
      const tampered = await fetch(`${shown.url.slice(0, -4)}AAAA`)
      assert.deepEqual(
        [tampered.status, ((await tampered.json()) as any).reason],
        [404, 'export_url_expired'],
      )
      const token = shown.url.slice(shown.url.lastIndexOf('/') + 1)
      assert.equal((await fetch(`${server().url}/media/${token}`)).status, 404)
    })

    it('leaves nothing of what a server wrote that died', async () => {
      const { workspace, contactId, key } = await seedWithFile(server())
      const { shown } = await exportContact(server(), key, contactId)
      const { db, app } = server()
      const parts = await listParts(db, workspace.id, shown.id)
      // Written, and never counted.
      const id = await insertPart(db, workspace.id, shown.id, -1)
      await app.media!.write(exportPartKey(workspace.id, id), [Buffer.from('lost')])
      assert.equal((await download(shown.url)).length, shown.size)
      await app.jobs.job('file-removal').runOnce()
      assert.equal(await app.media!.find(exportPartKey(workspace.id, id)), undefined)
      const { rows } = await sql`select from export_parts where export_id = ${shown.id}`.execute(db)
      assert.equal(rows.length, parts.length)
    })
  },
  { dedicated: true, media: mediaFolder },
)

everyDatabase('An export in S3', (server) => {
  let s3: TestS3
  it('is made, waits while the store does not answer, and is erased', async () => {
    s3 = await startS3()
    const running = await startWithOptions(server().database, { media: s3.location('exports-of') })
    try {
      const { workspace, contactId, key } = await seedWithFile(running)
      const run = doAs(running, key)
      s3.requests.length = 0
      const { export: made } = await run('crm_export_person', { contact_id: contactId })
      // In the middle of it.
      while (s3.requests.length < 4) await new Promise(setImmediate)
      s3.fault = 503
      await running.app.jobs.job('exports').runOnce()
      assert.equal((await run('crm_get_export', { export_id: made.id })).state, 'running')
      s3.fault = undefined
      await finishExports(running)
      const shown = await run('crm_get_export', { export_id: made.id })
      const bytes = await download(shown.url)
      assert.equal(sha256(bytes), shown.sha256)
      const { rowsOf } = readPersonArchive(bytes)
      assert.deepEqual([rowsOf('contacts').length, rowsOf('messages').length], [1, 2])
      await run('crm_erase_contact', { contact_id: contactId })
      await finishErasures(running, workspace.id)
      const { rows } = await sql`select from export_parts where workspace_id = ${workspace.id}`.execute(
        running.db,
      )
      assert.equal(rows.length, 0)
    } finally {
      await running.close()
      await s3.close()
    }
  })
})

everyDatabase("An export by an agent's key", (server) => {
  it('waits for a person, and is made when they approve', async () => {
    const scene = await createAgentScene(server())
    const { ask, person, work } = scene
    const { id } = (await person('crm_upsert_contact', { phone: generatePhone(), name: 'Ada' })).body.contact
    const asked = await ask('crm_export_person', { contact_id: id })
    assert.deepEqual([asked.status, asked.body.approval?.status], [202, 'pending'], asked.text)
    assert.equal((await person('crm_list_exports', {})).body.data.length, 0)
    const { status, text } = await person('approvals_approve', { approval_id: asked.body.approval.id })
    assert.equal(status, 200, text)
    await work()
    await finishExports(server())
    const [made] = (await person('crm_list_exports', {})).body.data
    assert.deepEqual([made.contact_id, made.state], [id, 'done'])
    assert.ok((await ask('crm_get_export', { export_id: made.id })).body.url)
    const other = await scene.workspace.key(scene.manager.staffId, { agent: true })
    assert.equal((await scene.as(other.key)('crm_get_export', { export_id: made.id })).body.url, null)
  })
})
