import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog } from '../../catalog/index.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
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
import { makeWorkspace } from '../servers.ts'
import { loadWorkspaceRows } from '../world.ts'

const confirm = { confirm: 'erase' }
const phone4 = (): string => generatePhone().slice(-6)

everyDoor('A contact that is erased', (test) => {
  test('is gone at once, and its receipt says of what', async ({ call, door, server, workspace }) => {
    const phone = generatePhone()
    const { id } = (
      await call('crm_upsert_contact', {
        phone,
        name: 'Ada Lovelace',
        tags: ['VIP'],
        email: 'ada@example.com',
      })
    ).body.contact
    const input = { contact_id: id }
    const refused = await call('crm_erase_contact', input)
    assert.deepEqual([refused.status, refused.body.confirm], [428, 'erase'])

    const before = await loadWorkspaceRows(server.db, workspace.id)
    const { body: rehearsed } = await call('crm_erase_contact', { ...input, dry_run: true })
    assert.equal(rehearsed.erasure.id, null)
    assert.deepEqual(rehearsed.sample, { contact_id: id, name: 'Ada Lovelace' })
    const tagged = rehearsed.erasure.tables.find(({ table }: { table: string }) => table === 'contact_tags')
    assert.deepEqual(tagged, { table: 'contact_tags', deleted: 1, cleared: 0, pseudonymised: 0 })
    assert.deepEqual(await loadWorkspaceRows(server.db, workspace.id), before)

    const erased = await call('crm_erase_contact', input, confirm)
    if (!door.confirms) return
    assert.equal(erased.status, 202, erased.text)
    assert.equal(erased.body.sample, undefined)
    assert.doesNotMatch(erased.text, /Ada|1555/)
    assert.equal((await call('crm_get_contact', input)).status, 404)
    assert.equal((await call('crm_update_contact', { ...input, name: 'X' })).status, 404)
    assert.equal((await call('crm_upsert_contact', { phone, name: 'Grace' })).body.action, 'created')

    await finishErasures(server, workspace.id)
    const { id: erasureId } = erased.body.erasure
    const receipt = (await call('crm_get_erasure', { erasure_id: erasureId })).body
    assert.equal(receipt.state, 'done')
    assert.ok(receipt.finished_at)
    assert.deepEqual((await call('crm_list_erasures', {})).body.data, [receipt])
    const again = await call('crm_erase_contact', input, confirm)
    assert.deepEqual(again.body.erasure, receipt)
    assert.equal((await call('crm_erase_contact', { contact_id: '999999999' }, confirm)).status, 404)
  })

  test('is for managers', async ({ call, as, workspace }) => {
    const { id } = (await call('crm_upsert_contact', { phone: generatePhone() })).body.contact
    const agent = as((await workspace.staff({ name: 'Ida', role: 'agent' })).key)
    for (const [op, input] of [
      ['crm_erase_contact', { contact_id: id, dry_run: true }],
      ['crm_list_erasures', {}],
      ['crm_get_erasure', { erasure_id: '1' }],
    ] as const) {
      const { status, body } = await agent(op, input)
      assert.deepEqual([status, body.code], [403, 'forbidden'], op)
    }
  })
})

const mediaFolder = mkdtempSync(join(tmpdir(), 'wcrm-erasures-'))
process.once('exit', () => rmSync(mediaFolder, { recursive: true, force: true }))
const listFiles = (): string[] =>
  readdirSync(mediaFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

everyDatabase(
  'An erasure',
  (server, database) => {
    it('leaves nothing of a person in any table, file or answer', async () => {
      const workspace = await makeWorkspace(server())
      const world = await seedPerson(server(), workspace)
      const sandbox = createSandboxDriver(server(), workspace)
      const data = Buffer.from(`a file of ${MARKER}`).toString('base64')
      const document = { data, filename: `${MARKER}.pdf`, caption: MARKER, mime_type: 'application/pdf' }
      await sandbox.say({ from: `+1${DIGITS}`, message: { type: 'document', document } })
      // Waits for a download that another wake-up began.
      await server().app.jobs.job('media-downloads').runOnce()
      const holdsMarker = (file: string): boolean => readFileSync(file).includes(MARKER)
      assert.ok(listFiles().some(holdsMarker))
      const doors = doorsOf(server().url, workspace.owner.key)
      await runEverything(world, doors)
      await server().settle()

      const run = doAs(server(), workspace.owner.key)
      const { data: found } = await run('crm_search_contacts', { query: DIGITS, limit: 100 })
      const own = await sql<{ id: string }>`select id from contacts where workspace_id = ${workspace.id}
        and (strpos(search, ${MARKER}) > 0 or strpos(search, ${DIGITS}) > 0)`.execute(server().db)
      assert.ok(own.rows.length > 0, JSON.stringify(found))
      const was = await findColumnsWith(server().db, [MARKER, DIGITS])
      for (const { id } of own.rows) await run('crm_erase_contact', { contact_id: id })
      await finishErasures(server(), workspace.id)

      const left = await findColumnsWith(server().db, [MARKER, DIGITS])
      assert.deepEqual(left, [], `of ${was.join(' ')}`)
      assert.deepEqual(listFiles().filter(holdsMarker), [])
      for (const op of catalog.filter(({ scope }) => scope === 'mcp:read')) {
        const example = op.examples[0]!.input as Record<string, unknown>
        const input = { ...example, ...(op.waits ? { wait_seconds: 0 } : {}) }
        const { status, body, text } = await doors[1]!.call(op.name, input)
        assert.ok(!text.includes(MARKER) && !text.includes(DIGITS), `${op.name}: ${text}`)
        if (status < 300) assert.equal(op.output.safeParse(body).error, undefined, op.name)
      }
    })

    it('does with each table what is declared', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      const sandbox = createSandboxDriver(server(), workspace)
      await sandbox.say({ from: phone, name: 'Grace Hopper', text: 'Hello' })
      const { data: contacts } = await run('crm_search_contacts', { query: phone })
      await run('crm_erase_contact', { contact_id: contacts[0].id })
      await finishErasures(server(), workspace.id)
      const { data: erasures } = await run('crm_list_erasures')
      const tables = new Map<string, any>(erasures[0].tables.map((one: any) => [one.table, one]))
      for (const [table, entry] of Object.entries(declared)) {
        if (entry === 'none' || table === 'erasures') continue
        const counts = tables.get(table)
        assert.ok(counts, `${table} is on no receipt`)
        if (entry.erase === 'remove') assert.deepEqual([counts.cleared, counts.pseudonymised], [0, 0], table)
        else if (table !== 'provider_updates') assert.equal(counts.deleted, 0, table)
      }
      for (const table of tables.keys()) assert.notEqual(declared[table] ?? 'none', 'none', table)
    })

    it('goes through long tables a page at a time, and on where a server died', async () => {
      const workspace = await makeWorkspace(server())
      const { db } = server()
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      await createSandboxDriver(server(), workspace).say({ from: phone, name: 'Grace', text: 'First' })
      const { data: found } = await run('crm_search_contacts', { query: phone })
      const contactId: string = found[0].id
      await sql`
        insert into messages (workspace_id, conversation_id, direction, type, status, text, created_at)
        select v.workspace_id, v.id, 'inbound', 'TEXT', 'received', 'Again ' || ${phone}::text,
          v.created_at - (n % 700) * interval '1 second'
        from conversations v, generate_series(1, 2100) n
        where v.workspace_id = ${workspace.id}`.execute(db)
      await sql`
        insert into events (workspace_id, id, type, occurred_at, data)
        select ${workspace.id}, 'evt_' || lpad(n::text, 26, '0'), 'contact.deleted/1', now(),
          jsonb_build_object('contact', jsonb_build_object('id', ${contactId}::text, 'name', ${phone}::text))
        from generate_series(1, 2100) n`.execute(db)
      await run('crm_erase_contact', { contact_id: contactId })
      // A server whose lease ran out in the middle: what it did not commit is done again.
      await sql`
        update runs set run_after = clock_timestamp(), attempts = 3
        where workspace_id = ${workspace.id} and kind = 'erasures'`.execute(db)
      await finishErasures(server(), workspace.id)
      const { data: receipts } = await run('crm_list_erasures')
      const counts = Object.fromEntries(receipts[0].tables.map((one: any) => [one.table, one.cleared]))
      assert.equal(counts.messages, 2101)
      assert.ok(counts.events >= 2100, String(counts.events))
      assert.ok(!(await findColumnsWith(db, [phone])).some((name) => /^(?:messages|events)[.]/.test(name)))
      const { data: events } = await run('events_list', { limit: 5 })
      const { id, name, phone: left } = events[0].data.contact
      assert.deepEqual([id, name, left], [contactId, null, null])
    })

    it('waits for a transaction that had seen the contact', async () => {
      // The embedded database has one session.
      if (database !== 'postgresql') return
      const workspace = await makeWorkspace(server())
      const { db, app } = server()
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      await createSandboxDriver(server(), workspace).say({ from: phone, name: 'Grace', text: 'First' })
      const { data: found } = await run('crm_search_contacts', { query: phone })
      const late = await db.startTransaction().execute()
      await sql`select from contacts where workspace_id = ${workspace.id}`.execute(late)
      await run('crm_erase_contact', { contact_id: found[0].id })
      for (let n = 0; n < 3; n++) {
        await sql`update runs set run_after = clock_timestamp() where kind = 'erasures'`.execute(db)
        await app.jobs.job('erasures').runOnce()
      }
      const { rows } = await sql<{ step: number }>`
        select step from runs where workspace_id = ${workspace.id} and kind = 'erasures'`.execute(db)
      assert.equal(rows[0]!.step, 0)
      await sql`
        insert into messages (workspace_id, conversation_id, direction, type, status, text, created_at)
        select workspace_id, id, 'inbound', 'TEXT', 'received', ${`Late ${phone}`}, now() from conversations
        where workspace_id = ${workspace.id}`.execute(late)
      await late.commit().execute()
      await finishErasures(server(), workspace.id)
      assert.deepEqual(await findColumnsWith(db, [phone]), [])
    })

    it('looks again at what a call wrote that was open', async () => {
      const workspace = await makeWorkspace(server())
      const { db } = server()
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      const { contact } = await run('crm_upsert_contact', { phone, name: 'Grace' })
      await sql`
        insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, intent, lease_until,
          created_at, expires_at)
        values (${workspace.id}, ${workspace.owner.staffId}, 'open', 'crm_upsert_contact', '\\x00', 'running',
          ${JSON.stringify({ to: phone })}::text::jsonb, now() + interval '1 hour', now(), now() + interval '1 day')
      `.execute(db)
      await run('crm_erase_contact', { contact_id: contact.id })
      const job = server().app.jobs.job('erasures')
      const isDone = async () => (await run('crm_list_erasures', { state: 'done' })).data.length > 0
      await job.runOnce()
      assert.equal(await isDone(), false)
      await sql`
        update idempotency set state = 'done', status = 200, intent = null,
          body = ${JSON.stringify({ phone })} where workspace_id = ${workspace.id} and key = 'open'`.execute(
        db,
      )
      await finishErasures(server(), workspace.id)
      assert.ok(await isDone())
      const { rows } = await sql<{ body: string }>`
        select body from idempotency where workspace_id = ${workspace.id} and key = 'open'`.execute(db)
      assert.equal(rows[0]!.body, '{}')
    })

    it('lets the person come back as a stranger', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      const sandbox = createSandboxDriver(server(), workspace)
      const find = async () => (await run('crm_search_contacts', { query: phone })).data
      await sandbox.say({ from: phone, name: 'Grace', text: 'Hello' })
      const [first] = await find()
      await run('crm_erase_contact', { contact_id: first.id })
      await sandbox.say({ from: phone, name: 'Grace', text: 'Me again' })
      await finishErasures(server(), workspace.id)
      const [second] = await find()
      assert.notEqual(second.id, first.id)
      const { data: conversations } = await run('inbox_search_conversations', {})
      const own = conversations.filter((one: any) => one.contact?.id === second.id)
      assert.equal(own.length, 1)
      // The old one stays, of nobody, with messages that say nothing.
      const old = conversations.find((one: any) => one.id !== own[0].id)
      assert.equal((await run('inbox_get_conversation', { conversation_id: old.id })).contact, null)
      const { data: emptied } = await run('inbox_list_messages', { conversation_id: old.id })
      assert.deepEqual(
        emptied.map(({ text }: { text: string | null }) => text),
        [null],
      )
      const { data: messages } = await run('inbox_list_messages', { conversation_id: own[0].id })
      assert.deepEqual(
        messages.map(({ text }: { text: string }) => text),
        ['Me again'],
      )
    })

    it('leaves others alone, whose copies look alike', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const phone = generatePhone()
      const other = generatePhone()
      const sandbox = createSandboxDriver(server(), workspace)
      await sandbox.say({ from: other, name: 'Grace Hopper', text: 'Hello from Grace' })
      await run('crm_create_saved_filter', { name: 'Other', filter: { phoneNumber: { eq: other } } })
      // Words and numbers that are part of much else: a day, a word of the service, an id of another record.
      const day = new Date().toISOString().slice(0, 10).replaceAll('-', '')
      const wanted = [
        { phone, name: 'Grace', external_id: 'customer' },
        { phone: generatePhone(), name: 'Grace Hopper', external_id: day },
        { phone: generatePhone(), name: 'Grace', external_id: '1' },
      ]
      const ids: string[] = []
      for (const input of wanted) ids.push((await run('crm_upsert_contact', input)).contact.id)
      const read = async () =>
        (
          await Promise.all(
            ['events', 'messages', 'saved_filters', 'idempotency', 'contacts'].map((table) =>
              sql<{ row: string }>`select t::text as row from ${sql.table(table)} t
                where t.workspace_id = ${workspace.id} order by 1`.execute(server().db),
            ),
          )
        )
          .flatMap(({ rows }) => rows.map(({ row }) => row))
          .filter((row) => row.includes(other) || row.includes('Hello from Grace'))
      const before = await read()
      assert.ok(before.length > 3)
      for (const id of ids) await run('crm_erase_contact', { contact_id: id })
      await finishErasures(server(), workspace.id)
      assert.deepEqual(await read(), before)
    })

    it('empties filters that look for the person, and what was recorded of them', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      // Four digits alone are in some hash.
      const [phone, name] = [generatePhone(), `Zelda Marvelling-y${phone4()}y`]
      const email = `${phone4()}@example.com`
      const { contact } = await run('crm_upsert_contact', { phone, name, email })
      for (const [filterName, filter] of [
        ['By name', { name: { eq: name.toUpperCase() } }],
        ['By email', { or: [{ email: { eq: email } }, { starred: { eq: true } }] }],
        [name, { phoneNumber: { startsWith: phone } }],
      ] as const)
        await run('crm_create_saved_filter', { name: filterName, filter })
      const word = name.toLowerCase().split('-')[1]!
      assert.ok((await findColumnsWith(server().db, [word])).includes('audit_log.changes'))
      await run('crm_erase_contact', { contact_id: contact.id })
      await finishErasures(server(), workspace.id)
      const { data } = await run('crm_list_saved_filters')
      const filters = Object.fromEntries(data.map((one: any) => [one.name, one.filter]))
      assert.deepEqual(filters['By name'], { name: { eq: 'erased' } })
      assert.equal(data.length, 3)
      for (const { id } of data) await run('crm_search_contacts', { saved_filter_id: id })
      assert.deepEqual(await findColumnsWith(server().db, [phone, word, email.replaceAll(/[@.]/g, '')]), [])
    })

    it('may be asked for by an agent, which forgets what it showed for the decision', async () => {
      const scene = await createAgentScene(server())
      const { workspace, contactId } = {
        ...scene,
        contactId: (await scene.person('crm_search_contacts')).body.data[0].id,
      }
      const asked = await scene.ask('crm_erase_contact', { contact_id: contactId }, confirm)
      assert.equal(asked.status, 202, asked.text)
      const { id } = asked.body.approval
      const approved = await scene.person('approvals_approve', { approval_id: id, note: 'Ada asked for it' })
      assert.equal(approved.status, 200, approved.text)
      await scene.work()
      assert.equal((await scene.person('approvals_get', { approval_id: id })).body.status, 'done')
      await finishErasures(server(), workspace.id)
      const { body } = await scene.person('approvals_get', { approval_id: id })
      assert.deepEqual([body.status, body.preview, body.note], ['done', null, null])
      const { rows } = await sql<{ changes: unknown }>`
        select changes from audit_log
        where workspace_id = ${workspace.id} and target_type = 'approval'`.execute(server().db)
      assert.ok(rows.length > 0 && rows.every(({ changes }) => changes === null))
    })

    it('ends what could write the person back', async () => {
      const workspace = await makeWorkspace(server())
      const { key } = workspace.owner
      const run = doAs(server(), key)
      const [phone, otherPhone] = [generatePhone(), generatePhone()]
      const { contact } = await run('crm_upsert_contact', { phone, name: 'Ada Lovelace' })
      const { contact: other } = await run('crm_upsert_contact', { phone: otherPhone, name: 'A. L.' })
      await run('crm_merge_contacts', { contact_id: contact.id, other_contact_id: other.id })
      const agent = await workspace.staff({ name: 'Mina', role: 'manager' }, { agent: true })
      const asked = await callAs(server(), agent.key)(
        'crm_delete_contact',
        { contact_id: contact.id },
        { confirm: 'delete' },
      )
      assert.equal(asked.status, 202, asked.text)
      const upsert = { phone: otherPhone, name: 'Ada L.' }
      const repeat = { idempotencyKey: `erase-${crypto.randomUUID()}` }
      const call = callAs(server(), key)
      assert.equal((await call('crm_upsert_contact', upsert, repeat)).status, 200)
      const { data: strangers } = await run('crm_search_contacts', { query: otherPhone })
      for (const id of new Set([contact.id, ...strangers.map((one: any) => one.id)]))
        await run('crm_erase_contact', { contact_id: id })
      const approval = await run('approvals_get', { approval_id: asked.body.approval.id })
      assert.equal(approval.status, 'cancelled')
      await finishErasures(server(), workspace.id)
      assert.equal((await call('crm_undo_contact_merge', { merged_contact_id: other.id })).status, 404)
      const again = await call('crm_upsert_contact', upsert, repeat)
      assert.ok(again.status >= 400, again.text)
      assert.deepEqual((await run('crm_search_contacts', { query: otherPhone })).data, [])
      await run('approvals_get', { approval_id: asked.body.approval.id })
    })
  },
  { dedicated: true, media: mediaFolder },
)
