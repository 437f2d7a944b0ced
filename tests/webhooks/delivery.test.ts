import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { claimDeliveries } from '../../storage/webhook-deliveries.ts'
import { createJob, type Job } from '../../server/jobs/runner.ts'
import { deleteOldDeliveries, deliverDue, webhookDeliveriesJob } from '../../server/webhooks/delivery-job.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { type Received, type Receiver, startReceiver } from './receiver.ts'

type Endpoint = { id: string; secret: string }
type Scene = {
  server: TestServer
  run: ReturnType<typeof doAs>
  call: ReturnType<typeof callAs>
  workspaceId: string
  receiver: (answer?: Receiver['answer']) => Promise<Receiver>
  endpoint: (url: string, more?: Record<string, unknown>) => Promise<Endpoint>
  /** Causes an event of the type `group.created/1`; answers the group's name. */
  happen: (count?: number) => Promise<void>
  deliver: () => Promise<number>
  /** Brings the time of every delivery of an endpoint about. */
  hurry: (endpoint: Endpoint) => Promise<void>
  /** Deliveries of an endpoint, oldest first. */
  deliveries: (endpoint: Endpoint) => Promise<
    {
      id: string
      status: string
      attempts: number
      next_attempt_at: string | null
      last_response_status: number | null
    }[]
  >
  look: (
    endpoint: Endpoint,
  ) => Promise<{ status: string; consecutive_failures: number; disabled_reason: string | null }>
  /** Seconds until each open delivery is attempted. */
  waits: (endpoint: Endpoint) => Promise<number[]>
}

let serial = 0

/** Delivers in the background until it is stopped, as a server does. */
const startDeliveries = (app: TestServer['app']): Job => {
  const job = createJob(webhookDeliveriesJob(app), app.log)
  job.start()
  return job
}

const inScene = async (server: TestServer, body: (scene: Scene) => Promise<void>): Promise<void> => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  const receivers: Receiver[] = []
  try {
    await body({
      server,
      run,
      call: callAs(server, workspace.owner.key),
      workspaceId: workspace.id,
      receiver: async (answer) => {
        const receiver = await startReceiver(answer)
        receivers.push(receiver)
        return receiver
      },
      endpoint: async (url, more = {}) => {
        const { endpoint, signing_secret: secret } = await run('webhooks_create_endpoint', {
          url,
          event_types: ['group.created/1'],
          ...more,
        })
        return { id: endpoint.id, secret }
      },
      happen: async (count = 1) => {
        for (let n = 0; n < count; n++) await run('crm_create_group', { name: `Group ${++serial}` })
      },
      deliver: () => deliverDue(server.app),
      hurry: async ({ id }) => {
        await sql`update webhook_deliveries set next_attempt_at = now() where workspace_id = ${workspace.id} and endpoint_id = ${id} and status in ('pending', 'failed')`.execute(
          server.db,
        )
      },
      deliveries: async ({ id }) =>
        (await run('webhooks_list_deliveries', { endpoint_id: id, limit: 100 })).data.toReversed(),
      look: async ({ id }) => run('webhooks_get_endpoint', { endpoint_id: id }),
      waits: async ({ id }) =>
        (
          await sql<{ s: number }>`
        select extract(epoch from next_attempt_at - now())::float8 as s from webhook_deliveries
        where workspace_id = ${workspace.id} and endpoint_id = ${id} and status in ('pending', 'failed') order by next_attempt_at`.execute(
            server.db,
          )
        ).rows.map(({ s }) => s),
    })
  } finally {
    await Promise.all(receivers.map((receiver) => receiver.close()))
    // Another test's deliveries are not this one's business.
    await sql`update webhook_deliveries set status = 'skipped' where workspace_id = ${workspace.id} and status in ('pending', 'failed')`.execute(
      server.db,
    )
  }
}

const verified = ({ secret }: Pick<Endpoint, 'secret'>, received: Received) =>
  new Webhook(secret).verify(received.body, received.headers) as Record<string, unknown>
const near = (seconds: number, expected: number): void =>
  assert.ok(
    seconds > expected * 0.9 - 5 && seconds < expected * 1.1 + 1,
    `${seconds} s is not about ${expected} s`,
  )
const until = async (what: string, done: () => boolean): Promise<void> => {
  for (const end = Date.now() + 10_000; !done();) {
    assert.ok(Date.now() < end, what)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

everyDatabase('Webhook deliveries', (server, database) => {
  const test = (name: string, body: (scene: Scene) => Promise<void>) =>
    it(name, () => inScene(server(), body))

  test("are signed envelopes with headers of their own and the customer's", async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    workspaceId,
  }) => {
    const { url, received } = await receiver()
    const hook = await endpoint(url, { custom_headers: { 'X-Team': 'blue team' } })
    await happen()
    assert.equal(await deliver(), 1)
    const [one] = await deliveries(hook)
    const envelope = verified(hook, received[0]!)
    assert.deepEqual(Object.keys(envelope), [
      'id',
      'type',
      'version',
      'api_version',
      'occurred_at',
      'company_id',
      'data',
    ])
    assert.deepEqual(
      [envelope['type'], envelope['version'], envelope['company_id']],
      ['group.created', '1', workspaceId],
    )
    assert.match((envelope['data'] as { group: { name: string } }).group.name, /^Group \d+$/)
    const { headers } = received[0]!
    assert.equal(headers['webhook-id'], envelope['id'])
    assert.deepEqual(
      [
        headers['wc-event-type'],
        headers['wc-delivery-id'],
        headers['wc-attempt'],
        headers['content-type'],
        headers['x-team'],
      ],
      ['group.created/1', one!.id, '1', 'application/json', 'blue team'],
    )
    assert.match(headers['user-agent']!, /^wcrm-webhooks/)
    assert.deepEqual(
      [one!.status, one!.attempts, one!.last_response_status, one!.next_attempt_at],
      ['delivered', 1, 200, null],
    )
    assert.equal(await deliver(), 0)
  })

  test('hold the data alone in the format "data"', async ({ receiver, endpoint, happen, deliver }) => {
    const { url, received } = await receiver()
    const hook = await endpoint(url, { payload_format: 'data' })
    await happen()
    await deliver()
    assert.deepEqual(Object.keys(verified(hook, received[0]!)), ['group'])
  })

  test('are verified by either secret after a rotation, on retries and on replays; id and body stay', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    hurry,
    deliveries,
    run,
    call,
  }) => {
    const target = await receiver(() => ({ status: 503 }))
    const hook = await endpoint(target.url)
    await happen()
    await deliver()
    const {
      body: { signing_secret: secret },
    } = await call(
      'webhooks_rotate_secret',
      { endpoint_id: hook.id },
      { confirm: 'rotate', idempotencyKey: `rotate-${hook.id}` },
    )
    await hurry(hook)
    target.answer = () => ({})
    await deliver()
    await run('webhooks_replay_delivery', { delivery_id: (await deliveries(hook))[0]!.id })
    await deliver()
    const [first, ...later] = target.received
    assert.equal(later.length, 2)
    verified(hook, first!)
    assert.throws(() => verified({ secret }, first!))
    for (const one of later) {
      verified(hook, one)
      verified({ secret }, one)
      assert.deepEqual([one.headers['webhook-id'], one.body], [first!.headers['webhook-id'], first!.body])
    }
    assert.deepEqual(
      later.map(({ headers }) => headers['wc-attempt']),
      ['2', '3'],
    )
    const [one] = await deliveries(hook)
    const { attempts_made: made } = await run('webhooks_get_delivery', { delivery_id: one!.id })
    assert.deepEqual(
      made.map((a: { number: number; response_status: number; trigger: string }) => [
        a.number,
        a.response_status,
        a.trigger,
      ]),
      [
        [1, 503, 'scheduled'],
        [2, 200, 'scheduled'],
        [3, 200, 'replay'],
      ],
    )
  })

  test('are tried ten times on the schedule, then are dead', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    hurry,
    deliveries,
    waits,
  }) => {
    const target = await receiver(() => ({ status: 500, body: 'no' }))
    const hook = await endpoint(target.url)
    await happen()
    for (const delay of [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]) {
      assert.equal(await deliver(), 1)
      const [wait] = await waits(hook)
      near(wait!, delay)
      assert.equal((await deliveries(hook))[0]!.status, 'failed')
      assert.equal(await deliver(), 0, 'not before its time')
      await hurry(hook)
    }
    assert.equal(await deliver(), 1)
    const [one] = await deliveries(hook)
    assert.deepEqual(
      [one!.status, one!.attempts, one!.next_attempt_at, one!.last_response_status],
      ['dead', 10, null, 500],
    )
    await hurry(hook)
    assert.equal(await deliver(), 0)
    assert.equal(target.received.length, 10)
  })

  test('wait as long as Retry-After says, at most a day', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    waits,
  }) => {
    const target = await receiver()
    for (const [header, expected] of [
      ['3600', 3600],
      ['999999999999', 86_400],
      [new Date(Date.now() + 7200_000).toUTCString(), 7200],
      ['1', 5],
      ['soon', 5],
      ['-3', 5],
    ] as const) {
      const hook = await endpoint(target.url)
      target.answer = () => ({ status: 429, headers: { 'Retry-After': header } })
      await happen()
      await deliver()
      const [wait] = await waits(hook)
      near(wait!, expected)
    }
  })

  test('take 2xx alone for success, and follow no redirect', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
  }) => {
    const elsewhere = await receiver()
    for (const [status, expected] of [
      [204, 'delivered'],
      [299, 'delivered'],
      [301, 'failed'],
      [302, 'failed'],
      [307, 'failed'],
      [308, 'failed'],
      [400, 'failed'],
      [404, 'failed'],
      [500, 'failed'],
    ] as const) {
      const target = await receiver(() => ({ status, headers: { Location: elsewhere.url } }))
      const hook = await endpoint(target.url)
      await happen()
      await deliver()
      assert.deepEqual(
        (await deliveries(hook)).map((d) => [d.status, d.last_response_status]),
        [[expected, status]],
      )
    }
    assert.equal(elsewhere.received.length, 0)
  })

  test('keep a kilobyte of an answer as safe text, without secrets that come back', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    run,
  }) => {
    const target = await receiver(({ headers }) => ({
      status: 500,
      body: Buffer.concat([
        Buffer.from(`you sent ${headers['x-token']}\u0000\u0007`),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('😀'.repeat(20_000)),
      ]),
    }))
    const hook = await endpoint(target.url, { custom_headers: { 'X-Token': 'very secret token' } })
    await happen()
    await deliver()
    const {
      attempts_made: [made],
    } = await run('webhooks_get_delivery', { delivery_id: (await deliveries(hook))[0]!.id })
    assert.ok(
      Buffer.byteLength(made.response_excerpt) <= 1024 && Buffer.byteLength(made.response_excerpt) > 1000,
    )
    assert.match(made.response_excerpt, /^you sent \*{4}  ��😀+$/u)
  })

  test('read no endless answer, and say why none came', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    run,
  }) => {
    const big = await receiver(() => ({ body: Buffer.alloc(20_000_000, 'x') }))
    const dropped = await receiver(() => 'drop')
    const gone = await receiver()
    await gone.close()
    const hooks = [await endpoint(big.url), await endpoint(dropped.url), await endpoint(gone.url)]
    await happen()
    await deliver()
    const made = await Promise.all(
      hooks.map(async (hook) => {
        const [one] = await deliveries(hook)
        const {
          attempts_made: [attempt],
        } = await run('webhooks_get_delivery', { delivery_id: one!.id })
        return [one!.status, attempt.error]
      }),
    )
    assert.deepEqual(made, [
      ['delivered', undefined],
      ['failed', 'The connection was closed before an answer.'],
      ['failed', 'The connection was refused.'],
    ])
  })

  test('pause an endpoint after ten failures in a row, probe it one at a time, and flow when it works again', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    look,
    hurry,
    server: { db },
  }) => {
    const target = await receiver(() => ({ status: 500 }))
    const hook = await endpoint(target.url)
    const probe = () =>
      sql`update webhook_endpoints set next_probe_at = now() where id = ${hook.id}`.execute(db)
    await happen(2)
    for (let n = 0; n < 5; n++) {
      await hurry(hook)
      await deliver()
    }
    assert.deepEqual([(await look(hook)).status, (await look(hook)).consecutive_failures], ['paused', 10])
    await happen(12)
    await hurry(hook)
    assert.equal(await deliver(), 0, 'new deliveries wait')
    await probe()
    assert.equal(await deliver(), 1, 'one probe')
    assert.deepEqual([(await look(hook)).status, (await look(hook)).consecutive_failures], ['paused', 11])
    target.answer = () => ({})
    await probe()
    assert.equal(await deliver(), 13, 'a probe, and then the backlog')
    assert.deepEqual([(await look(hook)).status, (await look(hook)).consecutive_failures], ['active', 0])
    // The delivery of the failed probe waits for its time.
    assert.deepEqual((await deliveries(hook)).map((d) => d.status).toSorted(), [
      ...Array(13).fill('delivered'),
      'failed',
    ])
  })

  test('warn of an endpoint that fails for long, and disable it after five days', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    hurry,
    look,
    run,
    server: { db },
  }) => {
    const target = await receiver(() => ({ status: 500 }))
    const watcher = await receiver()
    await endpoint(watcher.url, {
      event_types: ['webhook.endpoint_warning/1', 'webhook.endpoint_disabled/1'],
    })
    const hook = await endpoint(target.url, { event_types: ['*'] })
    const at = async (days: number): Promise<void> => {
      await sql`update webhook_endpoints set failing_since = now() - ${days}::float8 * interval '1 day', next_probe_at = now() where id = ${hook.id}`.execute(
        db,
      )
      await hurry(hook)
      await deliver()
    }
    await happen(10)
    await deliver()
    assert.equal((await look(hook)).status, 'paused')
    for (const days of [1, 2.6, 2.7, 3.6, 4.6, 4.7]) await at(days)
    assert.equal((await look(hook)).status, 'paused')
    await at(5.01)
    assert.deepEqual([(await look(hook)).status, (await look(hook)).disabled_reason], ['disabled', 'failing'])
    const told = watcher.received.map(
      ({ body }) =>
        JSON.parse(body) as {
          type: string
          data: { percent?: number; reason?: string; endpoint: { id: string } }
        },
    )
    assert.deepEqual(
      told.map(({ type, data }) => [type, data.percent ?? data.reason]),
      [
        ['webhook.endpoint_warning', 50],
        ['webhook.endpoint_warning', 70],
        ['webhook.endpoint_warning', 90],
        ['webhook.endpoint_disabled', 'failing'],
      ],
    )
    assert.ok(told.every(({ data }) => data.endpoint.id === hook.id))
    const log = await run('events_list', { types: ['webhook.endpoint_disabled'] })
    assert.equal(log.data.length, 1)
  })

  test('stop at 410: what is pending waits until the endpoint is enabled', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    look,
    run,
  }) => {
    const target = await receiver(() => ({ status: 410 }))
    const hook = await endpoint(target.url)
    await happen()
    await deliver()
    assert.deepEqual([(await look(hook)).status, (await look(hook)).disabled_reason], ['disabled', 'gone'])
    await happen()
    assert.equal((await deliveries(hook)).length, 1, 'what happens meanwhile gets no delivery')
    assert.equal(await deliver(), 0)
    target.answer = () => ({})
    await run('webhooks_enable_endpoint', { endpoint_id: hook.id })
    assert.equal(await deliver(), 1)
    assert.deepEqual(
      (await deliveries(hook)).map((d) => d.status),
      ['delivered'],
    )
  })

  test('wait for a disabled endpoint, and are skipped with a deleted one', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    run,
  }) => {
    const { url, received } = await receiver()
    const [off, gone] = [await endpoint(url), await endpoint(url)]
    await happen(3)
    await run('webhooks_disable_endpoint', { endpoint_id: off.id })
    await run('webhooks_delete_endpoint', { endpoint_id: gone.id })
    assert.equal(await deliver(), 0)
    assert.deepEqual(
      (await deliveries(gone)).map((d) => d.status),
      ['skipped', 'skipped', 'skipped'],
    )
    await run('webhooks_enable_endpoint', { endpoint_id: off.id })
    assert.equal(await deliver(), 3)
    assert.equal(received.length, 3)
    assert.deepEqual(
      (await deliveries(gone)).map((d) => d.status),
      ['skipped', 'skipped', 'skipped'],
    )
  })

  test('of a process that died are attempted again and not counted twice', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    server: { db },
  }) => {
    const { url, received } = await receiver()
    const hook = await endpoint(url)
    await happen(3)
    assert.equal(
      (await claimDeliveries(db, 30, 8, new Map())).filter((d) => d.endpoint_id === hook.id).length,
      3,
    )
    assert.equal(await deliver(), 0, 'the lease holds')
    await sql`update webhook_deliveries set lease_until = now() - interval '1 second' where endpoint_id = ${hook.id}`.execute(
      db,
    )
    assert.equal(await deliver(), 3)
    assert.deepEqual(
      (await deliveries(hook)).map((d) => [d.status, d.attempts]),
      Array(3).fill(['delivered', 1]),
    )
    assert.deepEqual(
      received.map(({ headers }) => headers['wc-attempt']),
      ['1', '1', '1'],
    )
  })

  test('come in the order of the events, at most eight at a time to an endpoint', async ({
    receiver,
    endpoint,
    happen,
    deliver,
  }) => {
    let underWay = 0
    let most = 0
    const target = await receiver(async () => {
      most = Math.max(most, ++underWay)
      await new Promise((resolve) => setTimeout(resolve, 20))
      underWay--
      return {}
    })
    await endpoint(target.url)
    await happen(30)
    await deliver()
    assert.equal(most, 8)
    const names = target.received.map(({ body }) => Number(/Group (\d+)/.exec(body)![1]))
    // Eight are under way at once, so neighbours may overtake each other, and no others.
    for (const [n, name] of names.entries())
      assert.ok(Math.abs(name - names.toSorted((a, b) => a - b)[n]!) < 8)
  })

  test('to one endpoint are not held up by others that never answer', async ({
    receiver,
    endpoint,
    happen,
    server: { app },
  }) => {
    const [dead, good] = [await receiver(() => 'hang'), await receiver()]
    for (let n = 0; n < 5; n++) await endpoint(dead.url)
    await endpoint(good.url)
    const { stop } = startDeliveries(app)
    try {
      const count = 25
      const begun = performance.now()
      await happen(count)
      await until('the good endpoint is told of everything', () => good.received.length === count)
      assert.ok(performance.now() - begun < 9000, 'long before the others are given up')
      assert.ok(dead.received.length <= 40)
    } finally {
      await dead.close()
      await stop()
    }
  })

  test('begin when the event is committed, and what is under way when the worker stops is written', async ({
    receiver,
    endpoint,
    happen,
    deliveries,
    server: { app },
  }) => {
    let answer = (): void => {}
    const target = await receiver(
      () =>
        new Promise((resolve) => {
          answer = () => resolve({})
        }),
    )
    const hook = await endpoint(target.url)
    const { stop } = startDeliveries(app)
    await happen()
    await until('the event is sent', () => target.received.length === 1)
    const stopped = stop()
    answer()
    await stopped
    assert.deepEqual(
      (await deliveries(hook)).map((d) => [d.status, d.attempts]),
      [['delivered', 1]],
    )
    await happen()
    assert.equal(target.received.length, 1, 'a stopped worker begins nothing')
  })

  test('are given back when a worker stops before it has sent them', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    server: { app, db },
    workspaceId,
  }) => {
    // A quick endpoint is leased more than may be under way.
    const target = await receiver()
    await endpoint(target.url)
    await happen()
    const { stop } = startDeliveries(app)
    await until('it proves quick', () => target.received.length === 1)
    target.answer = () => 'hang'
    await happen(30)
    await until('some are under way', () => target.received.length === 9)
    const stopped = stop()
    await target.close()
    await stopped
    const {
      rows: [left],
    } = await sql<{ leased: string; unsent: string }>`
      select count(*) filter (where lease_until is not null) as leased, count(*) filter (where status = 'pending' and attempts = 0) as unsent
      from webhook_deliveries where workspace_id = ${workspaceId}`.execute(db)
    assert.equal(left!.leased, '0')
    assert.ok(Number(left!.unsent) > 0)
    assert.ok((await deliver()) > 0)
  })

  test('that are over are forgotten after their time, with their attempts', async ({
    receiver,
    endpoint,
    happen,
    deliver,
    deliveries,
    server: { app, db },
    workspaceId,
  }) => {
    const target = await receiver()
    const hook = await endpoint(target.url)
    await happen(3)
    await deliver()
    target.answer = () => ({ status: 500 })
    await happen()
    await deliver()
    const ids = (await deliveries(hook)).map((d) => d.id)
    await sql`update webhook_deliveries set created_at = ${new Date(Date.now() - 31 * 86_400_000).toISOString()}::timestamptz where endpoint_id = ${hook.id} and id <> ${ids[0]!}`.execute(
      db,
    )
    await deleteOldDeliveries(app)
    // The first is young, the last is not over.
    assert.deepEqual((await deliveries(hook)).map((d) => d.id).toSorted(), [ids[0], ids[3]].toSorted())
    const { rows } = await sql<{
      delivery_id: string
    }>`select delivery_id from webhook_attempts where workspace_id = ${workspaceId} order by delivery_id`.execute(
      db,
    )
    assert.deepEqual(
      rows.map((r) => r.delivery_id),
      [ids[0], ids[3]].toSorted(),
    )
  })

  test('of a change that committed beside the delete of their endpoint are dropped', async ({
    receiver,
    endpoint,
    happen,
    deliveries,
    server: { app, db },
  }) => {
    const hook = await endpoint((await receiver()).url)
    await happen()
    // As the race leaves it: the endpoint gone, the delivery still owed.
    await sql`update webhook_endpoints set deleted_at = ${app.now()}::timestamptz where id = ${hook.id}`.execute(
      db,
    )
    await deleteOldDeliveries(app)
    assert.deepEqual(
      (await deliveries(hook)).map((d) => d.status),
      ['skipped'],
    )
  })

  if (database === 'embedded') {
    test('are given up after 15 seconds without an answer', async ({
      receiver,
      endpoint,
      happen,
      deliver,
      deliveries,
      run,
    }) => {
      const target = await receiver(() => 'hang')
      const hook = await endpoint(target.url)
      await happen()
      await deliver()
      const [one] = await deliveries(hook)
      const {
        attempts_made: [made],
      } = await run('webhooks_get_delivery', { delivery_id: one!.id })
      assert.deepEqual([one!.status, made.error], ['failed', 'No answer came within 15 seconds.'])
      assert.ok(made.duration_ms >= 14_900 && made.duration_ms < 17_000, String(made.duration_ms))
    })
  }
})
