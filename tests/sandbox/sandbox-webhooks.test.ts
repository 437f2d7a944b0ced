import assert from 'node:assert/strict'
import { it } from 'node:test'
import { assertError, CUSTOMER, listStatuses, postMessage, writeAsCustomer } from './sandbox-calls.ts'
import { buildTextMessage, everySandbox } from './sandbox-fixture.ts'
import { waitUntil } from '../wait-until.ts'

everySandbox('Sandbox: webhooks', (withSandbox) => {
  it('retried until the receiver answers 200', async () => {
    await withSandbox(async (fixture) => {
      fixture.hookStatuses.push(500, 201)
      await writeAsCustomer(fixture)
      assert.equal(await fixture.sandbox.pump(), 0)
      assert.deepEqual(fixture.changes, [])
      const stop = fixture.sandbox.start()
      await waitUntil('it is sent again', () => fixture.changes.length > 0)
      await stop()
      assert.equal(fixture.webhooks.length, 3)
      assert.equal(
        new Set(
          fixture.webhooks.map(({ body }) =>
            JSON.stringify((JSON.parse(body) as { entry: { changes: unknown }[] }).entry[0]!.changes),
          ),
        ).size,
        1,
      )
      assert.equal(await fixture.sandbox.pump(), 0)
    })
  })

  it('batching, duplicates and shuffled order', async () => {
    await withSandbox(async (fixture) => {
      for (let n = 0; n < 30; n++) await writeAsCustomer(fixture, { text: `m${n}` })
      await fixture.sandbox.drain()
      assert.deepEqual([fixture.webhooks.length, fixture.changes.length], [1, 30])
      assert.deepEqual(
        fixture.changes.map(({ value }) => value.messages[0].text.body),
        Array.from({ length: 30 }, (_, n) => `m${n}`),
      )

      assert.deepEqual(
        (await fixture.control('POST', 'webhooks', { duplicates: 2, shuffle: true })).body.duplicates,
        2,
      )
      fixture.changes.length = 0
      for (let n = 0; n < 10; n++) await postMessage(fixture, buildTextMessage(CUSTOMER, `r${n}`))
      await fixture.sandbox.drain()
      assert.equal(fixture.changes.length, 60)
      assert.equal(listStatuses(fixture).filter((s) => s === 'delivered').length, 30)
      const firstStatus = new Map<string, string>()
      for (const { value } of fixture.changes)
        if (!firstStatus.has(value.statuses[0].id))
          firstStatus.set(value.statuses[0].id, value.statuses[0].status)
      assert.ok(
        [...firstStatus.values()].includes('delivered'),
        'some messages are reported delivered before sent',
      )

      await fixture.control('POST', 'webhooks', { duplicates: 0, shuffle: false, batch: 4 })
      fixture.webhooks.length = 0
      for (let n = 0; n < 10; n++) await writeAsCustomer(fixture)
      await fixture.sandbox.drain()
      assert.deepEqual(
        fixture.webhooks.map(
          ({ body }) => (JSON.parse(body) as { entry: { changes: unknown[] }[] }).entry[0]!.changes.length,
        ),
        [4, 4, 2],
      )
    })
  })

  it('state survives a restart, and concurrent servers deliver each status once', async () => {
    await withSandbox(async (fixture) => {
      await writeAsCustomer(fixture)
      const ids = new Set<string>()
      for (let n = 0; n < 20; n++)
        ids.add(
          (await postMessage(fixture, buildTextMessage(CUSTOMER, `n${n}`))).body.messages[0].id as string,
        )
      const [first, second] = [fixture.createInstance(), fixture.createInstance()]
      await Promise.all([first.drain(), second.drain()])
      const sent = fixture.changes
        .flatMap(({ value }) => value.statuses ?? [])
        .filter((s: { status: string }) => s.status === 'sent')
        .map((s: { id: string }) => s.id)
      assert.equal(sent.length, ids.size)
      assert.deepEqual(new Set(sent), ids)
      assert.equal(
        (await fixture.control('GET', `messages?account_id=${fixture.account}`)).body.data.length,
        20,
      )
    })
  })

  it('subscriptions: without one nothing is sent, and callback URLs are verified', async () => {
    await withSandbox(async (fixture) => {
      const subscribe = (body: unknown) =>
        fixture.call('POST', `v23.0/${fixture.account}/subscribed_apps`, body)
      await writeAsCustomer(fixture)
      await fixture.sandbox.drain()
      const delivered = fixture.webhooks.length
      await fixture.call('DELETE', `v23.0/${fixture.account}/subscribed_apps`)
      await writeAsCustomer(fixture)
      await fixture.sandbox.drain()
      assert.equal(fixture.webhooks.length, delivered)
      assert.deepEqual((await fixture.call('GET', `v23.0/${fixture.account}/subscribed_apps`)).body, {
        data: [],
      })
      assert.deepEqual((await subscribe({})).body, { success: true })
      await fixture.sandbox.drain()
      assert.equal(fixture.changes.length, 2)
      assertError(
        await subscribe({ override_callback_uri: 'http://127.0.0.1:9/x', verify_token: 'right' }),
        422,
        100,
      )
      assertError(await subscribe({ override_callback_uri: 'nowhere', verify_token: 'right' }), 400, 100)
    })
  })
})
