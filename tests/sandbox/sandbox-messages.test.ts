import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { it } from 'node:test'
import { assertError, CUSTOMER, HOUR_MS, PNG, postMessage, writeAsCustomer } from './sandbox-calls.ts'
import { APP_SECRET, buildTextMessage, everySandbox } from './sandbox-fixture.ts'

/** Fields of a text message that the provider rejects, with the error code and details. */
const invalidMessages: [Record<string, unknown>, number, RegExp][] = [
  [{ messaging_product: undefined }, 100, /messaging_product is required/],
  [{ to: undefined }, 100, /to is required/],
  [{ to: 'me' }, 131009, /not a valid phone number/],
  [{ to: '+1 650-555-1111' }, 131021, /same/],
  [{ type: 'poem' }, 131009, /must be one of/],
  [{ text: undefined }, 100, /text is required/],
  [{ text: { body: 'x'.repeat(4097) } }, 131009, /at most 4096/],
  [{ type: 'image', image: {} }, 131008, /one of id and link/],
  [{ type: 'image', image: { id: '1' } }, 100, /not a valid whatsapp business account media attachment ID/],
  [{ type: 'audio', audio: { link: 'https://x.example/a', caption: 'x' } }, 131009, /Unexpected key/],
  [{ type: 'document', document: { link: 'ftp://x.example' } }, 131009, /not a valid URI/],
  [
    {
      type: 'interactive',
      interactive: { type: 'button', body: { text: 'x' }, action: { buttons: [] } },
    },
    131009,
    /1 to 3/,
  ],
  [{ type: 'location', location: { latitude: 91, longitude: 0 } }, 131009, /between -90 and 90/],
  [{ type: 'reaction', reaction: { message_id: 'wamid.none', emoji: '👍' } }, 131009, /Message ID/],
  [{ biz_opaque_callback_data: 'x'.repeat(513) }, 131009, /512/],
]

const replyButtons = [1, 2, 3].map((n) => ({ type: 'reply', reply: { id: `b${n}`, title: `B${n}` } }))
const validMessages = [
  {
    type: 'interactive',
    interactive: {
      type: 'button',
      header: { type: 'text', text: 'H' },
      body: { text: 'x' },
      footer: { text: 'f' },
      action: { buttons: replyButtons },
    },
  },
  {
    type: 'interactive',
    interactive: {
      type: 'list',
      body: { text: 'x' },
      action: { button: 'Open', sections: [{ rows: [{ id: '1', title: 'One' }] }] },
    },
  },
  { type: 'contacts', contacts: [{ name: { formatted_name: 'Ada', first_name: 'Ada' } }] },
  { type: 'location', location: { latitude: '37.4', longitude: -122 } },
]

const buildMessage = (fields: Record<string, unknown>) => ({
  ...buildTextMessage(CUSTOMER, 'Hi'),
  ...fields,
})

everySandbox('Sandbox: messages', (withSandbox) => {
  it('inbound messages: delivered in signed webhooks', async () => {
    await withSandbox(async (fixture) => {
      const id = await writeAsCustomer(fixture, { text: 'Grüße 👋' })
      await fixture.sandbox.drain()
      const [webhook] = fixture.webhooks
      assert.equal(
        webhook!.signature,
        `sha256=${createHmac('sha256', APP_SECRET).update(webhook!.body).digest('hex')}`,
      )
      assert.match(webhook!.body, /^[\x20-\x7e]+$/)
      assert.match(webhook!.body, /Gr\\u00fc\\u00dfe \\ud83d\\udc4b/)
      const [inbound] = fixture.changes
      assert.deepEqual(
        [inbound!.account, inbound!.field, inbound!.value.metadata],
        [
          fixture.account,
          'messages',
          { display_phone_number: '16505551111', phone_number_id: fixture.number },
        ],
      )
      const [contact] = inbound!.value.contacts
      assert.deepEqual([contact.profile.name, contact.wa_id], ['Zoë', CUSTOMER])
      const { timestamp, ...message } = inbound!.value.messages[0]
      assert.deepEqual(message, {
        from: CUSTOMER,
        from_user_id: contact.user_id,
        id,
        type: 'text',
        text: { body: 'Grüße 👋' },
      })
      assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 30)
    })
  })

  it('outbound messages: statuses, lookup by reference, and read receipts', async () => {
    await withSandbox(async (fixture) => {
      const id = await writeAsCustomer(fixture)
      await fixture.sandbox.drain()
      const { status, body } = await postMessage(
        fixture,
        buildTextMessage(`+${CUSTOMER}`, 'Hi', {
          biz_opaque_callback_data: 'msg_1',
          context: { message_id: id },
        }),
      )
      assert.equal(status, 200)
      assert.deepEqual(body.contacts, [{ input: `+${CUSTOMER}`, wa_id: CUSTOMER }])
      await fixture.sandbox.drain()
      const [sent, delivered] = fixture.changes.slice(1).map(({ value }) => value.statuses[0])
      assert.deepEqual(
        [sent.id, sent.status, sent.recipient_id, sent.biz_opaque_callback_data],
        [body.messages[0].id, 'sent', CUSTOMER, 'msg_1'],
      )
      assert.deepEqual(sent.pricing, {
        billable: false,
        pricing_model: 'PMP',
        type: 'free_customer_service',
        category: 'service',
      })
      assert.ok(sent.conversation.expiration_timestamp)
      assert.deepEqual(
        [delivered.status, delivered.conversation.expiration_timestamp],
        ['delivered', undefined],
      )

      assert.deepEqual(
        (await fixture.call('GET', `v23.0/${fixture.number}/messages?biz_opaque_callback_data=msg_1`)).body,
        { data: [{ id: body.messages[0].id }] },
      )
      assert.deepEqual(
        (await fixture.call('GET', `v23.0/${fixture.number}/messages?biz_opaque_callback_data=msg_2`)).body,
        { data: [] },
      )
      const stored = (await fixture.control('GET', `messages?number_id=${fixture.number}&to=%2B${CUSTOMER}`))
        .body.data
      assert.deepEqual(
        [stored.length, stored[0].text.body, stored[0].status, stored[0].number_id],
        [1, 'Hi', 'delivered', fixture.number],
      )
      assert.deepEqual(
        (
          await postMessage(fixture, {
            messaging_product: 'whatsapp',
            status: 'read',
            message_id: id,
            typing_indicator: { type: 'text' },
          })
        ).body,
        { success: true },
      )
      assertError(
        await postMessage(fixture, {
          messaging_product: 'whatsapp',
          status: 'read',
          message_id: 'wamid.none',
        }),
        400,
        131009,
      )
      await fixture.control('POST', 'status', { message_id: body.messages[0].id, status: 'read' })
      await fixture.control('POST', 'status', {
        message_id: body.messages[0].id,
        status: 'failed',
        code: 131026,
      })
      await fixture.sandbox.drain()
      const [read, failed] = fixture.changes.slice(3).map(({ value }) => value.statuses[0])
      assert.deepEqual(
        [read.status, read.pricing, failed.errors[0].code, failed.errors[0].title],
        ['read', undefined, 131026, 'Message undeliverable'],
      )
    })
  })

  it('inbound messages: types, ad referrals, replies, customers without a phone number', async () => {
    await withSandbox(async (fixture) => {
      const location = { type: 'location', location: { latitude: 1, longitude: 2 } }
      await writeAsCustomer(fixture, { message: location, text: undefined, ad: true, reply_to: 'wamid.x' })
      await writeAsCustomer(fixture, {
        message: {
          type: 'image',
          image: { caption: 'Look', data: PNG.toString('base64'), mime_type: 'image/png' },
        },
        text: undefined,
      })
      await writeAsCustomer(fixture, { message: { type: 'unsupported' }, text: undefined })
      await writeAsCustomer(fixture, { from: undefined, user_id: 'US.13491208655302741918', name: 'Ada' })
      await fixture.sandbox.drain()
      const [ad, image, unsupported, hidden] = fixture.changes.map(({ value }) => ({
        ...value.messages[0],
        contact: value.contacts[0],
      }))
      assert.deepEqual(
        [ad.location, ad.context, ad.referral.source_type],
        [location.location, { from: '16505551111', id: 'wamid.x' }, 'ad'],
      )
      assert.deepEqual(
        [image.image.caption, image.image.sha256, image.image.data],
        ['Look', createHash('sha256').update(PNG).digest('base64'), undefined],
      )
      assert.equal(unsupported.errors[0].code, 131051)
      assert.deepEqual(
        [hidden.from, hidden.from_user_id, hidden.contact],
        [
          undefined,
          'US.13491208655302741918',
          { profile: { name: 'Ada' }, user_id: 'US.13491208655302741918' },
        ],
      )

      const { body: media } = await fixture.call('GET', `v23.0/${image.image.id}`)
      assert.deepEqual(
        [media.mime_type, media.file_size, media.sha256],
        ['image/png', PNG.length, createHash('sha256').update(PNG).digest('hex')],
      )
      const download = async (token?: string) =>
        await fetch(media.url, { headers: token ? { Authorization: `Bearer ${token}` } : {} })
      assert.deepEqual(Buffer.from(await (await download('EAAsandbox-token')).arrayBuffer()), PNG)
      assert.equal((await download()).status, 401)
      fixture.clock.offsetMs = 301_000
      assert.equal((await download('EAAsandbox-token')).status, 404)

      const reply = await postMessage(fixture, {
        messaging_product: 'whatsapp',
        recipient: 'US.13491208655302741918',
        type: 'text',
        text: { body: 'Hi' },
      })
      assert.deepEqual(reply.body.contacts, [
        { input: 'US.13491208655302741918', user_id: 'US.13491208655302741918' },
      ])
      await fixture.sandbox.drain()
      assert.deepEqual(
        Object.keys(fixture.changes.at(-1)!.value.statuses[0]).filter((key) => key.startsWith('recipient')),
        ['recipient_user_id'],
      )
      assertError(
        await postMessage(fixture, {
          messaging_product: 'whatsapp',
          recipient: 'US.999',
          type: 'text',
          text: { body: 'Hi' },
        }),
        400,
        131026,
      )
    })
  })

  it('service window: closes after 24 hours, or after 72 hours when an ad opened it', async () => {
    await withSandbox(async (fixture) => {
      assertError(
        await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi')),
        429,
        131047,
        /more than 24 hours/,
      )
      await writeAsCustomer(fixture)
      const statusAfter = async (hours: number) => {
        fixture.clock.offsetMs = hours * HOUR_MS
        return (await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi'))).status
      }
      assert.deepEqual([await statusAfter(23.9), await statusAfter(24.1)], [200, 429])
      await writeAsCustomer(fixture, { ad: true })
      assert.deepEqual([await statusAfter(24.1 + 71.9), await statusAfter(24.1 + 72.1)], [200, 429])
      await writeAsCustomer(fixture, { ad: true })
      await fixture.control('POST', 'settings', { free_entry: false })
      assert.deepEqual([await statusAfter(96.2 + 23.9), await statusAfter(96.2 + 24.1)], [200, 429])
      await fixture.sandbox.drain()
      fixture.changes.length = 0

      await fixture.control('POST', 'faults', { on: 'messages', async: true })
      assert.equal((await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi'))).status, 200)
      await fixture.sandbox.drain()
      assert.deepEqual(
        fixture.changes.map(({ value }) => value.statuses[0].errors[0].code),
        [131047],
      )
      assert.equal(
        (await fixture.control('POST', 'clock', { offset_ms: 5 * HOUR_MS })).body.offset_ms,
        5 * HOUR_MS,
      )
      assert.equal(fixture.clock.offsetMs, 5 * HOUR_MS)
    })
  })

  it('outbound messages: invalid requests are rejected with the code and details', async () => {
    await withSandbox(async (fixture) => {
      await writeAsCustomer(fixture)
      for (const [fields, code, details] of invalidMessages)
        assertError(await postMessage(fixture, buildMessage(fields)), 400, code, details)
      for (const fields of validMessages)
        assert.equal((await postMessage(fixture, buildMessage(fields))).status, 200, JSON.stringify(fields))
      assertError(await fixture.call('POST', 'v23.0/1/messages', buildTextMessage(CUSTOMER, 'Hi')), 400, 100)
      assertError(
        await fixture.call('POST', `v23.0/${fixture.number}/messages`, buildTextMessage(CUSTOMER, 'Hi'), {
          Authorization: 'Bearer wrong',
        }),
        401,
        190,
      )
      assertError(await fixture.call('GET', 'v23.0/a/b/c'), 400, 2500)
      await fixture.control('POST', 'number', {
        id: fixture.number,
        status: 'DISCONNECTED',
        quality_rating: 'RED',
      })
      assertError(await postMessage(fixture, buildTextMessage(CUSTOMER, 'Hi')), 400, 133010)
      await fixture.sandbox.drain()
      assert.deepEqual(
        fixture.changes
          .filter(({ field }) => field === 'phone_number_quality_update')
          .map(({ value }) => value.event),
        ['FLAGGED'],
      )
    })
  })
})
