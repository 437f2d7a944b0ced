import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { createDeliveryTest } from './delivery-fixture.ts'

everyDatabase('Webhook deliveries to failing endpoints', (server) => {
  const test = createDeliveryTest(server)

  test('circuit breaker: pauses after ten failures, sends one probe at a time, resumes on success', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    loadEndpoint,
    makeDue,
    server: { db },
  }) => {
    const target = await startReceiver(() => ({ status: 500 }))
    const hook = await createEndpoint(target.url)
    const probe = () =>
      sql`update webhook_endpoints set next_probe_at = now() where id = ${hook.id}`.execute(db)
    await createGroups(2)
    for (let n = 0; n < 5; n++) {
      await makeDue(hook)
      await deliver()
    }
    assert.deepEqual(
      [(await loadEndpoint(hook)).status, (await loadEndpoint(hook)).consecutive_failures],
      ['paused', 10],
    )
    await createGroups(12)
    await makeDue(hook)
    assert.equal(await deliver(), 0, 'deliveries of a paused endpoint wait')
    await probe()
    assert.equal(await deliver(), 1, 'one probe')
    assert.deepEqual(
      [(await loadEndpoint(hook)).status, (await loadEndpoint(hook)).consecutive_failures],
      ['paused', 11],
    )
    target.answer = () => ({})
    await probe()
    assert.equal(await deliver(), 13, 'a probe, then the backlog')
    assert.deepEqual(
      [(await loadEndpoint(hook)).status, (await loadEndpoint(hook)).consecutive_failures],
      ['active', 0],
    )
    // The delivery of the failed probe waits for its next attempt.
    assert.deepEqual((await listDeliveries(hook)).map((d) => d.status).toSorted(), [
      ...Array(13).fill('delivered'),
      'failed',
    ])
  })

  test('an endpoint that keeps failing: warnings, then disabled after five days', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    makeDue,
    loadEndpoint,
    run,
    server: { db },
  }) => {
    const target = await startReceiver(() => ({ status: 500 }))
    const watcher = await startReceiver()
    await createEndpoint(watcher.url, {
      event_types: ['webhook.endpoint_warning/1', 'webhook.endpoint_disabled/1'],
    })
    const hook = await createEndpoint(target.url, { event_types: ['*'] })
    const failAfter = async (days: number): Promise<void> => {
      await sql`
        update webhook_endpoints set
          failing_since = now() - ${days}::float8 * interval '1 day', next_probe_at = now()
        where id = ${hook.id}`.execute(db)
      await makeDue(hook)
      await deliver()
    }
    await createGroups(10)
    await deliver()
    assert.equal((await loadEndpoint(hook)).status, 'paused')
    for (const days of [1, 2.6, 2.7, 3.6, 4.6, 4.7]) await failAfter(days)
    assert.equal((await loadEndpoint(hook)).status, 'paused')
    await failAfter(5.01)
    assert.deepEqual(
      [(await loadEndpoint(hook)).status, (await loadEndpoint(hook)).disabled_reason],
      ['disabled', 'failing'],
    )
    const reported = watcher.received.map(
      ({ body }) =>
        JSON.parse(body) as {
          type: string
          data: { percent?: number; reason?: string; endpoint: { id: string } }
        },
    )
    assert.deepEqual(
      reported.map(({ type, data }) => [type, data.percent ?? data.reason]),
      [
        ['webhook.endpoint_warning', 50],
        ['webhook.endpoint_warning', 70],
        ['webhook.endpoint_warning', 90],
        ['webhook.endpoint_disabled', 'failing'],
      ],
    )
    assert.ok(reported.every(({ data }) => data.endpoint.id === hook.id))
    const log = await run('events_list', { types: ['webhook.endpoint_disabled'] })
    assert.equal(log.data.length, 1)
  })

  test('time in which deliveries waited for a server is no part of an outage', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    loadEndpoint,
    server: { db },
  }) => {
    const target = await startReceiver(() => ({ status: 500 }))
    const hook = await createEndpoint(target.url)
    /** What is due since some days is tried now, and fails. Returns the days of the outage. */
    const failAfterStop = async (stoppedDays: number, failingDays: number): Promise<number> => {
      await sql`
        update webhook_deliveries set next_attempt_at = now() - ${stoppedDays}::float8 * interval '1 day'
        where endpoint_id = ${hook.id} and status in ('pending', 'failed')`.execute(db)
      await sql`
        update webhook_endpoints set failing_since = now() - ${failingDays}::float8 * interval '1 day',
          next_probe_at = case when status = 'paused' then now() - ${stoppedDays}::float8 * interval '1 day' end
        where id = ${hook.id}`.execute(db)
      assert.ok((await deliver()) > 0)
      const { rows } = await sql<{ days: number }>`
        select (extract(epoch from now() - failing_since) / 86400)::float8 as days
        from webhook_endpoints where id = ${hook.id}`.execute(db)
      return rows[0]!.days
    }
    const assertDays = (days: number, expected: number) =>
      assert.ok(Math.abs(days - expected) < 0.02, `failing for ${days} days`)
    await createGroups(5)
    await deliver()
    assertDays(await failAfterStop(6, 6.5), 0.5)
    assert.equal((await loadEndpoint(hook)).status, 'paused')
    assertDays(await failAfterStop(4, 5.5), 1.5)
    assert.equal((await loadEndpoint(hook)).status, 'paused')
    // Without a stop: it was probed all the time.
    assertDays(await failAfterStop(0, 4.5), 4.5)
    await failAfterStop(0, 5.01)
    assert.equal((await loadEndpoint(hook)).status, 'disabled')
  })

  test('410 disables the endpoint; its pending deliveries wait until it is enabled', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    loadEndpoint,
    run,
  }) => {
    const target = await startReceiver(() => ({ status: 410 }))
    const hook = await createEndpoint(target.url)
    await createGroups()
    await deliver()
    assert.deepEqual(
      [(await loadEndpoint(hook)).status, (await loadEndpoint(hook)).disabled_reason],
      ['disabled', 'gone'],
    )
    await createGroups()
    assert.equal((await listDeliveries(hook)).length, 1, 'events of a disabled endpoint get no delivery')
    assert.equal(await deliver(), 0)
    target.answer = () => ({})
    await run('webhooks_enable_endpoint', { endpoint_id: hook.id })
    assert.equal(await deliver(), 1)
    assert.deepEqual(
      (await listDeliveries(hook)).map((d) => d.status),
      ['delivered'],
    )
  })

  test('deliveries wait for a disabled endpoint and are skipped for a deleted one', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    run,
  }) => {
    const { url, received } = await startReceiver()
    const [off, gone] = [await createEndpoint(url), await createEndpoint(url)]
    await createGroups(3)
    await run('webhooks_disable_endpoint', { endpoint_id: off.id })
    await run('webhooks_delete_endpoint', { endpoint_id: gone.id })
    assert.equal(await deliver(), 0)
    assert.deepEqual(
      (await listDeliveries(gone)).map((d) => d.status),
      ['skipped', 'skipped', 'skipped'],
    )
    await run('webhooks_enable_endpoint', { endpoint_id: off.id })
    assert.equal(await deliver(), 3)
    assert.equal(received.length, 3)
    assert.deepEqual(
      (await listDeliveries(gone)).map((d) => d.status),
      ['skipped', 'skipped', 'skipped'],
    )
  })
})
