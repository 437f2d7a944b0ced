import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { eventTypes } from '../../catalog/events.ts'
import { insertEvents } from '../../storage/events.ts'
import { createEventId } from '../../server/ids.ts'
import { doAs } from '../calls.ts'
import { type Door, everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

type Delivery = {
  id: string
  event_id: string
  event_type_id: string
  status: string
  created_at: string
  attempts: number
  next_attempt_at: string | null
}
type Scene = { server: TestServer; workspace: TestWorkspace }

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers freely
const owner = ({
  server,
  workspace,
}: Scene): ((op: string, input?: Record<string, unknown>) => Promise<any>) =>
  doAs(server, workspace.owner.key)

const endpointFor = async (scene: Scene, ...event_types: string[]): Promise<string> =>
  (await owner(scene)('webhooks_create_endpoint', { url: 'https://hooks.example.com/in', event_types }))
    .endpoint.id as string

const deliveriesTo = async (scene: Scene, endpoint_id: string): Promise<Delivery[]> =>
  (await owner(scene)('webhooks_list_deliveries', { endpoint_id, limit: 100 })).data as Delivery[]

const end = async (
  { server, workspace }: Scene,
  id: string,
  status: 'delivered' | 'dead' | 'failed',
): Promise<void> => {
  await sql`
    update webhook_deliveries set status = ${status}, attempts = 3, failures = 3, last_response_status = ${status === 'delivered' ? 200 : 500},
      delivered_at = case when ${status} = 'delivered' then now() end, next_attempt_at = case when ${status} = 'failed' then now() + interval '1 hour' end
    where workspace_id = ${workspace.id} and id = ${id}`.execute(server.db)
  await sql`
    insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms, response_status, response_excerpt, error, trigger)
    values (${workspace.id}, ${id}, 1, now(), 5, null, null, 'The connection was refused.', 'scheduled'), (${workspace.id}, ${id}, 2, now(), 7, 500, 'no 15550100042', null, 'scheduled')
    on conflict do nothing`.execute(server.db)
}

const makeGroups = async (scene: Scene, ...names: string[]): Promise<void> => {
  for (const name of names) await owner(scene)('crm_create_group', { name })
}

everyDatabase('What is owed for an event', (server) => {
  const scene = async (): Promise<Scene> => ({ server: server(), workspace: await makeWorkspace(server()) })

  it('is one delivery to each endpoint that is subscribed to its type or to all, none for others', async () => {
    const at = await scene()
    const named = await endpointFor(at, 'group.created/1')
    const all = await endpointFor(at, '*')
    const both = await endpointFor(at, 'group.created/1', 'group.deleted/1')
    await sql`insert into webhook_subscriptions (workspace_id, endpoint_id, event_type, created_at) values (${at.workspace.id}, ${both}, '*', now())`.execute(
      at.server.db,
    )
    const others = [await endpointFor(at, 'group.deleted/1'), await endpointFor(at)]
    const paused = await endpointFor(at, '*')
    await sql`update webhook_endpoints set status = 'paused' where workspace_id = ${at.workspace.id} and id = ${paused}`.execute(
      at.server.db,
    )
    const off = await endpointFor(at, '*')
    await owner(at)('webhooks_disable_endpoint', { endpoint_id: off })
    await owner(at)('webhooks_delete_endpoint', { endpoint_id: await endpointFor(at, '*') })
    const silent = await endpointFor(at, 'group.created/1')
    await sql`update webhook_subscriptions set active = false where workspace_id = ${at.workspace.id} and endpoint_id = ${silent}`.execute(
      at.server.db,
    )
    const before = (await owner(at)('events_list')).data.at(-1).id
    await makeGroups(at, 'A')
    const [event] = (await owner(at)('events_list', { after: before })).data
    for (const id of [named, all, both, paused]) {
      const made = (await deliveriesTo(at, id)).filter((d) => d.event_type_id === 'group.created/1')
      assert.equal(made.length, 1)
      assert.deepEqual(
        [made[0]!.event_id, made[0]!.status, made[0]!.attempts, made[0]!.created_at],
        [event.id, 'pending', 0, event.occurred_at],
      )
      assert.match(made[0]!.id, new RegExp(`^dlv_${event.id.slice(4, 14)}[0-9A-HJKMNP-TV-Z]{16}$`))
      assert.ok(Math.abs(Date.parse(made[0]!.next_attempt_at!) - Date.now()) < 60_000)
    }
    for (const id of [...others, off, silent])
      assert.deepEqual(
        (await deliveriesTo(at, id)).filter((d) => d.event_type_id === 'group.created/1'),
        [],
      )
  })

  it('is written with the change or not at all, and not by a rehearsal', async () => {
    const at = await scene()
    const id = await endpointFor(at, '*')
    await owner(at)('crm_create_group', { name: 'A', dry_run: true })
    await makeGroups(at, 'B')
    await at.server.db
      .transaction()
      .execute(async (tx) => {
        await insertEvents(tx, at.workspace.id, [
          { id: createEventId(), type: 'group.created/1', occurred_at: at.server.app.now(), data: {} },
        ])
        throw new Error('undone')
      })
      .catch((error: Error) => {
        assert.equal(error.message, 'undone')
      })
    assert.equal((await deliveriesTo(at, id)).length, 1)
  })

  it('is of its workspace alone', async () => {
    const [one, other] = [await scene(), await scene()]
    const id = await endpointFor(one, '*')
    await makeGroups(other, 'A')
    assert.deepEqual(await deliveriesTo(one, id), [])
  })
})

everyDoor('Event types', (test) => {
  test('are listed with schema, sample and the operations that cause them, page by page', async ({
    call,
  }) => {
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const { body }: Awaited<ReturnType<Door['call']>> = await call('webhooks_list_event_types', {
        limit: 10,
        ...(cursor ? { cursor } : {}),
      })
      seen.push(...body.data.map((t: { id: string }) => t.id))
      cursor = body.next_cursor as string | null
    } while (cursor !== null)
    assert.deepEqual(seen, Object.keys(eventTypes).toSorted())
    const {
      body: {
        data: [type],
      },
    } = await call('webhooks_list_event_types', { search: 'Group.Deleted' })
    assert.deepEqual(
      [type.id, type.operations, type.sample],
      ['group.deleted/1', ['crm_delete_group'], { group: { id: '3', name: 'VIP', emoji: '⭐' } }],
    )
    assert.deepEqual(type.schema.properties.group.required, ['id', 'name', 'emoji'])
    assert.deepEqual((await call('webhooks_list_event_types', { search: '%' })).body.data, [])
  })
})

everyDoor('Deliveries', (test) => {
  test('are listed newest first, by status, type and time, page by page', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await endpointFor(at, '*')
    await makeGroups(at, 'A', 'B', 'C')
    const {
      body: {
        group: { id: group },
      },
    } = await call('crm_create_group', { name: 'D' })
    await owner(at)('crm_delete_group', { group_id: group })
    const all = (await call('webhooks_list_deliveries', { endpoint_id: id })).body.data as Delivery[]
    assert.deepEqual(
      all.map((d) => d.event_type_id),
      ['group.deleted/1', ...Array.from({ length: 4 }, () => 'group.created/1')],
    )
    assert.deepEqual(
      all.toSorted((a, b) => (b.created_at + b.id < a.created_at + a.id ? -1 : 1)),
      all,
    )
    await end(at, all[1]!.id, 'dead')
    const ids = async (more: Record<string, unknown>) =>
      (await call('webhooks_list_deliveries', { endpoint_id: id, ...more })).body.data.map(
        (d: Delivery) => d.id,
      )
    assert.deepEqual(await ids({ status: 'dead' }), [all[1]!.id])
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
      [[...first.data, ...rest.data].map((d: Delivery) => d.id), rest.next_cursor],
      [all.map((d) => d.id), null],
    )
    await owner(at)('webhooks_delete_endpoint', { endpoint_id: id })
    assert.equal((await ids({ status: 'skipped' })).length, 4)
    assert.equal(
      (await call('webhooks_list_deliveries', { endpoint_id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status,
      404,
    )
  })

  test('show every attempt, with phones masked where they are hidden', async ({
    call,
    as,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await endpointFor(at, '*')
    await makeGroups(at, 'A')
    const [{ id: delivery_id }] = (await deliveriesTo(at, id)) as [Delivery]
    await end(at, delivery_id, 'dead')
    const { status, body } = await call('webhooks_get_delivery', { delivery_id })
    assert.deepEqual(
      [status, body.status, body.attempts, body.next_attempt_at, body.last_response_status],
      [200, 'dead', 3, null, 500],
    )
    const [refused, answered] = body.attempts_made
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
    const agent = as((await workspace.staff({ role: 'agent', hide_phone_numbers: true })).key)
    assert.equal(
      (await agent('webhooks_get_delivery', { delivery_id })).body.attempts_made[1].response_excerpt,
      'no ********042',
    )
    assert.equal(
      (await call('webhooks_get_delivery', { delivery_id: 'dlv_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status,
      404,
    )
  })

  test('are sent once more on request, but not to an endpoint that is off or gone', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await endpointFor(at, '*')
    await makeGroups(at, 'A', 'B', 'C', 'D')
    const [a, b, c, d] = (await deliveriesTo(at, id)).map((delivery) => delivery.id) as [
      string,
      string,
      string,
      string,
    ]
    for (const [one, status] of [
      [a, 'delivered'],
      [b, 'dead'],
      [c, 'failed'],
    ] as const)
      await end(at, one, status)
    const rehearsed = await call('webhooks_replay_delivery', { delivery_id: a, dry_run: true })
    assert.deepEqual(
      [rehearsed.body.delivery.status, (await call('webhooks_get_delivery', { delivery_id: a })).body.status],
      ['pending', 'delivered'],
    )
    for (const one of [a, b, c, d]) {
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
    const rows = await sql<{
      trigger: string
      failures: number
    }>`select trigger, failures from webhook_deliveries where workspace_id = ${workspace.id}`.execute(
      server.db,
    )
    assert.deepEqual(
      [...rows.rows],
      Array.from({ length: 4 }, () => ({ trigger: 'replay', failures: 0 })),
    )
    await end(at, a, 'delivered')
    await owner(at)('webhooks_disable_endpoint', { endpoint_id: id })
    const refused = await call('webhooks_replay_delivery', { delivery_id: a })
    assert.deepEqual([refused.status, refused.body.reason], [409, 'endpoint_disabled'])
    await owner(at)('webhooks_delete_endpoint', { endpoint_id: id })
    assert.deepEqual(
      (await call('webhooks_replay_delivery', { delivery_id: a })).body.reason,
      'endpoint_deleted',
    )
    assert.equal(
      (await call('webhooks_replay_delivery', { delivery_id: 'dlv_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status,
      404,
    )
  })

  test('of events that are no longer kept are not sent once more', async ({ call, server, workspace }) => {
    const at = { server, workspace }
    const id = await endpointFor(at, '*')
    await makeGroups(at, 'A')
    const [{ id: delivery_id }] = (await deliveriesTo(at, id)) as [Delivery]
    await end(at, delivery_id, 'dead')
    await sql`delete from events where workspace_id = ${workspace.id}`.execute(server.db)
    const { status, body } = await call('webhooks_replay_delivery', { delivery_id })
    assert.deepEqual([status, body.reason], [409, 'event_gone'])
  })
})

everyDoor('A test event', (test) => {
  test('is a delivery like a real one, and no event of the log', async ({ call, server, workspace }) => {
    const at = { server, workspace }
    const id = await endpointFor(at)
    const { status, body } = await call(
      'webhooks_send_test',
      { endpoint_id: id, event_type_id: 'contact.created/1' },
      { idempotencyKey: 'test-once-1' },
    )
    assert.deepEqual([status, body.endpoint_id], [202, id])
    const again = await call(
      'webhooks_send_test',
      { endpoint_id: id, event_type_id: 'contact.created/1' },
      { idempotencyKey: 'test-once-1' },
    )
    assert.deepEqual(again.body, body)
    const own = await call(
      'webhooks_send_test',
      { endpoint_id: id, event_type_id: 'group.deleted/1', payload: { anything: [1, 'ü'] } },
      { idempotencyKey: 'test-once-2' },
    )
    const made = await deliveriesTo(at, id)
    assert.deepEqual(
      made.map((d) => [d.event_id, d.event_type_id, d.status]).toSorted(),
      [
        [body.event_id, 'contact.created/1', 'pending'],
        [own.body.event_id, 'group.deleted/1', 'pending'],
      ].toSorted(),
    )
    const rows = await sql<{
      trigger: string
      payload: unknown
    }>`select trigger, payload from webhook_deliveries where workspace_id = ${workspace.id} order by event_id`.execute(
      server.db,
    )
    assert.deepEqual(
      [...rows.rows],
      [
        { trigger: 'test', payload: eventTypes['contact.created/1'].sample },
        { trigger: 'test', payload: { anything: [1, 'ü'] } },
      ],
    )
    assert.deepEqual((await call('events_list')).body.data, [])
    const rehearsed = await call('webhooks_send_test', {
      endpoint_id: id,
      event_type_id: 'contact.created/1',
      dry_run: true,
    })
    assert.deepEqual(
      [rehearsed.status, rehearsed.body],
      [202, { event_id: null, endpoint_id: id, dry_run: true }],
    )
    assert.equal((await deliveriesTo(at, id)).length, 2)
    assert.equal((await call('webhooks_replay_delivery', { delivery_id: made[0]!.id })).status, 202)
  })

  test('is refused for types that there are not, and to endpoints that are off or gone', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await endpointFor(at)
    const send = (input: Record<string, unknown>) =>
      call(
        'webhooks_send_test',
        { endpoint_id: id, event_type_id: 'contact.created/1', ...input },
        { idempotencyKey: crypto.randomUUID() },
      )
    const unknown = await send({ event_type_id: 'contact.create/1' })
    assert.deepEqual([unknown.status, unknown.body.errors[0].fix], [400, 'Did you mean contact.created/1?'])
    assert.equal((await send({ event_type_id: 'contact.created' })).status, 400)
    assert.equal((await send({ endpoint_id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0' })).status, 404)
    await owner(at)('webhooks_disable_endpoint', { endpoint_id: id })
    const off = await send({})
    assert.deepEqual([off.status, off.body.code, off.body.reason], [409, 'conflict', 'endpoint_disabled'])
    await owner(at)('webhooks_delete_endpoint', { endpoint_id: id })
    assert.equal((await send({})).status, 404)
  })
})

everyDoor('Recovery', (test) => {
  test('sends what an endpoint never took, once, of its subscriptions and of the span', async ({
    call,
    server,
    workspace,
  }) => {
    const at = { server, workspace }
    const id = await endpointFor(at, 'group.created/1')
    await makeGroups(at, 'taken', 'given up', 'tried again')
    const byName = new Map<string, string>()
    for (const event of (await owner(at)('events_list')).data as {
      id: string
      data: { group: { name: string } }
    }[])
      byName.set(event.id, event.data.group.name)
    for (const delivery of await deliveriesTo(at, id)) {
      const name = byName.get(delivery.event_id)
      await end(at, delivery.id, name === 'taken' ? 'delivered' : name === 'given up' ? 'dead' : 'failed')
    }
    await owner(at)('webhooks_disable_endpoint', { endpoint_id: id })
    await makeGroups(at, 'missed')
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
    await owner(at)('webhooks_enable_endpoint', { endpoint_id: id })
    assert.deepEqual(
      (await call('webhooks_recover_endpoint', { endpoint_id: id, from, to, dry_run: true })).body,
      { endpoint_id: id, recovered: 3, dry_run: true },
    )
    const done = await call('webhooks_recover_endpoint', { endpoint_id: id, from, to })
    assert.deepEqual([done.status, done.body], [202, { endpoint_id: id, recovered: 3 }])
    const { rows } = await sql<{ name: string | null; status: string; trigger: string }>`
      select e.data->'group'->>'name' as name, d.status, d.trigger from webhook_deliveries d join events e on e.workspace_id = d.workspace_id and e.id = d.event_id
      where d.workspace_id = ${workspace.id} and d.endpoint_id = ${id} order by 1 nulls last, 2, d.next_attempt_at`.execute(
      server.db,
    )
    assert.deepEqual(
      rows.map((r) => Object.values(r)),
      [
        ['given up', 'pending', 'recover'],
        ['missed', 'pending', 'recover'],
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

  test('is of at most 14 days, which end after they begin', async ({ call, server, workspace }) => {
    const id = await endpointFor({ server, workspace }, '*')
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

everyDatabase('A long recovery', (server) => {
  it('is done in steps, oldest event first', async () => {
    const at = { server: server(), workspace: await makeWorkspace(server()) }
    const id = await endpointFor(at, '*')
    await sql`
      insert into events (workspace_id, id, type, occurred_at, data)
      select ${at.workspace.id}::bigint, 'evt_01M0000000' || lpad(n::text, 16, '0'), 'group.created/1', '2026-10-01T00:00:00Z', '{}'::jsonb from generate_series(1, 12001) as n`.execute(
      at.server.db,
    )
    const span = { endpoint_id: id, from: '2026-10-01T00:00:00Z', to: '2026-10-02T00:00:00Z' }
    assert.equal((await owner(at)('webhooks_recover_endpoint', span)).recovered, 12_001)
    const { rows } = await sql<{ n: string; ordered: boolean }>`
      select count(*) as n, bool_and(ordered) as ordered from (
        select event_id >= coalesce(lag(event_id) over (order by next_attempt_at, event_id), '') as ordered from webhook_deliveries where workspace_id = ${at.workspace.id}) as d`.execute(
      at.server.db,
    )
    assert.deepEqual([...rows], [{ n: '12001', ordered: true }])
  })
})
