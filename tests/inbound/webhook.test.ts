import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { sql } from 'kysely'
import { WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import { exchange } from '../http/raw-socket.ts'
import {
  buildCustomerMessage,
  buildWebhookBody,
  createCustomerFixture,
  createWamid,
  postWebhook,
  signWebhookBody,
  verifyToken,
} from '../provider/webhook-fixture.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { runs } from '../level.ts'
import { applyUpdates } from '../../server/domains/inbound/apply-updates.ts'
import { claimUpdates, listUnmatchedMessages } from '../../storage/channels/provider-updates.ts'

/** Names of fields that the parser reads. */
const fieldNames = fc.constantFrom(
  'id',
  'from',
  'from_user_id',
  'type',
  'text',
  'body',
  'image',
  'timestamp',
  'context',
  'contacts',
  'wa_id',
  'user_id',
  'previous_user_id',
  'customer',
  'interactive',
  'profile',
  'name',
  'status',
  'errors',
  'code',
  'system',
  'reaction',
  'message_id',
  'emoji',
  'order',
  'location',
  'latitude',
  '__proto__',
  'message_template_id',
  'event',
  'reason',
  'ban_info',
)

/** Texts that updates hold, and texts that nothing should hold. */
const texts = fc.oneof(
  fc.constantFrom(
    'text',
    'image',
    'reaction',
    'system',
    'user_changed_number',
    'interactive',
    'call_permission_reply',
    'request_welcome',
    'US.1',
    'contacts',
    'failed',
    'read',
    'wamid.x',
    '15550100042',
    '\u0000',
    '\ud800',
    'x'.repeat(5000),
    'APPROVED',
    'stop',
    '',
  ),
  fc.string({ unit: 'binary' }),
)

const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    texts,
    fc.double(),
    fc.constantFrom(1e300, -1, 2 ** 53, null, true),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fieldNames, fc.string()), tie('json'), { maxKeys: 6 }),
  ),
}))

const randomRecord = fc.dictionary(fieldNames, json, { maxKeys: 8 })

const randomMessage = fc.record(
  {
    id: fc.oneof(texts, json),
    from: fc.oneof(texts, json),
    type: texts,
    timestamp: fc.oneof(texts, json),
    text: json,
    image: json,
    system: json,
    reaction: json,
    context: json,
    referral: json,
  },
  { requiredKeys: [] },
)

/** Bodies of webhooks for one account and number: well-formed on the outside, anything within. */
const webhookBodies = (account: string, number: string): fc.Arbitrary<unknown> => {
  const value = fc.record(
    {
      metadata: fc.constant({ phone_number_id: number }),
      contacts: fc.oneof(json, fc.array(randomRecord, { maxLength: 2 })),
      messages: fc.oneof(json, fc.array(randomMessage, { maxLength: 3 })),
      statuses: fc.oneof(json, fc.array(randomRecord, { maxLength: 2 })),
      user_preferences: fc.array(randomRecord, { maxLength: 2 }),
      errors: json,
      message_template_id: json,
      event: texts,
      display_phone_number: texts,
      ban_info: json,
    },
    { requiredKeys: ['metadata'] },
  )
  const field = fc.constantFrom(
    'messages',
    'user_preferences',
    'message_template_status_update',
    'template_category_update',
    'phone_number_quality_update',
    'account_update',
    'odd',
  )
  const change = fc.record({ field, value: fc.oneof(json, value, value, value) })
  return fc.oneof(
    json,
    fc.record({
      entry: fc.array(
        fc.record({
          id: fc.oneof(fc.constant(account), json),
          time: fc.oneof(fc.integer(), json),
          changes: fc.array(change, { maxLength: 4 }),
        }),
        { maxLength: 3 },
      ),
    }),
  )
}

// On a database of its own: it leaves updates of no workspace, and claims those of all.
everyDatabase(
  "The provider's webhook",
  (server, database) => {
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

    it('messages for a number without a channel are kept, named, and applied when it has one', async () => {
      const scene = await createCustomerFixture(server())
      const { app, db } = server()
      const number = `99${scene.workspace.id}`
      const value = {
        messaging_product: 'whatsapp',
        metadata: { phone_number_id: number },
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
      const findUnseen = async () =>
        (await listUnmatchedMessages(db)).find((unseen) => unseen.number === number)
      assert.deepEqual([(await findUnseen())?.channel_id, (await findUnseen())?.count], [null, 1])
      await createChannel(
        db,
        scene.workspace.id,
        { type: 'chatapp', account_id: scene.account, provider_phone_number_id: number },
        app.now(),
      )
      await app.jobs.job('provider-updates').runOnce()
      assert.deepEqual(
        (await scene.messages()).map(({ text }) => text),
        ['hello'],
      )
      assert.equal(await findUnseen(), undefined)
    })

    it('a signed body never fails the webhook or the job, and later updates are still applied', async () => {
      const scene = await createCustomerFixture(server())
      await fc.assert(
        fc.asyncProperty(webhookBodies(scene.account, scene.number), async (body) => {
          const { status } = await postWebhook(server(), JSON.stringify(body) ?? '')
          assert.ok(status === 200 || (status >= 400 && status < 500), String(status))
        }),
        { numRuns: runs(50, 500) },
      )
      await server().app.jobs.job('provider-updates').runOnce()
      const { rows } = await sql<{ kind: string; payload: unknown }>`
        select kind, payload from provider_updates
        where state = 'failed' or (state = 'waiting' and kind = 'message')
        limit 5`.execute(server().db)
      assert.deepEqual([...rows], [])
      await scene.deliver(
        scene.value({ messages: [buildCustomerMessage('15550100077', { text: { body: 'still here' } })] }),
      )
      assert.equal((await scene.messages()).at(-1)!.text, 'still here')
    })

    // The embedded database has one session: nothing is applied beside it.
    if (database === 'embedded') return
    it('template statuses are applied by their time, also where two servers apply them at once', async () => {
      const scene = await createCustomerFixture(server())
      const { db, app } = server()
      await sql`
        insert into templates (workspace_id, account_id, provider_id, name, language, category, status,
          components, created_at, updated_at)
        values (${scene.workspace.id}, ${scene.account}, '71', 'abandoned_cart', 'en', 'MARKETING', 'PENDING',
          '[]', ${app.now()}, ${app.now()})`.execute(db)
      await app.jobs.job('provider-updates').stop()
      const begin = async (time: number, event: string) => {
        const value = {
          event,
          message_template_id: 71,
          message_template_name: 'abandoned_cart',
          reason: 'NONE',
        }
        const changes = [
          { field: 'message_template_status_update', value: { ...value, message_template_language: 'en' } },
        ]
        const entry = [{ id: scene.account, time, changes }]
        await postWebhook(server(), JSON.stringify({ object: 'whatsapp_business_account', entry }))
        const tx = await db.startTransaction().execute()
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
        return {
          tx,
          pid: rows[0]!.pid,
          applied: claimUpdates(tx, 10).then((some) => applyUpdates(tx, some, app)),
        }
      }
      const isWaiting = async (pid: number): Promise<boolean> =>
        (await sql<{ waits: boolean }>`select cardinality(pg_blocking_pids(${pid})) > 0 as waits`.execute(db))
          .rows[0]!.waits
      const later = await begin(200, 'PAUSED')
      await later.applied
      const earlier = await begin(100, 'APPROVED')
      while (!(await isWaiting(earlier.pid))) await setImmediate()
      await later.tx.commit().execute()
      await earlier.applied
      await earlier.tx.commit().execute()
      const { rows } = await sql`select status from templates where provider_id = '71'`.execute(db)
      assert.deepEqual(rows, [{ status: 'PAUSED' }])
    })
  },
  { dedicated: true },
)
