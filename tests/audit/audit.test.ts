import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog, type Operation } from '../../catalog/index.ts'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { deleteAuditBefore } from '../../storage/audit.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { startProvider, thingMaker } from '../provider/operations.ts'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../servers.ts'
import { anyPhone, sandboxOf } from '../messaging/sends.ts'
import { exampleInputs, plant } from '../world.ts'
import { databases } from '../databases.ts'

type Row = {
  id: string
  at: string
  actor: { staff_id: string; name: string }
  key_id: string
  door: string
  client: string | null
  operation: string
  target: { type: string; id: string } | null
  outcome: string
  code: string | null
  dry_run: boolean
  confirmed: boolean
  request_id: string
  changes: {
    input: Record<string, unknown>
    before?: Record<string, unknown>
    after?: Record<string, unknown>
    result?: Record<string, unknown>
  } | null
}

/** The trail as its owner reads it, newest first. */
const trail = async (
  server: Pick<TestServer, 'url'>,
  { owner }: Pick<TestWorkspace, 'owner'>,
  filter: Record<string, unknown> = {},
): Promise<Row[]> => (await doAs(server, owner.key)('audit_list', { limit: 100, ...filter })).data as Row[]

const short = (rows: readonly Row[]) =>
  rows.map((r) => [r.operation, r.outcome, r.code, r.dry_run, r.confirmed])

everyDoor('The audit trail', (test) => {
  test('tells who changed what, through which door, and how it was before', async ({
    server,
    workspace,
    door,
    call,
  }) => {
    const {
      body: { id },
    } = await call('crm_upsert_contact', { phone: '+1 (555) 739-1201', name: 'Ada, +15557391202' })
    await call('crm_update_contact', { contact_id: id, name: 'Grace', starred: false })
    const rows = await trail(server, workspace)
    assert.deepEqual(short(rows), [
      ['crm_update_contact', 'done', null, false, false],
      ['crm_upsert_contact', 'done', null, false, false],
    ])
    for (const row of rows) {
      assert.deepEqual(
        [row.actor, row.key_id, row.door],
        [{ staff_id: workspace.owner.staffId, name: 'Owner' }, workspace.owner.keyId, door.name],
      )
      assert.deepEqual(row.target, { type: 'contact', id })
      assert.ok(row.client, 'clients say what they are')
      assert.match(row.request_id, /^req_/)
      assert.ok(Math.abs(Date.parse(row.at) - Date.now()) < 60_000)
    }
    const [updated, made] = rows
    assert.deepEqual(updated!.changes, {
      input: { name: 'Grace', starred: false },
      before: { name: 'Ada, +*******1202' },
      after: { name: 'Grace' },
    })
    assert.deepEqual(made!.changes, {
      input: { phone: '+* (***) ***-1201', name: 'Ada, +*******1202' },
      result: { action: 'created' },
    })
  })

  test('tells of rehearsals, and not of reads or of answers given again', async ({
    server,
    workspace,
    call,
  }) => {
    for (const _ of [1, 2])
      assert.ok(
        (await call('crm_create_group', { name: 'Gold' }, { idempotencyKey: 'the-same-group' })).status < 300,
      )
    await call('crm_list_groups')
    await call('crm_create_group', { name: 'Silver', dry_run: true })
    const test = await workspace.key(workspace.owner.staffId, { test: true })
    await doAs(server, test.key)('crm_create_group', { name: 'Bronze' })
    const rows = await trail(server, workspace)
    assert.deepEqual(short(rows), [
      ['crm_create_group', 'done', null, true, false],
      ['crm_create_group', 'done', null, true, false],
      ['crm_create_group', 'done', null, false, false],
    ])
    assert.deepEqual(
      rows.map((r) => [r.target?.type, r.changes?.input['name']]),
      [
        [undefined, 'Bronze'],
        [undefined, 'Silver'],
        ['group', 'Gold'],
      ],
    )
  })

  test('tells of what was not permitted or not confirmed', async ({ server, workspace, door, call, as }) => {
    const { group } = await doAs(server, workspace.owner.key)('crm_create_group', { name: 'Gold' })
    assert.equal((await call('crm_delete_group', { group_id: group.id })).status, 428)
    const agent = await workspace.staff({ role: 'agent' })
    const reader = await workspace.key(agent.staffId, { scopes: ['mcp:read'] })
    assert.equal(
      (await as(reader.key)('crm_create_group', { name: 'Silver' })).body.code,
      'insufficient_scope',
    )
    for (const idempotencyKey of ['a-field-of-mine', 'a-field-of-mine'])
      assert.equal(
        (await as(agent.key)('crm_create_custom_field', { key: 'size', type: 'int' }, { idempotencyKey }))
          .body.reason,
        'manager_only',
      )
    assert.equal(
      (await as(agent.key)('crm_create_custom_field', { key: 'size', type: 'int', dry_run: true })).body
        .reason,
      'manager_only',
    )
    const refused = await as(agent.key)('audit_list')
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.reason],
      [403, 'forbidden', 'audit_not_allowed'],
    )
    const rows = await trail(server, workspace, { outcome: 'refused' })
    assert.deepEqual(short(rows), [
      ['audit_list', 'refused', 'forbidden', false, false],
      ['crm_create_custom_field', 'refused', 'forbidden', true, false],
      ['crm_create_custom_field', 'refused', 'forbidden', false, false],
      ['crm_create_group', 'refused', 'insufficient_scope', false, false],
      ['crm_delete_group', 'refused', 'confirm_required', false, false],
    ])
    assert.deepEqual(
      rows.map((r) => r.door),
      rows.map(() => door.name),
    )
    assert.deepEqual(
      rows.map((r) => r.actor.staff_id),
      [agent, agent, agent, agent, workspace.owner].map((who) => who.staffId),
    )
    assert.deepEqual(rows.at(-1)!.target, { type: 'group', id: group.id })
    assert.deepEqual([rows[0]!.changes, rows[3]!.changes], [null, null])
    if (!door.confirms) return
    await call('crm_delete_group', { group_id: group.id }, { confirm: 'delete' })
    const [deleted] = await trail(server, workspace)
    assert.deepEqual(
      [...short([deleted!])[0]!, deleted!.changes],
      [
        'crm_delete_group',
        'done',
        null,
        false,
        true,
        { input: {}, before: { id: group.id, name: 'Gold', emoji: null }, result: { deleted: true } },
      ],
    )
  })

  test('tells of changes that failed, but not of wrong input', async ({ server, workspace, call }) => {
    await call('crm_create_custom_field', { key: 'size', type: 'int' })
    for (const idempotencyKey of ['the-field-again', 'the-field-again'])
      assert.equal(
        (await call('crm_create_custom_field', { key: 'size', type: 'int' }, { idempotencyKey })).status,
        409,
      )
    assert.equal((await call('crm_create_custom_field', { key: 'size' })).status, 400)
    assert.equal((await call('crm_update_contact', { contact_id: '999', name: 'Nobody' })).status, 404)
    assert.deepEqual(short(await trail(server, workspace)), [
      ['crm_update_contact', 'failed', 'not_found', false, false],
      ['crm_create_custom_field', 'failed', 'conflict', false, false],
      ['crm_create_custom_field', 'done', null, false, false],
    ])
  })
})

everyDatabase('The audit trail as a list', (server) => {
  it('is filtered by everything at once, and paged', async () => {
    const workspace = await makeWorkspace(server())
    const manager = await workspace.staff({ name: 'Mia', role: 'manager' })
    for (const { key } of [workspace.owner, manager])
      for (const [n, door] of doorsOf(server().url, key).entries()) {
        for (const dry_run of [true, false])
          await door.call('crm_create_group', { name: `Group ${n}`, dry_run })
        await door.call('crm_delete_group', { group_id: '1' })
      }
    const all = await trail(server(), workspace)
    assert.equal(all.length, 24)
    assert.deepEqual(
      all.map((r) => BigInt(r.id)),
      all.map((r) => BigInt(r.id)).toSorted((a, b) => (a > b ? -1 : 1)),
      'newest first',
    )
    const tests: [Record<string, unknown>, (row: Row) => boolean][] = [
      [{ staff_id: manager.staffId }, (r) => r.actor.staff_id === manager.staffId],
      [{ key_id: workspace.owner.keyId }, (r) => r.key_id === workspace.owner.keyId],
      [{ operation: 'crm_delete_group' }, (r) => r.operation === 'crm_delete_group'],
      [{ door: 'mcp' }, (r) => r.door === 'mcp'],
      [{ outcome: 'refused' }, (r) => r.outcome === 'refused'],
      [{ outcome: 'done' }, (r) => r.outcome === 'done'],
      [{ target_id: '1' }, (r) => r.target?.id === '1'],
      [{ from: all[9]!.at }, (r) => r.at >= all[9]!.at],
      [{ to: all[9]!.at }, (r) => r.at < all[9]!.at],
      [{ staff_id: '9223372036854775999' }, () => false],
      [{ from: '9999-12-31T23:59:59Z' }, () => false],
      [{ to: '0001-01-01T00:00:00Z' }, () => false],
      [{ target_id: 'nothing' }, () => false],
    ]
    for (const [filter, holds] of tests)
      assert.deepEqual(
        (await trail(server(), workspace, filter)).map((r) => r.id),
        all.filter(holds).map((r) => r.id),
        JSON.stringify(filter),
      )
    const together = {
      staff_id: manager.staffId,
      key_id: manager.keyId,
      operation: 'crm_delete_group',
      door: 'cli',
      outcome: 'refused',
      target_id: '1',
      from: all.at(-1)!.at,
      to: new Date(Date.now() + 1000).toISOString(),
    }
    assert.equal((await trail(server(), workspace, together)).length, 1)
    const paged: Row[] = []
    for (let cursor: string | null = null, page = 0; page === 0 || cursor !== null; page++) {
      const { data, next_cursor } = await doAs(server(), workspace.owner.key)('audit_list', {
        limit: 7,
        ...(cursor ? { cursor } : {}),
      })
      paged.push(...data)
      cursor = next_cursor
    }
    assert.deepEqual(paged, all)
  })

  it("is of one workspace, also where another's records were asked for", async () => {
    const [mine, other] = [await makeWorkspace(server()), await makeWorkspace(server())]
    const { group } = await doAs(server(), other.owner.key)('crm_create_group', { name: 'Theirs' })
    await callAs(server(), mine.owner.key)('crm_delete_group', { group_id: group.id }, { confirm: 'delete' })
    assert.deepEqual(short(await trail(server(), other)), [['crm_create_group', 'done', null, false, false]])
    assert.deepEqual(await trail(server(), mine, { staff_id: other.owner.staffId }), [])
    assert.deepEqual(short(await trail(server(), mine)), [
      ['crm_delete_group', 'failed', 'not_found', false, true],
    ])
  })

  it('tells of a plan without access at every door', async () => {
    const workspace = await makeWorkspace(server())
    await sql`update workspaces set features = '{}' where id = ${workspace.id}`.execute(server().db)
    for (const door of doorsOf(server().url, workspace.owner.key))
      assert.equal((await door.call('crm_create_group', { name: 'Gold' })).status, 403, door.name)
    await sql`update workspaces set features = '{api_access}' where id = ${workspace.id}`.execute(server().db)
    // What is known of a key is believed for most of a second.
    server().app.keyCache.keys.clear()
    const rows = await trail(server(), workspace)
    assert.deepEqual(
      rows.map((r) => [r.door, r.operation, r.code]),
      ['cli', 'mcp', 'ops', 'rest'].map((door) => [
        door,
        door === 'mcp' ? 'mcp' : 'crm_create_group',
        'entitlement_required',
      ]),
    )
  })

  it('holds no secret, no phone and no message, whatever is asked', async () => {
    const workspace = await makeWorkspace(server())
    const world = await plant(server(), workspace, 'Quux', '7391')
    const run = doAs(server(), workspace.owner.key)
    await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    const secrets: string[] = []
    const made = await run('webhooks_create_endpoint', {
      url: 'https://127.0.0.1:9/x?token=Xyzzy',
      custom_headers: { Authorization: 'Bearer Xyzzy' },
    })
    secrets.push(made.signing_secret)
    await run('webhooks_update_endpoint', {
      endpoint_id: made.endpoint.id,
      custom_headers: { Authorization: 'Bearer Xyzzy-2' },
    })
    secrets.push(
      (
        await doorsOf(server().url, workspace.owner.key)[1]!.call(
          'webhooks_rotate_secret',
          { endpoint_id: made.endpoint.id },
          { confirm: 'rotate', idempotencyKey: 'rotate-it-now' },
        )
      ).body.signing_secret,
    )
    await run('crm_upsert_contact', {
      phone: '+1-555-739-1999',
      name: 'call ١٥٥٥٧٣٩١٩٩٩ or 1 555 739 1999',
      attributes: { mobile: '+1 555 7391 888' },
    })
    await run('crm_import_contacts', { rows: [{ phone: '+15557391777', name: 'Row' }] })
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
      await callAs(server(), workspace.owner.key)(
        'messaging_send_reply',
        { conversation_id: world.ids['conversations']![0], text: 'Xyzzy to you', dry_run },
        { confirm: 'send' },
      )
    const operations: readonly Operation[] = catalog
    for (const op of operations.toSorted(
      (a, b) => Number(a.confirm === 'delete') - Number(b.confirm === 'delete'),
    ))
      for (const input of exampleInputs(world, op)) {
        for (const extra of op.dryRun ? [{ dry_run: true }, {}] : [{}])
          await doorsOf(server().url, workspace.owner.key)[1]!.call(
            op.name,
            { ...input, ...extra },
            { idempotencyKey: `walk-${crypto.randomUUID()}`, ...(op.confirm ? { confirm: op.confirm } : {}) },
          )
      }
    const { rows } = await sql<{
      operation: string
      row: string
    }>`select operation, to_jsonb(a)::text as row from audit_log a where workspace_id = ${workspace.id}`.execute(
      server().db,
    )
    const changing = operations.filter((op) => op.dryRun).map((op) => op.name)
    assert.deepEqual(
      changing.filter((name) => !rows.some((r) => r.operation === name)),
      [],
      'each operation left a row',
    )
    assert.deepEqual(
      rows.filter((r) => !changing.includes(r.operation)),
      [],
      'reads left none',
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
        assert.ok(!row.includes(secret), `${operation} tells ${secret}: ${row}`)
      assert.ok(row.length < 8000, `${operation} tells ${row.length} characters`)
    }
  })

  it('tells the length of a message, and the ids of what was made', async () => {
    const workspace = await makeWorkspace(server())
    const phone = anyPhone()
    await sandboxOf(server(), workspace).say({ from: phone, text: 'Hello' })
    const {
      data: [conversation],
    } = await doAs(server(), workspace.owner.key)('inbox_search_conversations')
    const { message } = await doAs(server(), workspace.owner.key)('messaging_send_reply', {
      conversation_id: conversation.id,
      text: 'Good morning',
    })
    const [row] = await trail(server(), workspace)
    assert.deepEqual(
      [...short([row!])[0]!, row!.target, row!.changes!.input],
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
})

// The limit is one for all workspaces: no other may have an audit trail.
everyDatabase(
  'The retention of the audit trail',
  (server) => {
    it('is kept for its days', async () => {
      const workspace = await makeWorkspace(server())
      for (const name of ['One', 'Two', 'Three', 'Four'])
        await doAs(server(), workspace.owner.key)('crm_create_group', { name })
      const [newest, ...older] = await trail(server(), workspace)
      const hour = 3_600_000n << 18n
      await sql`update audit_log set id = id - ${String(hour)}::bigint where workspace_id = ${workspace.id} and id <> ${newest!.id}`.execute(
        server().db,
      )
      const limit = new Date(Date.parse(newest!.at) - 60_000).toISOString()
      assert.equal(
        await deleteAuditBefore(
          server().db,
          new Date(Date.parse(older.at(-1)!.at) - 2 * 3_600_000).toISOString(),
        ),
        0,
      )
      assert.deepEqual(
        [
          await deleteAuditBefore(server().db, limit, 2),
          await deleteAuditBefore(server().db, limit, 2),
          await deleteAuditBefore(server().db, limit, 2),
        ],
        [2, 1, 0],
      )
      assert.deepEqual(
        (await trail(server(), workspace)).map((r) => r.id),
        [newest!.id],
      )
    })
  },
  { dedicated: true },
)

everyDatabase(
  'Refusals before the rate limit',
  (server) => {
    it('leave no more rows in a minute than a key may make changes', async () => {
      const workspace = await makeWorkspace(server())
      const { key } = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
      for (let n = 0; n < 12; n++)
        assert.equal((await callAs(server(), key)('crm_create_group', { name: 'Gold' })).status, 403)
      const rows = (await trail(server(), workspace, { outcome: 'refused' })).length
      // A minute may end in between.
      assert.ok(rows >= 5 && rows <= 10, `${rows} rows`)
    })
  },
  { limitWrite: 5 },
)

for (const database of databases) {
  it(`Calls to the provider leave one row each, whoever finishes them (${database})`, async () => {
    const provider = await startProvider()
    const server = await startServer(database, { extra: thingMaker(provider) })
    try {
      const workspace = await makeWorkspace(server)
      const make = async (name: string, key: string) =>
        (await (
          await fetch(`${server.url}/v1/ops/test_make_thing`, {
            method: 'POST',
            headers: {
              Authorization: `Bearer ${workspace.owner.key}`,
              'Content-Type': 'application/json',
              'Idempotency-Key': key,
            },
            body: JSON.stringify({ name }),
          })
        ).json()) as { request_id?: string }
      const rows = () => trail(server, workspace)
      await make('one', 'audited-call-1')
      await make('one', 'audited-call-1')
      assert.deepEqual(short(await rows()), [['test_make_thing', 'done', null, false, false]])
      provider.fates.push('make and drop')
      const lost = await make('two', 'audited-call-2')
      assert.equal((await rows()).length, 1, 'nobody knows yet what came of it')
      await sql`update idempotency set lease_until = clock_timestamp() where workspace_id = ${workspace.id}`.execute(
        server.db,
      )
      assert.equal(await reconcileProviderCalls(server.app), 1)
      await make('two', 'audited-call-2')
      const [found] = await rows()
      assert.deepEqual(
        [(await rows()).length, found!.outcome, found!.door, found!.request_id],
        [2, 'done', 'ops', lost.request_id],
      )
      provider.fates.push('refuse')
      const refused = await make('three', 'audited-call-3')
      const [failed] = await rows()
      assert.deepEqual(
        [(await rows()).length, failed!.outcome, failed!.request_id],
        [3, 'failed', refused.request_id],
      )
    } finally {
      await server.close()
      await provider.close()
    }
  })
}
