import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog } from '../../catalog/index.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { generatePhone, createSandboxDriver } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { buildExampleInputs, seedWorld, type World } from '../world.ts'
import { listAudit, summarize } from './audit-rows.ts'

/** Creates an endpoint with secret headers and rotates its secret. Returns both signing secrets. */
const createSecrets = async (server: TestServer, workspace: TestWorkspace): Promise<string[]> => {
  const run = doAs(server, workspace.owner.key)
  const secrets: string[] = []
  const made = await run('webhooks_create_endpoint', {
    url: 'https://127.0.0.1:9/x?token=Xyzzy',
    custom_headers: { Authorization: 'Bearer Xyzzy', 'X-Shop': 'Xyzzy' },
  })
  secrets.push(made.signing_secret)
  await run('webhooks_update_endpoint', {
    endpoint_id: made.endpoint.id,
    custom_headers: { Authorization: 'Bearer Xyzzy-2' },
  })
  secrets.push(
    (
      await doorsOf(server.url, workspace.owner.key)[1]!.call(
        'webhooks_rotate_secret',
        { endpoint_id: made.endpoint.id },
        { confirm: 'rotate', idempotencyKey: 'rotate-it-now' },
      )
    ).body.signing_secret,
  )
  return secrets
}

/** Writes phone numbers and texts in every form that the API accepts. */
const writePersonalData = async (
  server: TestServer,
  workspace: TestWorkspace,
  world: World,
): Promise<void> => {
  const run = doAs(server, workspace.owner.key)
  await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
  await run('crm_upsert_contact', {
    phone: '+1-555-739-1999',
    name: 'call ١٥٥٥٧٣٩١٩٩٩ or 1 555 739 1999',
    attributes: { mobile: '+1 555 7391 888' },
  })
  await run('crm_import_contacts', { rows: [{ phone: '+15557391777', name: 'Xyzzy' }] })
  await run('crm_create_saved_filter', {
    name: 'By phone',
    filter: {
      or: [
        { phoneNumber: { contains: '5557391' } },
        { phoneNumber: { regex: '^1555739' } },
        { phoneNumber: { in: ['15557391101'] } },
      ],
    },
  })
  await run('inbox_add_note', { conversation_id: world.ids['conversations']![0], text: 'Xyzzy told me' })
  for (const dry_run of [true, false])
    await callAs(server, workspace.owner.key)(
      'messaging_send_reply',
      { conversation_id: world.ids['conversations']![0], text: 'Xyzzy to you', dry_run },
      { confirm: 'send' },
    )
}

/** Calls every operation with its example inputs, as a dry run and for real; deletions come last. */
const runEveryOperation = async (
  server: TestServer,
  workspace: TestWorkspace,
  world: World,
): Promise<void> => {
  for (const op of catalog.toSorted(
    (a, b) => Number(a.confirm === 'delete') - Number(b.confirm === 'delete'),
  ))
    for (const input of buildExampleInputs(world, op)) {
      for (const extra of op.dryRun ? [{ dry_run: true }, {}] : [{}])
        await doorsOf(server.url, workspace.owner.key)[1]!.call(
          op.name,
          { ...input, ...extra },
          { idempotencyKey: `walk-${crypto.randomUUID()}`, ...(op.confirm ? { confirm: op.confirm } : {}) },
        )
    }
}

everyDatabase('Redaction in the audit trail', (server) => {
  it('no row of any operation holds a secret, a phone number or a message text', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedWorld(server(), workspace, 'Quux', '7391')
    const secrets = await createSecrets(server(), workspace)
    await writePersonalData(server(), workspace, world)
    await runEveryOperation(server(), workspace, world)
    const { rows } = await sql<{ operation: string; row: string }>`
      select operation, to_jsonb(a)::text as row from audit_log a
      where workspace_id = ${workspace.id}`.execute(server().db)
    const changing = catalog.filter((op) => op.dryRun).map((op) => op.name)
    assert.deepEqual(
      changing.filter((name) => !rows.some((r) => r.operation === name)),
      [],
      'every write operation is recorded',
    )
    assert.deepEqual(
      rows.filter((r) => !changing.includes(r.operation)),
      [],
      'no read is recorded',
    )
    for (const { operation, row } of rows) {
      for (const secret of [
        ...secrets,
        'whsec_',
        'Xyzzy',
        '5557391',
        '555739',
        '١٥٥٥٧',
        '555 739',
        '555-739',
      ])
        assert.ok(!row.includes(secret), `${operation} records ${secret}: ${row}`)
      assert.ok(row.length < 8000, `${operation} records ${row.length} characters`)
    }
  })

  it('a message text is recorded as its length', async () => {
    const workspace = await makeWorkspace(server())
    const phone = generatePhone()
    await createSandboxDriver(server(), workspace).say({ from: phone, text: 'Hello' })
    const {
      data: [conversation],
    } = await doAs(server(), workspace.owner.key)('inbox_search_conversations')
    const { message } = await doAs(server(), workspace.owner.key)('messaging_send_reply', {
      conversation_id: conversation.id,
      text: 'Good morning',
    })
    const [row] = await listAudit(server(), workspace)
    assert.deepEqual(
      [...summarize([row!])[0]!, row!.target, row!.changes!.input],
      [
        'messaging_send_reply',
        'done',
        null,
        false,
        true,
        { type: 'conversation', id: conversation.id },
        { text: '(12 characters)' },
      ],
    )
    assert.ok(message.id)
  })

  it('a quick message is recorded without its text, which a private one shows to its owner alone', async () => {
    const workspace = await makeWorkspace(server())
    const agent = await workspace.staff({ role: 'agent' })
    const call = callAs(server(), agent.key)
    const texts = { code: 'xyzzy', title: 'Xyzzy of mine', description: 'Xyzzy', text: 'Xyzzy!' }
    const { body } = await call('messaging_create_quick_message', { ...texts, visibility: 'private' })
    const id = body.quick_message?.id ?? body.id
    await call('messaging_update_quick_message', { quick_message_id: id, text: 'Xyzzy again' })
    await call('messaging_create_quick_message', { ...texts, visibility: 'private', dry_run: true })
    const rows = await listAudit(server(), workspace)
    const changes = rows.filter(({ operation }) => operation.endsWith('_quick_message'))
    assert.equal(changes.length, 3)
    assert.doesNotMatch(JSON.stringify(changes), /xyzzy/i)
  })

  it('a person who is no contact is recorded without what is known of them', async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const phone = generatePhone()
    await call('crm_create_custom_field', { key: 'city', type: 'text' })
    const input = { phone, name: 'Ada Byron', external_id: 'crm-77', attributes: { city: 'Ockham' } }
    await call('crm_upsert_contact', { ...input, dry_run: true })
    await call('crm_upsert_contact', { ...input, tags: ['x'.repeat(5)], if_version: 'never' })
    await call('crm_upsert_contact', { ...input, attributes: { city: 'Ockham', unknown: 'Lovelace' } })
    const strangers = await listAudit(server(), workspace, { operation: 'crm_upsert_contact' })
    assert.ok(strangers.length > 0)
    assert.doesNotMatch(JSON.stringify(strangers), /Ada|Byron|crm-77|Ockham|Lovelace/)
    const dry = strangers.find(({ dry_run }) => dry_run)
    assert.equal((dry!.changes!.input as { name: string }).name, '(9 characters)')
    // What has a contact is found by its id.
    await call('crm_upsert_contact', input)
    const rows = await listAudit(server(), workspace, { operation: 'crm_upsert_contact' })
    const known = rows.filter(({ target }) => target !== null)
    assert.equal(known.length, 1)
    assert.match(JSON.stringify(known), /Ada Byron/)
  })
})
