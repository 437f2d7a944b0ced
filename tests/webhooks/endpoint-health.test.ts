import assert from 'node:assert/strict'
import { sql } from 'kysely'
import type { App } from '../../server/app.ts'
import { createSealer } from '../../server/sealer.ts'
import { createSecretRing } from '../../server/secret.ts'
import { deliverDue } from '../deliver-due.ts'
import { createWebhookGuard } from '../../server/outbound-guard.ts'
import { everyDatabase } from '../doors.ts'
import { createDeliveryTest } from './delivery-fixture.ts'

/** The same server, started with another secret. */
const withOtherSecret = (app: App): App => ({
  ...app,
  webhookSealer: createSealer(createSecretRing(['the secret of another installation']), 'webhooks'),
})

/** The same server, where names resolve to some addresses. Linux has no route to 224.0.0.0/4 for TCP. */
const withAddresses = (app: App, ...addresses: string[]): App => ({
  ...app,
  webhookGuard: createWebhookGuard('224.0.0.0/4,127.0.0.0/8,::1/128', () => Promise.resolve(addresses)),
})
const NO_ROUTE = '224.0.0.1'

/** The same server, where no name can be resolved. */
const withoutNames = (app: App, isResolverDown: boolean): App => ({
  ...app,
  webhookGuard: createWebhookGuard('', () =>
    Promise.reject(Object.assign(new Error('no answer'), { code: 'EAI_AGAIN', isResolverDown })),
  ),
})

const OURS = 'The cause is this server, not the receiver.'

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

  test('faults of this server are told as such, retried, and count for nothing', async ({
    createEndpoint,
    createGroups,
    listDeliveries,
    loadEndpoint,
    run,
    startReceiver,
    secondsUntilAttempts,
    workspaceId,
    server: { app, db },
  }) => {
    const { url } = await startReceiver()
    const hook = await createEndpoint(url)
    await sql`update webhook_endpoints set url = 'https://receiver.example/' where id = ${hook.id}`.execute(
      db,
    )
    for (const [faulty, text] of [
      [withOtherSecret(app), 'The signing secret or the headers were encrypted with another WCRM_SECRET.'],
      [withAddresses(app, NO_ROUTE), 'This server has no network route to the address.'],
      [withAddresses(app, NO_ROUTE, '224.0.0.2'), 'This server has no network route to the address.'],
      [withoutNames(app, true), 'No DNS server responds to this server.'],
    ] as const) {
      await createGroups(11)
      assert.equal(await deliverDue(faulty), 11, text)
      const newest = (await listDeliveries(hook)).at(-1)!
      const { attempt_history: made } = await run('webhooks_get_delivery', { delivery_id: newest.id })
      assert.deepEqual([newest.status, made[0]!.error], ['failed', `${text} ${OURS}`])
      const [next] = await secondsUntilAttempts(hook)
      assert.ok(next! < 6, `retried in ${next} s`)
      const { status, consecutive_failures: failures } = await loadEndpoint(hook)
      assert.deepEqual([status, failures], ['active', 0], text)
      // On a busy machine a retry is due before the next of these is counted.
      await sql`
        update webhook_deliveries set status = 'skipped', next_attempt_at = null, lease_until = null
        where workspace_id = ${workspaceId}`.execute(db)
    }
    await createGroups()
    // As a restore of an older backup leaves them.
    await sql`delete from events where workspace_id = ${workspaceId}`.execute(db)
    await deliverDue(app)
    const lost = (await listDeliveries(hook)).at(-1)!
    const { attempt_history: made } = await run('webhooks_get_delivery', { delivery_id: lost.id })
    assert.deepEqual([lost.status, made[0]!.error], ['dead', `The event is no longer kept. ${OURS}`])
    assert.equal((await loadEndpoint(hook)).consecutive_failures, 0)
  })

  test('a fault that can be the receiver’s counts: its name servers, or one address of several', async ({
    createEndpoint,
    createGroups,
    listDeliveries,
    loadEndpoint,
    run,
    startReceiver,
    server: { app, db },
  }) => {
    const { url, close } = await startReceiver()
    await close()
    const hook = await createEndpoint(url)
    await sql`
      update webhook_endpoints set url = ${`http://receiver.example:${new URL(url).port}/`}
      where id = ${hook.id}`.execute(db)
    for (const [place, faulty, text] of [
      [1, withoutNames(app, false), 'The name could not be resolved.'],
      [2, withAddresses(app, NO_ROUTE, '127.0.0.1'), 'The connection was refused.'],
      [3, withAddresses(app, '127.0.0.1', NO_ROUTE), 'The connection was refused.'],
    ] as const) {
      await createGroups()
      assert.equal(await deliverDue(faulty), 1)
      const newest = (await listDeliveries(hook)).at(-1)!
      const { attempt_history: made } = await run('webhooks_get_delivery', { delivery_id: newest.id })
      assert.equal(made[0]!.error, text)
      assert.equal((await loadEndpoint(hook)).consecutive_failures, place)
    }
  })

  test('faults of this server neither prolong an outage nor end it', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    makeDue,
    loadEndpoint,
    run,
    server: { app, db },
  }) => {
    const target = await startReceiver(() => ({ status: 500 }))
    const hook = await createEndpoint(target.url)
    const faulty = withOtherSecret(app)
    /** Sets how long the endpoint has been failing, and for how long nothing was tried. */
    const letPass = async (failingDays: number, untriedHours = 0): Promise<void> => {
      await sql`
        update webhook_endpoints set failing_since = now() - ${failingDays}::float8 * interval '1 day',
          next_probe_at = case when status = 'paused' then now() - ${untriedHours}::float8 * interval '1 hour' end
        where id = ${hook.id}`.execute(db)
      await makeDue(hook)
    }
    const readOutageDays = async (): Promise<number> =>
      (
        await sql<{ days: number }>`
          select (extract(epoch from now() - failing_since) / 86400)::float8 as days
          from webhook_endpoints where id = ${hook.id}`.execute(db)
      ).rows[0]!.days
    const assertOutage = async (expected: number): Promise<void> => {
      const days = await readOutageDays()
      assert.ok(Math.abs(days - expected) < 0.005, `failing for ${days} days, not ${expected}`)
    }
    await createGroups(3)
    await deliver()
    await letPass(6)
    assert.equal(await deliverDue(faulty), 3)
    // An active endpoint is not tried at fixed times: how long it was not tried is not known.
    await assertOutage(0)
    await createGroups(7)
    await deliver()
    const paused = await loadEndpoint(hook)
    assert.deepEqual([paused.status, paused.consecutive_failures], ['paused', 10])
    // The time until the next probe is left out before it has passed: five minutes.
    const untilProbe = 300 / 86_400
    await letPass(4, 3)
    assert.equal(await deliverDue(faulty), 1)
    await assertOutage(4 - 3 / 24 - untilProbe)
    // Nothing ran in those hours, which are left out once.
    await letPass(4, 3)
    await sql`
      update webhook_deliveries set next_attempt_at = now() - interval '3 hours'
      where endpoint_id = ${hook.id} and status in ('pending', 'failed')`.execute(db)
    assert.equal(await deliverDue(faulty), 1)
    await assertOutage(4 - 3 / 24 - untilProbe)
    await letPass(7)
    assert.equal(await deliverDue(faulty), 1)
    await assertOutage(7 - untilProbe)
    const still = await loadEndpoint(hook)
    assert.deepEqual([still.status, still.consecutive_failures], ['paused', 10])
    assert.equal(await deliver(), 0, 'it is probed as before')
    assert.equal((await run('events_list', { types: ['webhook.endpoint_warning'] })).data.length, 0)
    await letPass(5.01)
    assert.equal(await deliver(), 1)
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
    for (const status of [301, 400, 401, 403, 404, 409, 500]) {
      const other = await createEndpoint((await startReceiver(() => ({ status }))).url)
      await createGroups()
      await deliver()
      const { status: state, consecutive_failures: failures } = await loadEndpoint(other)
      assert.deepEqual([state, failures], ['active', 1], String(status))
      await run('webhooks_delete_endpoint', { endpoint_id: other.id })
    }
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
