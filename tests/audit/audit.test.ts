import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { deleteAuditBefore } from '../../storage/access/audit.ts'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { startFakeProvider, createThingOperations } from '../provider/fake-provider.ts'
import { makeWorkspace, startServer } from '../servers.ts'
import { type AuditRow, listAudit, summarize } from './audit-rows.ts'

everyDoor('The audit trail', (test) => {
  test('records actor, key, transport, target, input, and values before and after', async ({
    server,
    workspace,
    door,
    call,
  }) => {
    const {
      body: { id },
    } = await call('crm_upsert_contact', { phone: '+1 (555) 739-1201', name: 'Ada, +15557391202' })
    await call('crm_update_contact', { contact_id: id, name: 'Grace', starred: false })
    const rows = await listAudit(server, workspace)
    assert.deepEqual(summarize(rows), [
      ['crm_update_contact', 'done', null, false, false],
      ['crm_upsert_contact', 'done', null, false, false],
    ])
    for (const row of rows) {
      assert.deepEqual(
        [row.actor, row.key_id, row.door],
        [
          {
            staff_id: workspace.owner.staffId,
            name: 'Owner',
            staff: { id: workspace.owner.staffId, name: 'Owner' },
            key: { id: workspace.owner.keyId, name: null },
            agent: false,
            approved_by: null,
          },
          workspace.owner.keyId,
          door.name,
        ],
      )
      assert.deepEqual(row.target, { type: 'contact', id })
      assert.ok(row.client, 'the client is recorded')
      assert.match(row.request_id, /^req_/)
      assert.ok(Math.abs(Date.parse(row.at) - Date.now()) < 60_000)
    }
    const [updated, made] = rows
    assert.deepEqual(updated!.changes, {
      input: { name: 'Grace', starred: false },
      before: { name: 'Ada, +********202' },
      after: { name: 'Grace' },
    })
    assert.deepEqual(made!.changes, {
      input: { phone: '+* (***) ***-1201', name: 'Ada, +********202' },
      result: { action: 'created' },
    })
  })

  test('records dry runs, but no reads and no repeated answers', async ({ server, workspace, call }) => {
    for (const _ of [1, 2])
      assert.ok(
        (await call('crm_create_group', { name: 'Gold' }, { idempotencyKey: 'the-same-group' })).status < 300,
      )
    await call('crm_list_groups')
    await call('crm_create_group', { name: 'Silver', dry_run: true })
    const test = await workspace.key(workspace.owner.staffId, { test: true })
    await doAs(server, test.key)('crm_create_group', { name: 'Bronze' })
    const rows = await listAudit(server, workspace)
    assert.deepEqual(summarize(rows), [
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

  test('records refusals: scope, role, access and missing confirmation', async ({
    server,
    workspace,
    door,
    call,
    as,
  }) => {
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
    const rows = await listAudit(server, workspace, { outcome: 'refused' })
    assert.deepEqual(summarize(rows), [
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
    const [deleted] = await listAudit(server, workspace)
    assert.deepEqual(
      [...summarize([deleted!])[0]!, deleted!.changes],
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

  test('records failed changes, but no invalid input', async ({ server, workspace, call }) => {
    await call('crm_create_custom_field', { key: 'size', type: 'int' })
    for (const idempotencyKey of ['the-field-again', 'the-field-again'])
      assert.equal(
        (await call('crm_create_custom_field', { key: 'size', type: 'int' }, { idempotencyKey })).status,
        409,
      )
    assert.equal((await call('crm_create_custom_field', { key: 'size' })).status, 400)
    assert.equal((await call('crm_update_contact', { contact_id: '999', name: 'Nobody' })).status, 404)
    assert.deepEqual(summarize(await listAudit(server, workspace)), [
      ['crm_update_contact', 'failed', 'not_found', false, false],
      ['crm_create_custom_field', 'failed', 'conflict', false, false],
      ['crm_create_custom_field', 'done', null, false, false],
    ])
  })
})

everyDatabase('audit_list', (server) => {
  it('filters, alone and combined, and pages', async () => {
    const workspace = await makeWorkspace(server())
    const manager = await workspace.staff({ name: 'Mia', role: 'manager' })
    for (const { key } of [workspace.owner, manager])
      for (const [n, door] of doorsOf(server().url, key).entries()) {
        for (const dry_run of [true, false])
          await door.call('crm_create_group', { name: `Group ${n}`, dry_run })
        await door.call('crm_delete_group', { group_id: '1' })
      }
    const all = await listAudit(server(), workspace)
    assert.equal(all.length, 24)
    assert.deepEqual(
      all.map((r) => BigInt(r.id)),
      all.map((r) => BigInt(r.id)).toSorted((a, b) => (a > b ? -1 : 1)),
      'newest first',
    )
    const tests: [Record<string, unknown>, (row: AuditRow) => boolean][] = [
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
        (await listAudit(server(), workspace, filter)).map((r) => r.id),
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
    assert.equal((await listAudit(server(), workspace, together)).length, 1)
    const paged: AuditRow[] = []
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

  it('records belong to the workspace of the key, even with a target of another workspace', async () => {
    const [mine, other] = [await makeWorkspace(server()), await makeWorkspace(server())]
    const { group } = await doAs(server(), other.owner.key)('crm_create_group', { name: 'Theirs' })
    await callAs(server(), mine.owner.key)('crm_delete_group', { group_id: group.id }, { confirm: 'delete' })
    assert.deepEqual(summarize(await listAudit(server(), other)), [
      ['crm_create_group', 'done', null, false, false],
    ])
    assert.deepEqual(await listAudit(server(), mine, { staff_id: other.owner.staffId }), [])
    assert.deepEqual(summarize(await listAudit(server(), mine)), [
      ['crm_delete_group', 'failed', 'not_found', false, true],
    ])
  })

  it('records entitlement_required for every transport', async () => {
    const workspace = await makeWorkspace(server())
    await sql`update workspaces set features = '{}' where id = ${workspace.id}`.execute(server().db)
    for (const door of doorsOf(server().url, workspace.owner.key))
      assert.equal((await door.call('crm_create_group', { name: 'Gold' })).status, 403, door.name)
    await sql`update workspaces set features = '{api_access}' where id = ${workspace.id}`.execute(server().db)
    // Keys are cached for most of a second.
    server().app.keyCache.keys.clear()
    const rows = await listAudit(server(), workspace)
    assert.deepEqual(
      rows.map((r) => [r.door, r.operation, r.code]),
      ['cli', 'mcp', 'ops', 'rest'].map((door) => [
        door,
        door === 'mcp' ? 'mcp' : 'crm_create_group',
        'entitlement_required',
      ]),
    )
  })
})

// Retention covers all workspaces, so the server must have no other audit trail.
everyDatabase(
  'Retention of the audit trail',
  (server) => {
    it('deletes rows before the limit in batches', async () => {
      const workspace = await makeWorkspace(server())
      for (const name of ['One', 'Two', 'Three', 'Four'])
        await doAs(server(), workspace.owner.key)('crm_create_group', { name })
      const [newest, ...older] = await listAudit(server(), workspace)
      const hour = 3_600_000n << 18n
      await sql`
        update audit_log set id = id - ${String(hour)}::bigint
        where workspace_id = ${workspace.id} and id <> ${newest!.id}`.execute(server().db)
      const limit = new Date(Date.parse(newest!.at) - 60_000).toISOString()
      assert.equal(
        await deleteAuditBefore(
          server().db,
          new Date(Date.parse(older.at(-1)!.at) - 2 * 3_600_000).toISOString(),
          2,
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
        (await listAudit(server(), workspace)).map((r) => r.id),
        [newest!.id],
      )
    })
  },
  { dedicated: true },
)

everyDatabase(
  'Audit of refusals',
  (server) => {
    it('refusals per key and minute are recorded up to the write limit', async () => {
      const workspace = await makeWorkspace(server())
      const { key } = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
      for (let n = 0; n < 12; n++)
        assert.equal((await callAs(server(), key)('crm_create_group', { name: 'Gold' })).status, 403)
      const rows = (await listAudit(server(), workspace, { outcome: 'refused' })).length
      // The minute may end between the calls.
      assert.ok(rows >= 5 && rows <= 10, `${rows} rows`)
    })
  },
  { limitWrite: 5 },
)

for (const database of databases) {
  it(`provider calls are recorded once, also when the job finishes them (${database})`, async () => {
    const provider = await startFakeProvider()
    const server = await startServer(database, { extra: createThingOperations(provider) })
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
      const rows = () => listAudit(server, workspace)
      await make('one', 'audited-call-1')
      await make('one', 'audited-call-1')
      assert.deepEqual(summarize(await rows()), [['test_make_thing', 'done', null, false, false]])
      provider.outcomes.push('make and drop')
      const lost = await make('two', 'audited-call-2')
      assert.equal((await rows()).length, 1, 'the outcome is not known yet')
      await sql`
        update idempotency set lease_until = clock_timestamp()
        where workspace_id = ${workspace.id}`.execute(server.db)
      assert.equal(await reconcileProviderCalls(server.app), 1)
      await make('two', 'audited-call-2')
      const [found] = await rows()
      assert.deepEqual(
        [(await rows()).length, found!.outcome, found!.door, found!.request_id],
        [2, 'done', 'ops', lost.request_id],
      )
      provider.outcomes.push('refuse')
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
