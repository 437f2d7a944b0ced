import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { doAs } from '../calls.ts'
import { everyDoor } from '../doors.ts'
import type { TestServer } from '../servers.ts'
import { url, createEndpoint, confirmingCall, toFieldError } from './endpoint-fixture.ts'

const listStatuses = async ({ db }: TestServer, endpointId: string): Promise<string[]> =>
  (
    await db
      .selectFrom('webhook_deliveries')
      .select('status')
      .where('endpoint_id', '=', endpointId)
      .orderBy('id')
      .execute()
  ).map((d) => d.status)

everyDoor('State of webhook endpoints', (test) => {
  test('subscriptions: replaced as a whole; unknown types are refused with a suggestion', async ({
    call,
    server,
    workspace,
  }) => {
    const {
      endpoint: { id },
    } = (await createEndpoint(call)).body
    const set = (event_types: string[], more: Record<string, unknown> = {}) =>
      call('webhooks_set_subscriptions', { endpoint_id: id, event_types, ...more })
    const first = await set(['contact.created/1', 'group.created/1', 'contact.created/1'])
    assert.deepEqual(
      [first.body.changed, first.body.endpoint.subscriptions.event_types.map((t: { id: string }) => t.id)],
      [true, ['contact.created/1', 'group.created/1']],
    )
    assert.equal((await set(['group.created/1', 'contact.created/1'])).body.changed, false)
    assert.equal((await set(['*'], { dry_run: true })).body.endpoint.subscriptions.count, 1)
    await call('crm_create_group', { name: 'One' })
    assert.deepEqual(await listStatuses(server, id), ['pending'])
    const second = await set(['contact.created/1'])
    assert.deepEqual(
      second.body.endpoint.subscriptions.event_types,
      [first.body.endpoint.subscriptions.event_types[0]],
      'a remaining subscription keeps its time',
    )
    await call('crm_create_group', { name: 'Two' })
    assert.deepEqual(await listStatuses(server, id), ['pending'])
    assert.equal((await set(['*'])).body.changed, true)
    await call('crm_create_group', { name: 'Three' })
    assert.deepEqual(await listStatuses(server, id), ['pending', 'pending'])
    const unknown = await set(['*', 'contact.craeted/1'])
    assert.deepEqual(
      [...toFieldError(unknown), unknown.body.errors[0].fix],
      [400, '#/event_types/1', 'unknown_event_type', 'Did you mean contact.created/1?'],
    )
    assert.equal((await set(['contact.created'])).body.errors[0].fix, 'Did you mean contact.created/1?')
    assert.deepEqual(toFieldError(await set(['*', 'contact.created/1'])), [400, '#/event_types', 'not_alone'])
    assert.deepEqual(
      toFieldError(await call('webhooks_create_endpoint', { url, event_types: ['nothing/1'] })),
      [400, '#/event_types/0', 'unknown_event_type'],
    )
    assert.deepEqual(
      [(await set([])).body.endpoint.subscriptions, (await set([])).body.changed],
      [{ count: 0, all_active: true, event_types: [] }, false],
    )
    assert.equal(
      (await doAs(server, workspace.owner.key)('crm_create_group', { name: 'Four' })).created,
      true,
    )
    assert.equal((await listStatuses(server, id)).length, 2)
  })

  test('disable and enable: deliveries stop, and pending ones are due when enabled', async ({
    call,
    server,
    workspace,
  }) => {
    const {
      endpoint: { id },
    } = (await createEndpoint(call, { event_types: ['group.created/1'] })).body
    const { endpoint: watcher } = (
      await createEndpoint(call, { event_types: ['webhook.endpoint_disabled/1'] })
    ).body
    await call('crm_create_group', { name: 'Before' })
    // A failed delivery that is due in an hour, and a paused endpoint.
    await sql`
      update webhook_deliveries
      set status = 'failed', next_attempt_at = clock_timestamp() + interval '1 hour'
      where endpoint_id = ${id}`.execute(server.db)
    await sql`
      update webhook_endpoints set
        status = 'paused', consecutive_failures = 12, failing_since = now(), warned = 50,
        next_probe_at = now()
      where id = ${id}`.execute(server.db)
    const disable = (input = {}) => call('webhooks_disable_endpoint', { endpoint_id: id, ...input })
    assert.deepEqual(
      [
        (await disable({ dry_run: true })).body.changed,
        (await call('webhooks_get_endpoint', { endpoint_id: id })).body.status,
      ],
      [true, 'paused'],
    )
    const off = await disable()
    assert.deepEqual(
      [
        off.body.changed,
        off.body.endpoint.status,
        off.body.endpoint.disabled_reason,
        typeof off.body.endpoint.disabled_at,
      ],
      [true, 'disabled', 'manual', 'string'],
    )
    assert.deepEqual(
      [(await disable()).body.changed, (await listStatuses(server, watcher.id)).length],
      [false, 1],
      'one event',
    )
    const events = await server.db
      .selectFrom('events')
      .select('data')
      .where('workspace_id', '=', workspace.id)
      .where('type', '=', 'webhook.endpoint_disabled/1')
      .execute()
    const owner = { staff: { id: workspace.owner.staffId, name: 'Owner' } }
    const key = { id: workspace.owner.keyId, name: null }
    assert.deepEqual(
      events.map((e) => e.data),
      [
        {
          endpoint: { id, url, consecutive_failures: 12 },
          reason: 'manual',
          actor: { ...owner, key, agent: false, approved_by: null },
        },
      ],
    )
    await call('crm_create_group', { name: 'Meanwhile' })
    assert.deepEqual(await listStatuses(server, id), ['failed'], 'events while disabled create no delivery')
    const on = await call('webhooks_enable_endpoint', { endpoint_id: id })
    assert.deepEqual(
      [
        on.body.changed,
        on.body.endpoint.status,
        on.body.endpoint.disabled_at,
        on.body.endpoint.disabled_reason,
        on.body.endpoint.consecutive_failures,
      ],
      [true, 'active', null, null, 0],
    )
    assert.equal((await call('webhooks_enable_endpoint', { endpoint_id: id })).body.changed, false)
    const { rows } = await sql`
      select d.next_attempt_at <= clock_timestamp() as due, e.failing_since, e.warned, e.next_probe_at
      from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
      where e.id = ${id}`.execute(server.db)
    assert.deepEqual(rows[0], { due: true, failing_since: null, warned: 0, next_probe_at: null })
  })

  test('delete: pending deliveries are skipped, the log remains, secrets are erased', async (scene) => {
    const { call, server, workspace } = scene
    const {
      endpoint: { id },
    } = (
      await createEndpoint(call, { event_types: ['group.created/1'], custom_headers: { 'X-A': 'a value' } })
    ).body
    for (const name of ['One', 'Two', 'Three']) await call('crm_create_group', { name })
    await sql`
      update webhook_deliveries set status = case id
        when (select min(id) from webhook_deliveries where endpoint_id = ${id}) then 'delivered'
        else 'failed' end
      where endpoint_id = ${id}`.execute(server.db)
    assert.deepEqual(
      [
        (await call('webhooks_delete_endpoint', { endpoint_id: id, dry_run: true })).body.deleted,
        (await call('webhooks_get_endpoint', { endpoint_id: id })).status,
      ],
      [true, 200],
    )
    assert.deepEqual(
      (await confirmingCall(scene)('webhooks_delete_endpoint', { endpoint_id: id }, { confirm: 'delete' }))
        .body,
      { id, deleted: true },
    )
    assert.deepEqual(await listStatuses(server, id), ['delivered', 'skipped', 'skipped'])
    for (const op of [
      'get_endpoint',
      'update_endpoint',
      'delete_endpoint',
      'rotate_secret',
      'disable_endpoint',
      'enable_endpoint',
      'set_subscriptions',
    ]) {
      const reply = await confirmingCall(scene)(
        `webhooks_${op}`,
        { endpoint_id: id, ...(op === 'set_subscriptions' ? { event_types: [] } : {}) },
        op === 'rotate_secret'
          ? { confirm: 'rotate', idempotencyKey: randomUUID() }
          : op === 'delete_endpoint'
            ? { confirm: 'delete' }
            : {},
      )
      assert.deepEqual([op, reply.status, reply.body.code], [op, 404, 'not_found'], reply.text)
    }
    assert.deepEqual((await call('webhooks_list_endpoints')).body.data, [])
    const log = await call('webhooks_list_deliveries', { endpoint_id: id })
    assert.equal(log.body.data.length, 3, log.text)
    await call('crm_create_group', { name: 'Four' })
    assert.equal((await listStatuses(server, id)).length, 3)
    const [row] = await server.db
      .selectFrom('webhook_endpoints')
      .select(['signing_secret', 'custom_headers', 'deleted_at'])
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual([row!.signing_secret, row!.custom_headers, row!.deleted_at === null], ['', '', false])
  })
})
