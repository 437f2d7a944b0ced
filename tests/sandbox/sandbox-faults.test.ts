import assert from 'node:assert/strict'
import { it } from 'node:test'
import { assertError, CUSTOMER, postMessage, writeAsCustomer } from './sandbox-calls.ts'
import { buildTextMessage, everySandbox } from './sandbox-fixture.ts'

everySandbox('Sandbox: rate limits and faults', (withSandbox) => {
  it('rate limits: pair and throughput limits apply when they are configured', async () => {
    await withSandbox(async (fixture) => {
      await writeAsCustomer(fixture)
      await fixture.control('POST', 'settings', { pair_burst: 2, pair_seconds: 3600 })
      assert.deepEqual(
        [
          (await postMessage(fixture, buildTextMessage(CUSTOMER, '1'))).status,
          (await postMessage(fixture, buildTextMessage(CUSTOMER, '2'))).status,
        ],
        [200, 200],
      )
      const third = await postMessage(fixture, buildTextMessage(CUSTOMER, '3'))
      assertError(third, 429, 131056)
      assert.equal(third.headers.get('retry-after'), '6')
      assert.ok(JSON.parse(third.headers.get('x-business-use-case-usage')!).sandbox[0].type)
      await fixture.control('POST', 'settings', { pair_burst: null, throughput: 1 })
      const many = await Promise.all(
        Array.from({ length: 8 }, (_, n) => postMessage(fixture, buildTextMessage(CUSTOMER, `m${n}`))),
      )
      assert.ok(many.some((r) => r.body.error?.code === 130429))
      assert.ok(many.some((r) => r.status === 200))
    })
  })

  it('faults: limited by recipient and count; a dropped response follows the work', async () => {
    await withSandbox(async (fixture) => {
      await writeAsCustomer(fixture)
      await writeAsCustomer(fixture, { from: '+16315550000' })
      await fixture.control('POST', 'faults', { on: 'messages', to: `+${CUSTOMER}`, code: 131026, times: 1 })
      assert.equal((await postMessage(fixture, buildTextMessage('16315550000', 'Hi'))).status, 200)
      assertError(await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi')), 400, 131026)
      assert.equal((await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi'))).status, 200)
      assert.deepEqual((await fixture.control('GET', 'faults')).body, { data: [] })

      await fixture.control('POST', 'faults', { on: 'messages', drop_answer: true, times: 1 })
      await assert.rejects(
        postMessage(fixture, buildTextMessage(CUSTOMER, 'lost', { biz_opaque_callback_data: 'lost' })),
        TypeError,
      )
      assert.equal(
        (await fixture.call('GET', `v23.0/${fixture.number}/messages?biz_opaque_callback_data=lost`)).body
          .data.length,
        1,
      )

      await fixture.control('POST', 'faults', { on: 'messages', latency_ms: 300, times: 1 })
      const startedAt = performance.now()
      await postMessage(fixture, buildTextMessage(CUSTOMER, 'late'))
      assert.ok(performance.now() - startedAt >= 290)

      await fixture.control('POST', 'faults', { on: 'messages', code: 131026, async: true, times: 1 })
      const { body } = await postMessage(fixture, buildTextMessage(CUSTOMER, 'fails'))
      fixture.changes.length = 0
      await fixture.sandbox.drain()
      const ownStatuses = fixture.changes
        .flatMap(({ value }) => value.statuses ?? [])
        .filter((s: { id: string }) => s.id === body.messages[0].id)
      assert.deepEqual(
        ownStatuses.map((s) => [s.status, s.errors[0].code]),
        [['failed', 131026]],
      )
      for (const on of ['templates', 'media', 'links'])
        await fixture.control('POST', 'faults', { on, code: 2, times: 1 })
      assert.equal((await fixture.call('GET', `v23.0/${fixture.account}/message_templates`)).status, 503)
      assert.equal((await fixture.call('GET', 'v23.0/12345')).status, 503)
      assert.equal((await fixture.call('GET', `v23.0/${fixture.number}/message_qrdls`)).status, 500)
      await fixture.control('POST', 'faults', { on: 'messages', code: 1 })
      await fixture.control('DELETE', 'faults')
      assert.equal((await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi'))).status, 200)
    })
  })
})
