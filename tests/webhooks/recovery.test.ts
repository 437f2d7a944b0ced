import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createEventId } from '../../server/ids.ts'
import { recoverLimits } from '../../server/domains/webhooks/recover.ts'
import { insertEvents } from '../../storage/events/events.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { recordTexts } from '../statements.ts'
import {
  callAsOwner,
  createEndpoint,
  listDeliveries,
  setDeliveryStatus,
  createGroups,
} from './delivery-log-fixture.ts'

everyDoor('Webhook recovery', (test) => {
  test('recovers dead, skipped and missed events of the subscriptions and the time span, once', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await createEndpoint(at, 'group.created/1')
    await createGroups(at, 'taken', 'given up', 'tried again', 'skipped')
    const byName = new Map<string, string>()
    for (const event of (await callAsOwner(at)('events_list')).data as {
      id: string
      data: { group: { name: string } }
    }[])
      byName.set(event.id, event.data.group.name)
    // Skipped: the endpoint was disabled for as long as deliveries are kept, and this one was not deleted yet.
    const statuses: Record<string, 'delivered' | 'dead' | 'failed' | 'skipped'> = {
      taken: 'delivered',
      'given up': 'dead',
      'tried again': 'failed',
      skipped: 'skipped',
    }
    for (const delivery of await listDeliveries(at, id)) {
      const name = byName.get(delivery.event_id)
      await setDeliveryStatus(at, delivery.id, statuses[name!]!)
    }
    await callAsOwner(at)('webhooks_disable_endpoint', { endpoint_id: id })
    await createGroups(at, 'missed')
    const outside = { id: createEventId(), type: 'group.created/1', data: {} }
    const now = Date.now()
    const [from, to] = [new Date(now - 3_600_000).toISOString(), new Date(now + 3_600_000).toISOString()]
    await insertEvents(server.db, workspace.id, [
      { ...outside, occurred_at: to },
      { ...outside, id: createEventId(), occurred_at: from },
      { ...outside, id: createEventId(), type: 'group.deleted/1', occurred_at: from },
    ])
    const off = await call('webhooks_recover_endpoint', { endpoint_id: id, from, to })
    assert.deepEqual([off.status, off.body.reason], [409, 'endpoint_disabled'])
    await callAsOwner(at)('webhooks_enable_endpoint', { endpoint_id: id })
    assert.deepEqual(
      (await call('webhooks_recover_endpoint', { endpoint_id: id, from, to, dry_run: true })).body,
      { endpoint_id: id, recovered: 4, dry_run: true },
    )
    const done = await call('webhooks_recover_endpoint', { endpoint_id: id, from, to })
    const { rows: locked } = await sql`
      select status from webhook_deliveries
      where workspace_id = ${workspace.id} and endpoint_id = ${id} and status = 'delivered'
        and xmax <> '0'`.execute(server.db)
    assert.deepEqual([...locked], [], 'a delivery that arrived is not locked')
    assert.deepEqual([done.status, done.body], [202, { endpoint_id: id, recovered: 4 }])
    const { rows } = await sql<{ name: string | null; status: string; trigger: string }>`
      select e.data->'group'->>'name' as name, d.status, d.trigger
      from webhook_deliveries d
      join events e on e.workspace_id = d.workspace_id and e.id = d.event_id
      where d.workspace_id = ${workspace.id} and d.endpoint_id = ${id}
      order by 1 nulls last, 2, d.next_attempt_at`.execute(server.db)
    assert.deepEqual(
      rows.map((r) => Object.values(r)),
      [
        ['given up', 'pending', 'recover'],
        ['missed', 'pending', 'recover'],
        ['skipped', 'pending', 'recover'],
        ['taken', 'delivered', 'scheduled'],
        ['tried again', 'failed', 'scheduled'],
        [null, 'pending', 'recover'],
      ],
    )
    assert.deepEqual(
      (await call('webhooks_recover_endpoint', { endpoint_id: id, from, to })).body.recovered,
      0,
    )
  })

  test('the span is at most 14 days and ends after it begins', async ({ call, server, workspace }) => {
    const id = await createEndpoint({ server, workspace }, '*')
    for (const [from, to, pointer] of [
      ['2026-10-01T00:00:00Z', '2026-10-01T00:00:00Z', 'to'],
      ['2026-10-02T00:00:00Z', '2026-10-01T00:00:00Z', 'to'],
      ['2026-10-01T00:00:00Z', '2026-10-15T00:00:00.001Z', 'from'],
    ] as const) {
      const { status, body } = await call('webhooks_recover_endpoint', { endpoint_id: id, from, to })
      assert.equal(status, 400)
      assert.ok(JSON.stringify(body.errors[0]).includes(pointer))
    }
    assert.equal(
      (
        await call('webhooks_recover_endpoint', {
          endpoint_id: id,
          from: '2026-10-01T00:00:00Z',
          to: '2026-10-15T00:00:00Z',
        })
      ).status,
      202,
    )
    assert.equal(
      (
        await call('webhooks_recover_endpoint', {
          endpoint_id: id,
          from: '0000-01-01T00:00:00Z',
          to: '0000-01-02T00:00:00Z',
        })
      ).status,
      202,
    )
    assert.equal(
      (
        await call('webhooks_recover_endpoint', {
          endpoint_id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0',
          from: '2026-10-01T00:00:00Z',
          to: '2026-10-02T00:00:00Z',
        })
      ).status,
      404,
    )
  })
})

everyDatabase('Webhook recovery of many events', (server) => {
  it('works in steps, oldest event first', async () => {
    const at = { server: server(), workspace: await makeWorkspace(server()) }
    const id = await createEndpoint(at, '*')
    await sql`
      insert into events (workspace_id, id, type, occurred_at, data)
      select ${at.workspace.id}::bigint, 'evt_01M0000000' || lpad(n::text, 16, '0'), 'group.created/1',
        '2026-10-01T00:00:00Z', '{}'::jsonb
      from generate_series(1, 12001) as n`.execute(at.server.db)
    const span = { endpoint_id: id, from: '2026-10-01T00:00:00Z', to: '2026-10-02T00:00:00Z' }
    assert.equal((await callAsOwner(at)('webhooks_recover_endpoint', span)).recovered, 12_001)
    const { rows } = await sql<{ n: string; ordered: boolean }>`
      select count(*) as n, bool_and(ordered) as ordered from (
        select event_id >= coalesce(
          lag(event_id) over (order by next_attempt_at, event_id), '') as ordered
        from webhook_deliveries where workspace_id = ${at.workspace.id}) as d`.execute(at.server.db)
    assert.deepEqual([...rows], [{ n: '12001', ordered: true }])
  })

  it('refuses too many before anything is written', async () => {
    const at = { server: server(), workspace: await makeWorkspace(server()) }
    const id = await createEndpoint(at, '*')
    await sql`
      insert into events (workspace_id, id, type, occurred_at, data)
      select ${at.workspace.id}::bigint, 'evt_01M0000000' || lpad(n::text, 16, '0'), 'group.created/1',
        '2026-10-01T00:00:00Z', '{}'::jsonb
      from generate_series(1, 30) as n`.execute(at.server.db)
    const call = callAs(at.server, at.workspace.owner.key)
    const span = { endpoint_id: id, from: '2026-10-01T00:00:00Z', to: '2026-10-02T00:00:00Z' }
    const before = { ...recoverLimits }
    try {
      for (const limits of [{ deliveries: 29 }, { events: 29 }]) {
        Object.assign(recoverLimits, before, limits)
        for (const dry_run of [true, false]) {
          const written = await recordTexts(
            async () => {
              const { status, body } = await call('webhooks_recover_endpoint', { ...span, dry_run })
              assert.deepEqual([status, body.reason], [400, 'too_many_events'])
            },
            (text) => text.includes('insert into webhook_deliveries'),
          )
          assert.deepEqual(written, [])
        }
      }
      Object.assign(recoverLimits, { deliveries: 30, events: 30 })
      assert.equal((await call('webhooks_recover_endpoint', span)).body.recovered, 30)
    } finally {
      Object.assign(recoverLimits, before)
    }
  })
})
