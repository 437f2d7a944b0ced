import assert from 'node:assert/strict'
import { it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { type Door, doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { buildExampleInputs, seedWorld } from '../world.ts'

/** Inputs that pass the schema and that only the handler finds to be wrong. */
const refusedByHandler: Readonly<Record<string, Record<string, unknown>>> = {
  crm_upsert_contact: { group_ids: ['999999999'] },
  crm_update_contact: { attributes: { nothing: 'x' } },
  crm_create_custom_field: { type: 'select', options: [] },
  crm_create_saved_filter: { filter: { nothing: { eq: 'x' } } },
  crm_update_saved_filter: { filter: { nothing: { eq: 'x' } } },
  messaging_send_template: { contact_id: undefined, phone: '12' },
  messaging_create_template: { template: { name: 'NOT a name', language: 'en_US', category: 'UTILITY' } },
  messaging_create_quick_message: { type: 'TEXT', text: 'Hello {{nothing}}' },
  webhooks_create_endpoint: { url: 'https://localhost.example.invalid/' },
  webhooks_update_endpoint: { url: 'https://localhost.example.invalid/' },
}

const wasReplayed = (reply: Reply): boolean => reply.headers['idempotent-replayed'] === 'true'

/** Sends wrong inputs under a key, then the right one under the same key. */
const correctInput = async (
  door: Door,
  op: Operation,
  right: Record<string, unknown>,
  wrongs: readonly Record<string, unknown>[],
): Promise<Reply> => {
  const options = {
    idempotencyKey: `corrected-${crypto.randomUUID()}`,
    ...(op.confirm ? { confirm: op.confirm } : {}),
  }
  for (const wrong of wrongs) {
    const refused = await door.call(op.name, wrong, options)
    assert.equal(refused.status, 400, `${op.name} ${JSON.stringify(wrong)} ${refused.text}`)
    assert.notEqual(refused.body.reason, 'idempotency_key_reused', op.name)
  }
  return await door.call(op.name, right, options)
}

everyDatabase('A 400 and its Idempotency-Key', (server) => {
  it('after a 400 the corrected input of every operation runs under the same key', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedWorld(server(), workspace, 'Korrekt', '7392')
    const door = doorsOf(server().url, workspace.owner.key)[1]!
    const changing = catalog
      .filter((op) => op.dryRun)
      .toSorted((a, b) => Number(a.confirm === 'delete') - Number(b.confirm === 'delete'))
    for (const op of changing) {
      const [right] = buildExampleInputs(world, op)
      const byHandler = refusedByHandler[op.name]
      const reply = await correctInput(door, op, right!, [
        { ...right, no_such_field: 1 },
        ...(byHandler ? [{ ...right, ...byHandler }] : []),
      ])
      assert.ok(!wasReplayed(reply) && reply.status < 500, `${op.name} ${reply.text}`)
      assert.notEqual(reply.status, 400, `${op.name} ${reply.text}`)
    }
  })

  it('of concurrent wrong and right calls with one key the right one runs once', async () => {
    const workspace = await makeWorkspace(server())
    const doors = doorsOf(server().url, workspace.owner.key)
    const options = { idempotencyKey: 'wrong-and-right-at-once' }
    const right = { phone: '+15557392555', name: 'Right' }
    const calls = Array.from({ length: 12 }, (_, n) =>
      doors[n % 2]!.call(
        'crm_upsert_contact',
        n % 3 === 0 ? right : { ...right, group_ids: ['999999999'] },
        options,
      ),
    )
    const replies = [
      ...(await Promise.all(calls)),
      await doors[0]!.call('crm_upsert_contact', right, options),
    ]
    assert.ok(replies.every((reply) => [200, 400, 409].includes(reply.status)))
    const ran = replies.filter((reply) => reply.status === 200 && !wasReplayed(reply))
    assert.deepEqual(
      ran.map((reply) => reply.body.action),
      ['created'],
    )
  })

  it('a 400 of the handler leaves an audit row and no record of the key', async () => {
    const workspace = await makeWorkspace(server())
    const rest = doorsOf(server().url, workspace.owner.key)[0]!
    const idempotencyKey = 'no-record-of-a-400'
    const refused = await rest.call(
      'crm_upsert_contact',
      { phone: '+15557392556', group_ids: ['999999999'] },
      { idempotencyKey },
    )
    assert.equal(refused.status, 400, refused.text)
    const records = await server()
      .db.selectFrom('idempotency')
      .select('key')
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual(records, [])
    const rows = await server()
      .db.selectFrom('audit_log')
      .select(['operation', 'outcome', 'code'])
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual(rows, [{ operation: 'crm_upsert_contact', outcome: 'failed', code: 'invalid_input' }])
  })
})
