import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { buildCustomerMessage, createCustomerFixture, postWebhook } from '../provider/webhook-fixture.ts'

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

// It leaves updates of no workspace.
everyDatabase(
  "The provider's webhook: random bodies",
  (server) => {
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
  },
  { dedicated: true },
)
