import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { deleteExpiredRecords } from '../../storage/access/idempotency.ts'
import { type Door, doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { createToolRequest } from '../mcp-request.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace, startSharedServers, type TestServer } from '../servers.ts'
import { databases } from '../databases.ts'
import { setClockAhead } from '../slow-clock.ts'

let clock = Date.parse('2026-10-05T12:00:00.000Z')
const DAY_MS = 24 * 60 * 60 * 1000

const createRestAndOps = (server: TestServer, key: string): [Door, Door] => {
  const [rest, ops] = doorsOf(server.url, key)
  return [rest!, ops!]
}

const wasReplayed = (reply: Reply): boolean => reply.headers['idempotent-replayed'] === 'true'

const assertReplay = (retry: Reply, first: Reply): void => {
  assert.ok(wasReplayed(retry), retry.text)
  assert.equal(retry.status, first.status)
  if (first.status < 400) assert.equal(retry.text, first.text)
  else assert.deepEqual({ ...retry.body, request_id: '' }, { ...first.body, request_id: '' })
}

const loadEventTypes = async (server: TestServer, workspaceId: string): Promise<string[]> =>
  (await server.db.selectFrom('events').select('type').where('workspace_id', '=', workspaceId).execute()).map(
    (e) => e.type,
  )

everyDatabase(
  'Idempotency-Key',
  (server) => {
    it('a retry gets the first response, over either door', async () => {
      const workspace = await makeWorkspace(server())
      const [rest, ops] = createRestAndOps(server(), workspace.owner.key)
      for (const [i, [first, second]] of [
        [rest, ops],
        [ops, rest],
        [rest, rest],
        [ops, ops],
      ].entries()) {
        const idempotencyKey = `replay-${i}-over-doors`
        const input = { key: `size_${i}`, type: 'int', label: 'Size' }
        const one = await first!.call('crm_create_custom_field', input, { idempotencyKey })
        assert.equal(one.status, 201, one.text)
        assert.ok(!wasReplayed(one))
        // The same request in another form: another order, and an explicit default.
        assertReplay(
          await second!.call(
            'crm_create_custom_field',
            { visibility: 'visible_to_all', label: 'Size', type: 'int', key: `size_${i}` },
            { idempotencyKey },
          ),
          one,
        )
      }
      assert.equal((await rest.call('crm_list_custom_fields')).body.total, 5)
    })

    it('ids in a list are the same request as integers and as strings', async () => {
      const workspace = await makeWorkspace(server())
      const [rest, ops] = createRestAndOps(server(), workspace.owner.key)
      const { id } = (await rest.call('crm_upsert_contact', { phone: '+15550100142' })).body
      const options = { idempotencyKey: 'ids-in-a-list' }
      const tags = ['VIP']
      const one = await rest.call('crm_tag_contacts', { contact_ids: [Number(id)], tags }, options)
      assert.equal(one.body.succeeded, 1, one.text)
      assertReplay(await ops.call('crm_tag_contacts', { contact_ids: [id], tags }, options), one)
    })

    it('a key reused for another body or operation is refused with idempotency_key_reused', async () => {
      const workspace = await makeWorkspace(server())
      const [rest, ops] = createRestAndOps(server(), workspace.owner.key)
      const idempotencyKey = 'one-key-one-request'
      const first = await rest.call('crm_create_group', { name: 'One' }, { idempotencyKey })
      for (const other of [
        await rest.call('crm_create_group', { name: 'Two' }, { idempotencyKey }),
        await ops.call('crm_create_group', { name: 'One', emoji: '⭐' }, { idempotencyKey }),
        await rest.call('crm_upsert_contact', { phone: '+15550100042' }, { idempotencyKey }),
        // Another operation with the same input.
        await ops.call('crm_upsert_contact', { name: 'One' }, { idempotencyKey }),
        await rest.call(
          'crm_delete_group',
          { group_id: first.body.group.id },
          { idempotencyKey, confirm: 'delete' },
        ),
      ]) {
        assert.deepEqual(
          [other.status, other.body.code, other.body.reason],
          [400, 'invalid_input', 'idempotency_key_reused'],
          other.text,
        )
        assertProblem(other, server().url)
      }
      assertReplay(await rest.call('crm_create_group', { name: 'One' }, { idempotencyKey }), first)
      assert.equal((await rest.call('crm_list_groups')).body.total, 1)
    })

    it('the key is accepted bare, quoted, and in the body of /v1/ops', async () => {
      const workspace = await makeWorkspace(server())
      const [rest, ops] = createRestAndOps(server(), workspace.owner.key)
      const first = await rest.call(
        'crm_create_group',
        { name: 'One' },
        { idempotencyKey: 'bare:or.quoted_1-A' },
      )
      assertReplay(
        await rest.call('crm_create_group', { name: 'One' }, { idempotencyKey: '"bare:or.quoted_1-A"' }),
        first,
      )
      assertReplay(
        await ops.call('crm_create_group', { name: 'One', idempotency_key: 'bare:or.quoted_1-A' }),
        first,
      )
      assert.equal(first.headers['idempotency-key'], 'bare:or.quoted_1-A')
    })

    it('the key must have 8 to 128 characters of the allowed set', async () => {
      const workspace = await makeWorkspace(server())
      const [rest] = createRestAndOps(server(), workspace.owner.key)
      for (const good of ['12345678', 'x'.repeat(128), 'a.b_c:d-', 'approval-x', 'approval-1-']) {
        assert.equal(
          (await rest.call('crm_create_group', { name: 'One' }, { idempotencyKey: good })).status,
          200,
          good,
        )
      }
      for (const bad of [
        '',
        '1234567',
        'x'.repeat(129),
        'with space',
        'slash/slash',
        '"1234567"',
        '"12345678',
        '""',
        'ümlaut-key',
        'a,b,c,d,e',
        // Of calls that a person decided.
        'approval-1',
        `declined-1-${'0'.repeat(64)}`,
      ]) {
        const reply = await rest.call('crm_create_group', { name: 'One' }, { idempotencyKey: bad })
        assert.deepEqual(
          [reply.status, reply.body.reason, reply.body.errors?.[0]?.header],
          [400, 'idempotency_key_invalid', 'Idempotency-Key'],
          `${bad} ${reply.text}`,
        )
      }
    })

    it('an error about the key names the place where the key was given', async () => {
      const { owner } = await makeWorkspace(server())
      const input = { name: 'One', idempotency_key: 'short' }
      const send = async (path: string, request: { headers: object; body: string }) =>
        await (
          await fetch(server().url + path, {
            ...request,
            method: 'POST',
            headers: { ...request.headers, Authorization: `Bearer ${owner.key}` },
          })
        ).text()
      const json = { 'Content-Type': 'application/json' }
      const ops = '/v1/ops/crm_create_group'
      const inBody = await send(ops, { headers: json, body: JSON.stringify(input) })
      const inHeader = await send(ops, {
        headers: { ...json, 'Idempotency-Key': 'short' },
        body: JSON.stringify({ name: 'One' }),
      })
      const tool = await send('/mcp', createToolRequest('crm_create_group', input, { key: owner.key }))
      assert.match(inBody, /"pointer":"#\/idempotency_key","code":"idempotency_key_invalid"/)
      assert.match(inHeader, /"header":"Idempotency-Key","code":"idempotency_key_invalid"/)
      assert.match(
        tool.replaceAll('\\', ''),
        /"pointer":"#\/idempotency_key","code":"idempotency_key_invalid"/,
      )
    })

    it('an error of the handler is stored and replayed', async () => {
      const workspace = await makeWorkspace(server())
      const [rest, ops] = createRestAndOps(server(), workspace.owner.key)
      const field = await rest.call('crm_create_custom_field', { key: 'size', type: 'int' })
      const refused = await rest.call(
        'crm_create_custom_field',
        { key: 'size', type: 'int' },
        { idempotencyKey: 'refused-then-possible' },
      )
      assert.deepEqual([refused.status, refused.body.reason], [409, 'duplicate'])
      await rest.call('crm_delete_custom_field', { custom_field_id: field.body.id }, { confirm: 'delete' })
      assertReplay(
        await rest.call(
          'crm_create_custom_field',
          { key: 'size', type: 'int' },
          { idempotencyKey: 'refused-then-possible' },
        ),
        refused,
      )
      assertReplay(
        await ops.call(
          'crm_create_custom_field',
          { key: 'size', type: 'int' },
          { idempotencyKey: 'refused-then-possible' },
        ),
        refused,
      )

      const absent = await rest.call(
        'crm_delete_contact',
        { contact_id: '999999999' },
        { confirm: 'delete', idempotencyKey: 'delete-an-absent-one' },
      )
      assert.equal(absent.status, 404)
      assertReplay(
        await rest.call(
          'crm_delete_contact',
          { contact_id: '999999999' },
          { confirm: 'delete', idempotencyKey: 'delete-an-absent-one' },
        ),
        absent,
      )
    })

    it('errors before the handler and dry runs are not stored', async () => {
      const workspace = await makeWorkspace(server())
      const [rest] = createRestAndOps(server(), workspace.owner.key)
      const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
      const group = (await rest.call('crm_create_group', { name: 'One' })).body.group.id
      const options = { idempotencyKey: 'refused-before-work' }
      assert.equal(
        (await rest.call('crm_delete_group', { group_id: group }, { ...options, key: reader.key })).status,
        403,
      )
      assert.equal(
        (await rest.call('crm_delete_group', { group_id: 'x' }, { ...options, confirm: 'delete' })).status,
        400,
      )
      assert.equal((await rest.call('crm_delete_group', { group_id: group }, options)).status, 428)
      assert.equal(
        (await rest.call('crm_create_group', { name: 'Dry run', dry_run: true }, options)).status,
        200,
      )
      const done = await rest.call('crm_delete_group', { group_id: group }, { ...options, confirm: 'delete' })
      assert.deepEqual(
        [done.status, wasReplayed(done), done.body],
        [200, false, { id: group, deleted: true, saved_filters: [] }],
      )
      // The response is stored now, but scope and confirmation are still checked each time.
      assert.equal((await rest.call('crm_delete_group', { group_id: group }, options)).status, 428)
      assertReplay(
        await rest.call('crm_delete_group', { group_id: group }, { ...options, confirm: 'delete' }),
        done,
      )
    })

    it('the key is scoped to the staff member who owns the API key', async () => {
      const workspace = await makeWorkspace(server())
      const colleague = await workspace.staff({ name: 'Other', role: 'admin' })
      const second = await workspace.key(workspace.owner.staffId)
      const [rest] = createRestAndOps(server(), workspace.owner.key)
      const idempotencyKey = 'mine-and-not-yours'
      const mine = await rest.call('crm_create_group', { name: 'Mine' }, { idempotencyKey })
      const theirs = await rest.call(
        'crm_create_group',
        { name: 'Theirs' },
        { idempotencyKey, key: colleague.key },
      )
      assert.deepEqual([theirs.status, wasReplayed(theirs), theirs.body.group.name], [200, false, 'Theirs'])
      assertReplay(
        await rest.call('crm_create_group', { name: 'Mine' }, { idempotencyKey, key: second.key }),
        mine,
      )
    })

    it('the response is stored for 24 hours', async () => {
      const workspace = await makeWorkspace(server())
      const [rest] = createRestAndOps(server(), workspace.owner.key)
      const createGroup = () =>
        rest.call('crm_create_group', { name: 'One' }, { idempotencyKey: 'kept-for-a-day' })
      const first = await createGroup()
      assert.equal(first.body.created, true)
      clock += DAY_MS - 1
      await deleteExpiredRecords(server().db, server().app.now(), 1000)
      assertReplay(await createGroup(), first)
      clock += 1
      const later = await createGroup()
      assert.deepEqual([later.status, wasReplayed(later), later.body.created], [200, false, false])
      clock += DAY_MS
      await deleteExpiredRecords(server().db, server().app.now(), 1000)
      assert.equal(
        (
          await server()
            .db.selectFrom('idempotency')
            .select('key')
            .where('workspace_id', '=', workspace.id)
            .execute()
        ).length,
        0,
      )
      assert.equal(wasReplayed(await createGroup()), false)
    })

    it('of concurrent calls with one key exactly one runs', async () => {
      const workspace = await makeWorkspace(server())
      const doors = createRestAndOps(server(), workspace.owner.key)
      await assertOneRuns([doors[0], doors[1]], async () => await loadEventTypes(server(), workspace.id))
    })
  },
  { now: () => new Date(clock).toISOString() },
)

everyDatabase('Idempotency-Key on a server whose clock is ahead', (server) => {
  it('a retry of the next hour finds the response', async (test) => {
    const workspace = await makeWorkspace(server())
    const [rest] = createRestAndOps(server(), workspace.owner.key)
    const createGroup = () =>
      rest.call('crm_create_group', { name: 'One' }, { idempotencyKey: 'kept-for-a-day' })
    const first = await createGroup()
    setClockAhead(test, 25 * 60)
    assertReplay(await createGroup(), first)
  })
})

/** Sends each request several times concurrently and checks that it ran exactly once. */
const assertOneRuns = async (doors: readonly Door[], events: () => Promise<string[]>): Promise<void> => {
  const count = 25
  let refused = 0
  for (let i = 0; i < count; i++) {
    const send = (n: number) =>
      doors[n % doors.length]!.call(
        'crm_upsert_contact',
        { phone: `+1555010${1000 + i}` },
        { idempotencyKey: `many-at-once-${i}` },
      )
    const replies = await Promise.all(Array.from({ length: 8 }, (_, n) => send(n)))
    const ran = replies.filter((r) => r.status === 200 && !wasReplayed(r))
    assert.equal(
      ran.length,
      1,
      replies.map((r) => `${r.status} ${wasReplayed(r)} ${r.body.reason ?? ''}`).join(', '),
    )
    assert.equal(ran[0]!.body.action, 'created')
    for (const reply of replies.filter((r) => r !== ran[0])) {
      if (reply.status === 200) assertReplay(reply, ran[0]!)
      else {
        refused++
        assert.deepEqual(
          [reply.status, reply.body.code, reply.body.reason, reply.headers['retry-after']],
          [409, 'conflict', 'still_running', '1'],
          reply.text,
        )
      }
    }
    assertReplay(await send(0), ran[0]!)
  }
  assert.ok(refused > 0, 'no two calls overlapped: the test proved nothing')
  assert.deepEqual((await events()).filter((type) => type === 'contact.created/1').length, count)
}

describe('Idempotency-Key: two servers', { skip: !databases.includes('postgresql') }, () => {
  it('of concurrent calls with one key exactly one runs', async () => {
    const { servers, close } = await startSharedServers(2)
    try {
      const workspace = await makeWorkspace(servers[0]!)
      const doors = servers.flatMap((server) => createRestAndOps(server, workspace.owner.key))
      await assertOneRuns(doors, async () => await loadEventTypes(servers[0]!, workspace.id))
    } finally {
      await close()
    }
  })
})
