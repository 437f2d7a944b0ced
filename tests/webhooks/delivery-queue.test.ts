import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { sql } from 'kysely'
import { BREAKER_RULES } from '../../server/domains/webhooks/breaker.ts'
import type { Db } from '../../storage/database.ts'
import { claimDeliveries } from '../../storage/webhooks/deliveries.ts'
import { recordDeliveryResults } from '../../storage/webhooks/results.ts'
import { deleteOldDeliveries } from '../../server/domains/webhooks/delivery-job.ts'
import { everyDatabase } from '../doors.ts'
import { createDeliveryTest, startDeliveries } from './delivery-fixture.ts'
import { waitUntil } from '../wait-until.ts'

/** Plants this many failed deliveries of an endpoint, which are tried again from in an hour on, one each second. */
const plantBacklog = (db: Db, workspaceId: string, endpointId: string, now: string, count: number) =>
  sql`
    insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, status, attempts,
      next_attempt_at, created_at)
    select ${workspaceId}::bigint, 'dlv_01K0000000' || lpad(n::text, 16, '0'), ${endpointId},
      'evt_01K0000000' || lpad(n::text, 16, '0'), 'group.created/1', 'failed', 1,
      now() + interval '1 hour' + n * interval '1 second', ${now}::timestamptz
    from generate_series(1, ${count}::int) as n`.execute(db)

everyDatabase('Webhook delivery queue', (server) => {
  const test = createDeliveryTest(server)

  test('an expired lease: the delivery is attempted again and not counted twice', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    server: { db },
  }) => {
    const { url, received } = await startReceiver()
    const hook = await createEndpoint(url)
    await createGroups(3)
    assert.equal(
      (await claimDeliveries(db, 30, 8, new Map())).filter((d) => d.endpoint_id === hook.id).length,
      3,
    )
    assert.equal(await deliver(), 0, 'the lease has not expired')
    await sql`
      update webhook_deliveries set lease_until = now() - interval '1 second'
      where endpoint_id = ${hook.id}`.execute(db)
    assert.equal(await deliver(), 3)
    assert.deepEqual(
      (await listDeliveries(hook)).map((d) => [d.status, d.attempts]),
      Array(3).fill(['delivered', 1]),
    )
    assert.deepEqual(
      received.map(({ headers }) => headers['wc-attempt']),
      ['1', '1', '1'],
    )
  })

  test('results that are recorded again, because the answer was lost, count once', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    loadEndpoint,
    workspaceId,
    server: { app, db },
  }) => {
    const hook = await createEndpoint((await startReceiver()).url)
    await createGroups(3)
    const claimed = (await claimDeliveries(db, 30, 8, new Map())).filter((d) => d.endpoint_id === hook.id)
    const attempts = claimed.map(({ id, endpoint_id, lease }) => ({
      workspace_id: workspaceId,
      id,
      endpoint_id,
      lease,
      status: 'failed' as const,
      failures: 1,
      retry_in: 60,
      started_at: app.now(),
      duration_ms: 1,
      response_status: 500,
      response_excerpt: null,
      error: null,
    }))
    const endpoint = {
      workspace_id: workspaceId,
      id: hook.id,
      succeeded: false,
      failures: 3,
      gone: false,
      ours: null,
    }
    for (let n = 0; n < 2; n++)
      await recordDeliveryResults(db, attempts, [endpoint], BREAKER_RULES, app.now())
    assert.equal((await loadEndpoint(hook)).consecutive_failures, 3)
  })

  test('order: by event, at most eight requests in flight to one endpoint', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
  }) => {
    let inFlight = 0
    let maxInFlight = 0
    const target = await startReceiver(async () => {
      maxInFlight = Math.max(maxInFlight, ++inFlight)
      await new Promise((resolve) => setTimeout(resolve, 20))
      inFlight--
      return {}
    })
    await createEndpoint(target.url)
    await createGroups(30)
    await deliver()
    assert.equal(maxInFlight, 8)
    const names = target.received.map(({ body }) => Number(/Group (\d+)/.exec(body)![1]))
    // With eight in flight an event can only overtake its close neighbours.
    for (const [n, name] of names.entries())
      assert.ok(Math.abs(name - names.toSorted((a, b) => a - b)[n]!) < 8)
  })

  test('an endpoint that never answers does not delay the others', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    server: { app },
  }) => {
    const [dead, good] = [await startReceiver(() => 'hang'), await startReceiver()]
    for (let n = 0; n < 5; n++) await createEndpoint(dead.url)
    await createEndpoint(good.url)
    const { stop } = startDeliveries(app)
    try {
      const count = 25
      const startedAt = performance.now()
      await createGroups(count)
      await waitUntil('the good endpoint receives all events', () => good.received.length === count)
      assert.ok(performance.now() - startedAt < 9000, 'long before the attempts to the others time out')
      assert.ok(dead.received.length <= 40)
    } finally {
      await dead.close()
      await stop()
    }
  })

  test('delivery starts at commit; stopping the job records the attempts in flight', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    listDeliveries,
    server: { app },
  }) => {
    let answer = (): void => {}
    const target = await startReceiver(
      () =>
        new Promise((resolve) => {
          answer = () => resolve({})
        }),
    )
    const hook = await createEndpoint(target.url)
    const { stop } = startDeliveries(app)
    await createGroups()
    await waitUntil('the event is sent', () => target.received.length === 1)
    const stopped = stop()
    answer()
    await stopped
    assert.deepEqual(
      (await listDeliveries(hook)).map((d) => [d.status, d.attempts]),
      [['delivered', 1]],
    )
    await createGroups()
    assert.equal(target.received.length, 1, 'a stopped job starts no attempt')
  })

  test('a replay that is asked for while an attempt fails has all its attempts, at once', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    listDeliveries,
    run,
    server: { app, db },
  }) => {
    const answers: (() => void)[] = []
    const target = await startReceiver(
      () => new Promise((resolve) => answers.push(() => resolve({ status: answers.length > 1 ? 200 : 500 }))),
    )
    const hook = await createEndpoint(target.url)
    await createGroups()
    await sql`update webhook_deliveries set failures = 9 where endpoint_id = ${hook.id}`.execute(db)
    const { stop } = startDeliveries(app)
    try {
      await waitUntil('the event is sent', () => target.received.length === 1)
      await run('webhooks_replay_delivery', { delivery_id: (await listDeliveries(hook))[0]!.id })
      answers[0]!()
      await waitUntil('it is sent again', () => target.received.length === 2)
      answers[1]!()
    } finally {
      await stop()
    }
    assert.deepEqual(
      (await listDeliveries(hook)).map(({ status, attempts }) => [status, attempts]),
      [['delivered', 2]],
    )
  })

  test('stopping the job releases leases of deliveries that were not sent', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    server: { app, db },
    workspaceId,
  }) => {
    // More deliveries of a fast endpoint are leased than may be in flight.
    const target = await startReceiver()
    await createEndpoint(target.url)
    await createGroups()
    const { stop } = startDeliveries(app)
    await waitUntil('the endpoint is measured as fast', () => target.received.length === 1)
    target.answer = () => 'hang'
    await createGroups(30)
    await waitUntil('eight are in flight', () => target.received.length === 9)
    const stopped = stop()
    await target.close()
    await stopped
    const {
      rows: [counts],
    } = await sql<{ leased: string; unsent: string }>`
      select count(*) filter (where lease_until is not null) as leased,
        count(*) filter (where status = 'pending' and attempts = 0) as unsent
      from webhook_deliveries where workspace_id = ${workspaceId}`.execute(db)
    assert.equal(counts!.leased, '0')
    assert.ok(Number(counts!.unsent) > 0)
    assert.ok((await deliver()) > 0)
  })

  test('retention: finished deliveries are deleted with their attempts', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    server: { app, db },
    workspaceId,
  }) => {
    const target = await startReceiver()
    const hook = await createEndpoint(target.url)
    await createGroups(3)
    await deliver()
    target.answer = () => ({ status: 500 })
    await createGroups()
    await deliver()
    const ids = (await listDeliveries(hook)).map((d) => d.id)
    const monthAgo = new Date(Date.now() - 31 * 86_400_000).toISOString()
    await sql`
      update webhook_deliveries set created_at = ${monthAgo}::timestamptz
      where endpoint_id = ${hook.id} and id <> ${ids[0]!}`.execute(db)
    await deleteOldDeliveries(app)
    // The first is recent, the last is not finished.
    assert.deepEqual((await listDeliveries(hook)).map((d) => d.id).toSorted(), [ids[0], ids[3]].toSorted())
    // Attempts of the others are dropped with their partition (tests/storage/partitions.test.ts).
    const { rows } = await sql<{ delivery_id: string }>`
      select a.delivery_id from webhook_attempts a
      join webhook_deliveries d on d.workspace_id = a.workspace_id and d.id = a.delivery_id
      where a.workspace_id = ${workspaceId} order by 1`.execute(db)
    assert.deepEqual(
      rows.map((r) => r.delivery_id),
      [ids[0], ids[3]].toSorted(),
    )
  })

  test('deliveries of an endpoint that is disabled for longer than deliveries are kept go', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    listDeliveries,
    run,
    server: { app, db },
  }) => {
    const hook = await createEndpoint((await startReceiver()).url)
    await createGroups(2)
    await run('webhooks_disable_endpoint', { endpoint_id: hook.id })
    const disableFor = (days: number) =>
      sql`
      update webhook_endpoints set disabled_at = ${app.now()}::timestamptz - ${days}::int * interval '1 day'
      where id = ${hook.id}`.execute(db)
    await disableFor(app.config.webhookRetentionDays - 1)
    await deleteOldDeliveries(app)
    assert.deepEqual(
      (await listDeliveries(hook)).map((d) => d.status),
      ['pending', 'pending'],
    )
    await disableFor(app.config.webhookRetentionDays + 1)
    await deleteOldDeliveries(app)
    assert.deepEqual(
      (await listDeliveries(hook)).map((d) => d.status),
      ['skipped', 'skipped'],
    )
  })

  test('a large backlog: its first part is due or skipped at once, the rest by the job', async ({
    startReceiver,
    createEndpoint,
    run,
    workspaceId,
    server: { app, db },
  }) => {
    const hook = await createEndpoint((await startReceiver()).url)
    await plantBacklog(db, workspaceId, hook.id, app.now(), 2500)
    const countBy = async (column: string): Promise<unknown> =>
      (
        await sql<{ n: number }>`
        select count(*)::int as n from webhook_deliveries
        where endpoint_id = ${hook.id} and ${sql.raw(column)}`.execute(db)
      ).rows[0]!.n
    await run('webhooks_disable_endpoint', { endpoint_id: hook.id })
    await run('webhooks_enable_endpoint', { endpoint_id: hook.id })
    assert.equal(await countBy('next_attempt_at <= now()'), 1000)
    // The last one is attempted meanwhile, and fails again.
    await sql`
      insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms, trigger)
      select workspace_id, id, 1, now() + interval '1 second', 5, 'scheduled' from webhook_deliveries
      where endpoint_id = ${hook.id} order by id desc limit 1`.execute(db)
    await app.jobs.job('webhook-delivery-retention').runOnce()
    assert.equal(await countBy('next_attempt_at <= now()'), 2499)
    await sql`
      update webhook_deliveries set next_attempt_at = now() + interval '1 hour'
      where endpoint_id = ${hook.id}`.execute(db)
    await app.jobs.job('webhook-delivery-retention').runOnce()
    assert.equal(await countBy('next_attempt_at <= now()'), 0, 'it is over')
    await run('webhooks_delete_endpoint', { endpoint_id: hook.id })
    assert.equal(await countBy(`status = 'skipped'`), 1000)
    await app.jobs.job('webhook-delivery-retention').runOnce()
    assert.equal(await countBy(`status = 'skipped'`), 2500)
  })

  test('a server with a wrong clock makes the rest of a backlog due, and deletes nothing', async ({
    startReceiver,
    createEndpoint,
    run,
    workspaceId,
    server: { app, db },
  }) => {
    const hook = await createEndpoint((await startReceiver()).url)
    await plantBacklog(db, workspaceId, hook.id, app.now(), 1501)
    await sql`
      update webhook_deliveries set status = 'delivered', next_attempt_at = null
      where endpoint_id = ${hook.id} and id = (
        select min(id) from webhook_deliveries where endpoint_id = ${hook.id})`.execute(db)
    await run('webhooks_disable_endpoint', { endpoint_id: hook.id })
    await run('webhooks_enable_endpoint', { endpoint_id: hook.id })
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 500 * 86_400_000 })
    try {
      await app.jobs.job('webhook-delivery-retention').runOnce()
    } finally {
      mock.timers.reset()
    }
    const { rows } = await sql<{ due: number; all: number }>`
      select count(*) filter (where next_attempt_at <= now())::int as due, count(*)::int as all
      from webhook_deliveries where endpoint_id = ${hook.id}`.execute(db)
    assert.deepEqual(rows, [{ due: 1500, all: 1501 }])
  })

  test('a delivery inserted while its endpoint was deleted is skipped', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    listDeliveries,
    server: { app, db },
  }) => {
    const hook = await createEndpoint((await startReceiver()).url)
    await createGroups()
    // The state after the race: the endpoint is deleted and the delivery still pending.
    await sql`
      update webhook_endpoints set deleted_at = ${app.now()}::timestamptz
      where id = ${hook.id}`.execute(db)
    await deleteOldDeliveries(app)
    assert.deepEqual(
      (await listDeliveries(hook)).map((d) => d.status),
      ['skipped'],
    )
  })
})
