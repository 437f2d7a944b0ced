import assert from 'node:assert/strict'
import { everyDatabase } from '../doors.ts'
import { assertNear, createDeliveryTest, startDeliveries, verifyReceived } from './delivery-fixture.ts'

everyDatabase('Webhook deliveries', (server, database) => {
  const test = createDeliveryTest(server)

  test('envelope: body, signature, and standard and custom headers', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    workspaceId,
  }) => {
    const { url, received } = await startReceiver()
    const hook = await createEndpoint(url, { custom_headers: { 'X-Team': 'blue team' } })
    await createGroups()
    assert.equal(await deliver(), 1)
    const [one] = await listDeliveries(hook)
    const envelope = verifyReceived(hook, received[0]!)
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

  test('a test event tells what the receiver answered, also when the call is repeated', async ({
    server: { app },
    startReceiver,
    createEndpoint,
    call,
  }) => {
    const receiver = await startReceiver(() => ({ body: 'thank you' }))
    const hook = await createEndpoint(receiver.url)
    const send = (key: string) =>
      call(
        'webhooks_send_test',
        { endpoint_id: hook.id, event_type_id: 'group.created/1' },
        { idempotencyKey: key },
      )
    const job = startDeliveries(app)
    try {
      const { body } = await send('test-outcome-1')
      assert.equal(body.event_type_id, 'group.created/1')
      const { duration_ms: duration, ...outcome } = body.outcome
      assert.deepEqual(outcome, { status: 'delivered', response_status: 200, response_excerpt: 'thank you' })
      assert.ok(duration >= 0)
      assert.equal(receiver.received[0]!.headers['wc-delivery-id'], body.delivery_id)
      assert.deepEqual((await send('test-outcome-1')).body, body)
      assert.equal(receiver.received.length, 1)
      receiver.answer = () => 'drop'
      const failed = (await send('test-outcome-2')).body.outcome
      assert.deepEqual(
        [failed.status, failed.error],
        ['failed', 'The connection was closed before a response.'],
      )
    } finally {
      await job.stop()
    }
    const unknown = await call(
      'webhooks_send_test',
      { endpoint_id: hook.id, event_type_id: 'group.created/1', wait_seconds: 0 },
      { idempotencyKey: 'test-outcome-3' },
    )
    assert.deepEqual(unknown.body.outcome, { status: 'pending' })
  })

  test('payload_format data: the body is the data alone', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
  }) => {
    const { url, received } = await startReceiver()
    const hook = await createEndpoint(url, { payload_format: 'data' })
    await createGroups()
    await deliver()
    assert.deepEqual(Object.keys(verifyReceived(hook, received[0]!)), ['actor', 'group'])
  })

  test('rotation: retries and replays are signed with both secrets; id and body stay the same', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    makeDue,
    listDeliveries,
    run,
    call,
  }) => {
    const target = await startReceiver(() => ({ status: 503 }))
    const hook = await createEndpoint(target.url)
    await createGroups()
    await deliver()
    const {
      body: { signing_secret: secret },
    } = await call(
      'webhooks_rotate_secret',
      { endpoint_id: hook.id },
      { confirm: 'rotate', idempotencyKey: `rotate-${hook.id}` },
    )
    await makeDue(hook)
    target.answer = () => ({})
    await deliver()
    await run('webhooks_replay_delivery', { delivery_id: (await listDeliveries(hook))[0]!.id })
    await deliver()
    const [first, ...later] = target.received
    assert.equal(later.length, 2)
    verifyReceived(hook, first!)
    assert.throws(() => verifyReceived({ secret }, first!))
    for (const one of later) {
      verifyReceived(hook, one)
      verifyReceived({ secret }, one)
      assert.deepEqual([one.headers['webhook-id'], one.body], [first!.headers['webhook-id'], first!.body])
    }
    assert.deepEqual(
      later.map(({ headers }) => headers['wc-attempt']),
      ['2', '3'],
    )
    const [one] = await listDeliveries(hook)
    const { attempt_history: made } = await run('webhooks_get_delivery', { delivery_id: one!.id })
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

  test('retries: ten attempts on the schedule, then dead', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    makeDue,
    listDeliveries,
    secondsUntilAttempts,
  }) => {
    const target = await startReceiver(() => ({ status: 500, body: 'no' }))
    const hook = await createEndpoint(target.url)
    await createGroups()
    for (const delay of [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]) {
      assert.equal(await deliver(), 1)
      const [wait] = await secondsUntilAttempts(hook)
      assertNear(wait!, delay)
      assert.equal((await listDeliveries(hook))[0]!.status, 'failed')
      assert.equal(await deliver(), 0, 'not before it is due')
      await makeDue(hook)
    }
    assert.equal(await deliver(), 1)
    const [one] = await listDeliveries(hook)
    assert.deepEqual(
      [one!.status, one!.attempts, one!.next_attempt_at, one!.last_response_status],
      ['dead', 10, null, 500],
    )
    await makeDue(hook)
    assert.equal(await deliver(), 0)
    assert.equal(target.received.length, 10)
  })

  test('Retry-After: honoured up to a day', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    secondsUntilAttempts,
  }) => {
    const target = await startReceiver()
    for (const [header, expected] of [
      ['3600', 3600],
      ['999999999999', 86_400],
      [new Date(Date.now() + 7200_000).toUTCString(), 7200],
      ['1', 5],
      ['soon', 5],
      ['-3', 5],
    ] as const) {
      const hook = await createEndpoint(target.url)
      target.answer = () => ({ status: 429, headers: { 'Retry-After': header } })
      await createGroups()
      await deliver()
      const [wait] = await secondsUntilAttempts(hook)
      assertNear(wait!, expected)
    }
  })

  test('only 2xx is a success, and redirects are not followed', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
  }) => {
    const elsewhere = await startReceiver()
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
      const target = await startReceiver(() => ({ status, headers: { Location: elsewhere.url } }))
      const hook = await createEndpoint(target.url)
      await createGroups()
      await deliver()
      assert.deepEqual(
        (await listDeliveries(hook)).map((d) => [d.status, d.last_response_status]),
        [[expected, status]],
      )
    }
    assert.equal(elsewhere.received.length, 0)
  })

  test('response_excerpt: at most one kilobyte of valid text, with secrets masked', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    run,
  }) => {
    const target = await startReceiver(({ headers }) => ({
      status: 500,
      body: Buffer.concat([
        Buffer.from(`you sent ${headers['x-token']}\u0000\u0007`),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('😀'.repeat(20_000)),
      ]),
    }))
    const hook = await createEndpoint(target.url, { custom_headers: { 'X-Token': 'very secret token' } })
    await createGroups()
    await deliver()
    const {
      attempt_history: [made],
    } = await run('webhooks_get_delivery', { delivery_id: (await listDeliveries(hook))[0]!.id })
    assert.ok(
      Buffer.byteLength(made.response_excerpt) <= 1024 && Buffer.byteLength(made.response_excerpt) > 1000,
    )
    assert.match(made.response_excerpt, /^you sent \*{4}  ��😀+…$/u)
  })

  test('response_excerpt: secrets are masked as JSON spells them too, those that others begin with whole', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    run,
  }) => {
    const target = await startReceiver(({ headers }) => ({
      status: 500,
      body: Buffer.from(JSON.stringify([headers['x-short'], headers['x-long']])),
    }))
    const secrets = { 'X-Short': 'key="quoted"', 'X-Long': 'key="quoted" and more' }
    const hook = await createEndpoint(target.url, { custom_headers: secrets })
    await createGroups()
    await deliver()
    const {
      attempt_history: [made],
    } = await run('webhooks_get_delivery', { delivery_id: (await listDeliveries(hook))[0]!.id })
    assert.equal(made.response_excerpt, '["****","****"]')
  })

  test('a large body is not read to its end; connection errors are described', async ({
    startReceiver,
    createEndpoint,
    createGroups,
    deliver,
    listDeliveries,
    run,
  }) => {
    const big = await startReceiver(() => ({ body: Buffer.alloc(20_000_000, 'x') }))
    const dropped = await startReceiver(() => 'drop')
    const gone = await startReceiver()
    await gone.close()
    const hooks = [
      await createEndpoint(big.url),
      await createEndpoint(dropped.url),
      await createEndpoint(gone.url),
    ]
    await createGroups()
    await deliver()
    const made = await Promise.all(
      hooks.map(async (hook) => {
        const [one] = await listDeliveries(hook)
        const {
          attempt_history: [attempt],
        } = await run('webhooks_get_delivery', { delivery_id: one!.id })
        return [one!.status, attempt.error]
      }),
    )
    assert.deepEqual(made, [
      ['delivered', undefined],
      ['failed', 'The connection was closed before a response.'],
      ['failed', 'The connection was refused.'],
    ])
  })

  if (database === 'embedded') {
    test('timeout: an attempt fails after 15 seconds without an answer', async ({
      startReceiver,
      createEndpoint,
      createGroups,
      deliver,
      listDeliveries,
      run,
    }) => {
      const target = await startReceiver(() => 'hang')
      const hook = await createEndpoint(target.url)
      await createGroups()
      await deliver()
      const [one] = await listDeliveries(hook)
      const {
        attempt_history: [made],
      } = await run('webhooks_get_delivery', { delivery_id: one!.id })
      assert.deepEqual([one!.status, made.error], ['failed', 'No response within 15 seconds.'])
      assert.ok(made.duration_ms >= 14_900 && made.duration_ms < 17_000, String(made.duration_ms))
    })
  }
})
