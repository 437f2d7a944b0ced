import assert from 'node:assert/strict'
import { it } from 'node:test'
import { WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import { exchange } from '../http/raw-socket.ts'
import {
  buildWebhookBody,
  createCustomerFixture,
  buildCustomerMessage,
  createWamid,
  postWebhook,
  signWebhookBody,
  verifyToken,
} from '../provider/webhook-fixture.ts'

// It leaves updates of no workspace.
everyDatabase(
  "The provider's webhook",
  (server) => {
    const verify = (query: string) => fetch(`${server().url}${WEBHOOK_PATH}?${query}`)

    it('verification request: returns the challenge only for the right verify token', async () => {
      const accepted = await verify(
        `hub.mode=subscribe&hub.verify_token=${verifyToken}&hub.challenge=1158201444`,
      )
      assert.deepEqual(
        [accepted.status, await accepted.text(), accepted.headers.get('content-type')],
        [200, '1158201444', 'text/plain; charset=utf-8'],
      )
      for (const query of [
        'hub.mode=subscribe&hub.verify_token=other&hub.challenge=1',
        `hub.mode=unsubscribe&hub.verify_token=${verifyToken}&hub.challenge=1`,
        `hub.verify_token=${verifyToken}`,
        '',
        `hub.mode=subscribe&hub.verify_token=${verifyToken.slice(0, -1)}&hub.challenge=1`,
      ])
        assert.equal((await verify(query)).status, 403, query)
      assert.equal((await fetch(`${server().url}${WEBHOOK_PATH}`, { method: 'DELETE' })).status, 405)
    })

    it('unsigned requests are refused before their body is read', async () => {
      for (const [header, status] of [
        ['', 401],
        ['X-Hub-Signature-256: sha1=00\r\n', 403],
        [`X-Hub-Signature-256: sha256=${'0'.repeat(63)}\r\n`, 403],
      ] as const) {
        const { text } = await exchange(
          server().url,
          `POST ${WEBHOOK_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n${header}\r\n`,
        )
        assert.match(text, new RegExp(`^HTTP/1.1 ${status} `), header)
      }
    })

    it('signature: checked over the raw bytes; 401 without one, 403 for a wrong one', async () => {
      const scene = await createCustomerFixture(server())
      const body = buildWebhookBody(
        scene.account,
        scene.value({ messages: [buildCustomerMessage('15550100042', { text: { body: 'Grüße ✨' } })] }),
      )
      assert.equal((await postWebhook(server(), body, {})).status, 401)
      const wrongSignatures = [
        '',
        'sha256=',
        signWebhookBody(body, 'other'),
        signWebhookBody(`${body} `),
        signWebhookBody(body).slice(7),
        signWebhookBody(body).replace('sha256', 'sha1'),
        `${signWebhookBody(body)}00`,
        `sha256=${'0'.repeat(64)}`,
      ]
      for (const signature of wrongSignatures)
        assert.equal(
          (await postWebhook(server(), body, { 'X-Hub-Signature-256': signature })).status,
          403,
          signature,
        )
      await server().app.jobs.job('provider-updates').runOnce()
      assert.deepEqual(await scene.messages(), [])
      // The provider escapes what is not ASCII and signs what it wrote.
      const escaped = body.replaceAll(
        /[^\x20-\x7e]/g,
        (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
      assert.equal(
        (
          await postWebhook(server(), escaped, {
            'X-Hub-Signature-256': signWebhookBody(escaped).toUpperCase().replace('SHA256', 'sha256'),
          })
        ).status,
        200,
      )
      await server().app.jobs.job('provider-updates').runOnce()
      assert.deepEqual(
        (await scene.messages()).map((m) => m.text),
        ['Grüße ✨'],
      )
    })

    it('body limit: 3 MB are accepted, one byte more is 413', async () => {
      const scene = await createCustomerFixture(server())
      const maxBytes = 3 * 1024 * 1024
      const body = buildWebhookBody(
        scene.account,
        scene.value({ messages: [buildCustomerMessage('15550100042', { text: { body: 'long' } })] }),
      )
      const largest = body + ' '.repeat(maxBytes - body.length)
      assert.equal((await postWebhook(server(), largest)).status, 200)
      assert.equal((await postWebhook(server(), `${largest} `)).status, 413)
      const stream = new ReadableStream({
        start: (controller) => {
          controller.enqueue(Buffer.from(`${largest} `))
          controller.close()
        },
      })
      const chunked = await fetch(`${server().url}${WEBHOOK_PATH}`, {
        method: 'POST',
        body: stream,
        duplex: 'half',
        headers: { 'X-Hub-Signature-256': signWebhookBody(`${largest} `) },
      } as RequestInit)
      assert.equal(chunked.status, 413)
      await server().app.jobs.job('provider-updates').runOnce()
      assert.deepEqual(
        (await scene.messages()).map((m) => m.text),
        ['long'],
      )
    })

    it('a body that cannot be parsed is answered with 200 and counted as not_understood', async () => {
      const scene = await createCustomerFixture(server())
      const countNotUnderstood = async () =>
        (await server().app.metrics.inbound.get()).values.find((v) => v.labels.outcome === 'not_understood')
          ?.value ?? 0
      const before = await countNotUnderstood()
      const unparsable = [
        '',
        'nonsense',
        'null',
        '[]',
        '{}',
        '{"entry":{}}',
        '{"entry":[1]}',
        '{"entry":[{"changes":[{"field":"messages","value":{}}]}]}',
        `{"entry":${'['.repeat(3000)}${']'.repeat(3000)}}`,
      ]
      for (const body of unparsable)
        assert.equal((await postWebhook(server(), body)).status, 200, body.slice(0, 50))
      assert.equal((await countNotUnderstood()) - before, unparsable.length)
      await scene.deliver(scene.value({ messages: [buildCustomerMessage('15550100042')] }))
      assert.equal((await scene.messages()).length, 1)
    })

    it('updates for an unknown number are stored as unmatched, with their payload', async () => {
      const scene = await createCustomerFixture(server())
      const value = {
        messaging_product: 'whatsapp',
        metadata: { phone_number_id: `99${scene.workspace.id}` },
        messages: [buildCustomerMessage('15550100042')],
        statuses: [{ id: createWamid(), status: 'sent', timestamp: '1698266945' }],
      }
      await scene.deliver({ field: 'messages', value })
      assert.deepEqual(
        (await scene.updates()).map((u) => [u.kind, u.state, u.payload !== null]),
        [
          ['message', 'unmatched', true],
          ['status', 'unmatched', true],
        ],
      )
      assert.deepEqual(await scene.contacts(), [])
    })
  },
  { dedicated: true },
)
