import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { eventTypes } from '../../catalog/events.ts'
import { everyDoor } from '../doors.ts'
import {
  type DeliveryRow,
  callAsOwner,
  createEndpoint,
  listDeliveries,
  setDeliveryStatus,
  createGroups,
} from './delivery-log-fixture.ts'

everyDoor('Webhook delivery log', (test) => {
  test('listed newest first in pages, filtered by status, type and time', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at, '*')
    await createGroups(at, 'A', 'B', 'C')
    const {
      body: {
        group: { id: group },
      },
    } = await call('crm_create_group', { name: 'D' })
    await callAsOwner(at)('crm_delete_group', { group_id: group })
    const all = (await call('webhooks_list_deliveries', { endpoint_id: id })).body.data as DeliveryRow[]
    assert.deepEqual(
      all.map((d) => d.event_type_id),
      ['group.deleted/1', ...Array.from({ length: 4 }, () => 'group.created/1')],
    )
    assert.deepEqual(
      all.toSorted((a, b) => (b.created_at + b.id < a.created_at + a.id ? -1 : 1)),
      all,
    )
    await setDeliveryStatus(at, all[1]!.id, 'dead')
    const ids = async (more: Record<string, unknown>) =>
      (await call('webhooks_list_deliveries', { endpoint_id: id, ...more })).body.data.map(
        (d: DeliveryRow) => d.id,
      )
    assert.deepEqual(await ids({ status: 'dead' }), [all[1]!.id])
    assert.deepEqual(await ids({ event_type_id: 'group.deleted/1' }), [all[0]!.id])
    assert.deepEqual(await ids({ event_type_id: 'group.deleted/1' }), [all[0]!.id])
    assert.deepEqual(
      await ids({ from: all[0]!.created_at }),
      all.filter((d) => d.created_at >= all[0]!.created_at).map((d) => d.id),
    )
    assert.deepEqual(
      await ids({ to: all[0]!.created_at }),
      all.filter((d) => d.created_at < all[0]!.created_at).map((d) => d.id),
    )
    const first = (await call('webhooks_list_deliveries', { endpoint_id: id, limit: 2 })).body
    const rest = (
      await call('webhooks_list_deliveries', { endpoint_id: id, limit: 4, cursor: first.next_cursor })
    ).body
    assert.deepEqual(
      [[...first.data, ...rest.data].map((d: DeliveryRow) => d.id), rest.next_cursor],
      [all.map((d) => d.id), null],
    )
    await callAsOwner(at)('webhooks_delete_endpoint', { endpoint_id: id })
    assert.equal((await ids({ status: 'skipped' })).length, 4)
    assert.equal(
      (await call('webhooks_list_deliveries', { endpoint_id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status,
      404,
    )
  })

  test('a delivery shows every attempt, to agents without what the receiver answered', async ({
    call,
    as,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at, '*')
    await createGroups(at, 'A')
    const [{ id: delivery_id }] = (await listDeliveries(at, id)) as [DeliveryRow]
    await setDeliveryStatus(at, delivery_id, 'dead')
    const { status, body } = await call('webhooks_get_delivery', { delivery_id })
    assert.deepEqual(
      [status, body.status, body.attempts, body.next_attempt_at, body.last_response_status],
      [200, 'dead', 3, null, 500],
    )
    const [refused, answered] = body.attempt_history
    assert.deepEqual(
      { ...refused, started_at: 0 },
      {
        number: 1,
        started_at: 0,
        duration_ms: 5,
        error: 'The connection was refused.',
        trigger: 'scheduled',
      },
    )
    assert.deepEqual(
      { ...answered, started_at: 0 },
      {
        number: 2,
        started_at: 0,
        duration_ms: 7,
        response_status: 500,
        response_excerpt: 'no 15550100042',
        trigger: 'scheduled',
      },
    )
    const { response_excerpt: _, ...shown } = answered
    const agent = await workspace.staff({ role: 'agent' })
    const withoutPhones = await workspace.key(workspace.owner.staffId, { phones: false })
    for (const { key } of [agent, withoutPhones]) {
      const seen = await as(key)('webhooks_get_delivery', { delivery_id })
      assert.deepEqual(seen.body.attempt_history, [refused, shown])
    }
    assert.equal(
      (await call('webhooks_get_delivery', { delivery_id: 'dlv_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status,
      404,
    )
  })

  test('replay: makes a delivery pending again; refused for a disabled or deleted endpoint', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at, '*')
    await createGroups(at, 'A', 'B', 'C', 'D', 'E')
    const [a, b, c, d, e] = (await listDeliveries(at, id)).map((delivery) => delivery.id) as [
      string,
      string,
      string,
      string,
      string,
    ]
    for (const [one, status] of [
      [a, 'delivered'],
      [b, 'dead'],
      [c, 'failed'],
      // Its endpoint was disabled for long, and is enabled again.
      [e, 'skipped'],
    ] as const)
      await setDeliveryStatus(at, one, status)
    const preview = await call('webhooks_replay_delivery', { delivery_id: a, dry_run: true })
    assert.deepEqual(
      [preview.body.delivery.status, (await call('webhooks_get_delivery', { delivery_id: a })).body.status],
      ['pending', 'delivered'],
    )
    for (const one of [a, b, c, d, e]) {
      const {
        status,
        body: { delivery },
      } = await call('webhooks_replay_delivery', { delivery_id: one })
      assert.deepEqual(
        [status, delivery.status, delivery.delivered_at, delivery.attempts],
        [202, 'pending', null, one === d ? 0 : 3],
      )
      assert.ok(Date.parse(delivery.next_attempt_at) <= Date.now())
    }
    const rows = await sql<{ trigger: string; failures: number }>`
      select trigger, failures from webhook_deliveries
      where workspace_id = ${workspace.id}`.execute(server.db)
    assert.deepEqual(
      [...rows.rows],
      Array.from({ length: 5 }, () => ({ trigger: 'replay', failures: 0 })),
    )
    await setDeliveryStatus(at, a, 'delivered')
    await callAsOwner(at)('webhooks_disable_endpoint', { endpoint_id: id })
    const refused = await call('webhooks_replay_delivery', { delivery_id: a })
    assert.deepEqual([refused.status, refused.body.reason], [409, 'endpoint_disabled'])
    await callAsOwner(at)('webhooks_delete_endpoint', { endpoint_id: id })
    assert.deepEqual(
      (await call('webhooks_replay_delivery', { delivery_id: a })).body.reason,
      'endpoint_deleted',
    )
    assert.equal(
      (await call('webhooks_replay_delivery', { delivery_id: 'dlv_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status,
      404,
    )
  })

  test('replay: event_gone after the event was deleted', async ({ call, server, workspace }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at, '*')
    await createGroups(at, 'A')
    const [{ id: delivery_id }] = (await listDeliveries(at, id)) as [DeliveryRow]
    await setDeliveryStatus(at, delivery_id, 'dead')
    await sql`delete from events where workspace_id = ${workspace.id}`.execute(server.db)
    const { status, body } = await call('webhooks_replay_delivery', { delivery_id })
    assert.deepEqual([status, body.reason], [409, 'event_gone'])
  })
})

everyDoor('Webhook test events', (test) => {
  test('a test event creates a delivery but no event in the log', async ({ call, server, workspace }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at)
    const { status, body } = await call(
      'webhooks_send_test',
      { endpoint_id: id, event_type_id: 'contact.created/1', wait_seconds: 0 },
      { idempotencyKey: 'test-once-1' },
    )
    assert.deepEqual([status, body.endpoint_id], [202, id])
    const again = await call(
      'webhooks_send_test',
      { endpoint_id: id, event_type_id: 'contact.created/1', wait_seconds: 0 },
      { idempotencyKey: 'test-once-1' },
    )
    assert.deepEqual(again.body, body)
    const own = await call(
      'webhooks_send_test',
      { endpoint_id: id, event_type_id: 'group.deleted/1', payload: { anything: [1, 'ü'] }, wait_seconds: 0 },
      { idempotencyKey: 'test-once-2' },
    )
    const made = await listDeliveries(at, id)
    assert.deepEqual(
      made.map((d) => [d.event_id, d.event_type_id, d.status]).toSorted(),
      [
        [body.event_id, 'contact.created/1', 'pending'],
        [own.body.event_id, 'group.deleted/1', 'pending'],
      ].toSorted(),
    )
    const rows = await sql<{ trigger: string; payload: unknown }>`
      select trigger, payload from webhook_deliveries
      where workspace_id = ${workspace.id} order by event_id`.execute(server.db)
    assert.deepEqual(
      [...rows.rows],
      [
        { trigger: 'test', payload: eventTypes['contact.created/1'].sample },
        { trigger: 'test', payload: { anything: [1, 'ü'] } },
      ],
    )
    assert.deepEqual((await call('events_list')).body.data, [])
    const preview = await call('webhooks_send_test', {
      endpoint_id: id,
      event_type_id: 'contact.created/1',
      dry_run: true,
    })
    assert.deepEqual(
      [preview.status, preview.body],
      [
        202,
        {
          event_id: null,
          endpoint_id: id,
          event_type_id: 'contact.created/1',
          delivery_id: null,
          outcome: null,
          dry_run: true,
        },
      ],
    )
    assert.equal((await listDeliveries(at, id)).length, 2)
    assert.equal((await call('webhooks_replay_delivery', { delivery_id: made[0]!.id })).status, 202)
  })

  test('refused for unknown types and for disabled or deleted endpoints', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at)
    const send = (input: Record<string, unknown>) =>
      call(
        'webhooks_send_test',
        { endpoint_id: id, event_type_id: 'contact.created/1', wait_seconds: 0, ...input },
        { idempotencyKey: crypto.randomUUID() },
      )
    const unknown = await send({ event_type_id: 'contact.create/1' })
    assert.deepEqual([unknown.status, unknown.body.errors[0].fix], [400, 'Did you mean contact.created/1?'])
    assert.equal((await send({ event_type_id: 'contact.created' })).status, 400)
    assert.equal((await send({ endpoint_id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status, 404)
    await callAsOwner(at)('webhooks_disable_endpoint', { endpoint_id: id })
    const off = await send({})
    assert.deepEqual([off.status, off.body.code, off.body.reason], [409, 'conflict', 'endpoint_disabled'])
    await callAsOwner(at)('webhooks_delete_endpoint', { endpoint_id: id })
    assert.equal((await send({})).status, 404)
  })
})
