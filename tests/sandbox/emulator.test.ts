import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { it } from 'node:test'
import fc from 'fast-check'
import {
  assertError,
  buildTemplateMessage,
  buildTemplates,
  CUSTOMER,
  HOUR_MS,
  listStatuses,
  PNG,
  postMessage,
  textParameters,
  writeAsCustomer,
} from './sandbox-calls.ts'
import { APP_SECRET, buildTextMessage, everySandbox, type SandboxFixture } from './sandbox-fixture.ts'
import { waitUntil } from '../wait-until.ts'
import {
  type RecordedExchange,
  recordedExchanges,
  recordedIds,
  seasonSale,
} from '../provider/recorded-exchanges.ts'
import { runs } from '../level.ts'

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

/** Asserts that `actual` has every key of `expected`, recursively, with a value of the same type. */
const assertShape = (actual: unknown, expected: unknown, path: string): void => {
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), path)
    expected.slice(0, 1).forEach((item) => assertShape(actual[0], item, `${path}[0]`))
  } else if (expected !== null && typeof expected === 'object') {
    for (const [key, value] of Object.entries(expected))
      assertShape((actual as Record<string, unknown> | undefined)?.[key], value, `${path}.${key}`)
  } else assert.equal(typeof actual, typeof expected, path)
}

/** Error codes to inject for exchanges whose recorded response is the provider's failure. */
const faultCodes: Record<string, number> = { 'A1 no permission': 200, 'A1 throttled': 4, 'A1 fault': 2 }

/** Plays a recorded request against the sandbox. `linkCode` is the short link that updates refer to. */
const assertExchange = async (
  fixture: SandboxFixture,
  exchange: RecordedExchange,
  linkCode: string,
): Promise<void> => {
  const { name, request, response } = exchange
  if (faultCodes[name] !== undefined)
    await fixture.control('POST', 'faults', { on: 'links', code: faultCodes[name], times: 1 })
  const path = name === 'A1 no such number' ? request.path.replace(fixture.number, '1') : request.path
  let body = request.body as Record<string, unknown> | undefined
  if (body?.code !== undefined) body = { ...body, code: linkCode }
  if (name === 'A1 too long') body = { prefilled_message: 'x'.repeat(141) }
  if (body?.override_callback_uri !== undefined)
    body = { ...body, override_callback_uri: 'http://127.0.0.1:9/' }
  const query = request.query ? `?${new URLSearchParams(request.query)}` : ''
  const token: Record<string, string> = name === 'A1 bad token' ? { Authorization: 'Bearer other' } : {}
  const reply = await fixture.call(
    request.method,
    `${request.unversioned ? '' : 'v23.0/'}${path}${query}`,
    body,
    token,
  )
  assert.equal(reply.status, response.status, `${name}: ${JSON.stringify(reply.body)}`)
  assertShape(reply.body, response.body, name)
  const recordedError = (
    response.body as { error?: { code: number; message: string; error_subcode?: number } }
  ).error
  if (recordedError)
    assert.deepEqual(
      [reply.body.error.code, reply.body.error.message, reply.body.error.error_subcode],
      [recordedError.code, recordedError.message, recordedError.error_subcode],
      name,
    )
}

type SandboxRequest = [method: string, path: string, body: Record<string, unknown>]
/** Returns one valid request of every kind, for mutation. */
const buildValidRequests = (fixture: SandboxFixture, templateId: string, wamid: string): SandboxRequest[] => [
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    buildTextMessage(CUSTOMER, 'Hi', { context: { message_id: wamid }, biz_opaque_callback_data: 'x' }),
  ],
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    buildTemplateMessage('rich', [
      textParameters('body', 'x'),
      { type: 'button', sub_type: 'url', index: 0, parameters: [{ type: 'text', text: 'x' }] },
    ]),
  ],
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    {
      ...buildTextMessage(CUSTOMER, ''),
      type: 'interactive',
      interactive: {
        type: 'list',
        body: { text: 'x' },
        action: { button: 'b', sections: [{ rows: [{ id: '1', title: 't' }] }] },
      },
    },
  ],
  [
    'POST',
    `v23.0/${fixture.number}/messages`,
    { ...buildTextMessage(CUSTOMER, ''), type: 'contacts', contacts: [{ name: { formatted_name: 'x' } }] },
  ],
  ['POST', `v23.0/${fixture.account}/message_templates`, { ...seasonSale }],
  ['POST', `v23.0/${templateId}`, { components: seasonSale.components, category: 'MARKETING' }],
  ['POST', `${fixture.account}/message_templates/archive`, { hsm_ids: ['1', '2'] }],
  [
    'POST',
    `v23.0/${fixture.number}/message_qrdls`,
    { prefilled_message: 'x', generate_qr_image: 'PNG', code: 'ABC' },
  ],
  ['POST', 'v23.0/app/uploads', { file_name: 'x', file_length: 5, file_type: 'image/png' }],
  [
    'POST',
    'control/say',
    {
      number_id: fixture.number,
      from: '123456',
      user_id: 'US.1',
      name: 'x',
      ad: {},
      message: { type: 'image', image: { data: 'AA==' } },
    },
  ],
  ['POST', 'control/faults', { on: 'media', to: '123456', code: 100, times: 1 }],
  ['POST', 'control/status', { message_id: wamid, status: 'read', code: 1 }],
  [
    'POST',
    'control/review',
    { template_id: templateId, decision: 'reject', reason: 'x', category: 'UTILITY' },
  ],
  ['POST', 'control/settings', { duplicates: 0, batch: 10, review_seconds: 2 }],
  [
    'PUT',
    'control/numbers',
    {
      numbers: [{ id: '9', account_id: '8', display_phone_number: '+1 650 555 1112', verified_name: 'x' }],
    },
  ],
  [
    'PUT',
    'control/templates',
    { templates: [{ id: '77', account_id: '8', name: 'x', language: 'en', components: [] }] },
  ],
  ['POST', 'control/preferences', { number_id: fixture.number, from: CUSTOMER, marketing: 'stop' }],
]

/** Values that break naive parsers. */
const hostileValue = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    '\0',
    'a\0b',
    '\ud800',
    null,
    true,
    -1,
    2 ** 53,
    1e300,
    0.5,
    [],
    {},
    [null],
    [[]],
    'x'.repeat(5000),
    '__proto__',
    '{{1}}{{2}}',
    '9'.repeat(30),
    '😀',
    '%',
    'US.',
    '+',
  ),
  fc.jsonValue({ maxDepth: 2 }),
)
const mutation = fc.record({ at: fc.nat(60), value: hostileValue, drop: fc.boolean() })
/** Returns every member of an object or list, recursively, as its holder and key. */
const listMembers = (node: unknown): [Record<string, unknown>, string][] =>
  node === null || typeof node !== 'object'
    ? []
    : Object.keys(node).flatMap((key) => [
        [node as Record<string, unknown>, key] as [Record<string, unknown>, string],
        ...listMembers((node as Record<string, unknown>)[key]),
      ])

everySandbox('The provider as the sandbox plays it', (withSandbox) => {
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

  it('taps: the answer is that of the button or row, of the newest message that has any', async () => {
    await withSandbox(async (fixture) => {
      await fixture.control('PUT', 'templates', {
        templates: [
          {
            id: `${fixture.account}0`,
            account_id: fixture.account,
            name: 'rated',
            language: 'en_US',
            category: 'UTILITY',
            status: 'APPROVED',
            components: [
              { type: 'BODY', text: 'How was it?' },
              {
                type: 'BUTTONS',
                buttons: [
                  { type: 'QUICK_REPLY', text: 'Good' },
                  { type: 'QUICK_REPLY', text: 'Bad' },
                  { type: 'URL', text: 'Shop', url: 'https://x.example/' },
                ],
              },
            ],
          },
        ],
      })
      await writeAsCustomer(fixture)
      const send = async (part: Record<string, unknown>): Promise<string> => {
        const { status, body } = await postMessage(fixture, {
          messaging_product: 'whatsapp',
          to: CUSTOMER,
          ...part,
        })
        assert.equal(status, 200, JSON.stringify(body))
        return body.messages[0].id
      }
      const sendInteractive = (type: string, action: Record<string, unknown>) =>
        send({ type: 'interactive', interactive: { type, body: { text: 'Choose' }, action } })
      const tap = async (title: string, fields: Record<string, unknown> = {}) => {
        await writeAsCustomer(fixture, { text: undefined, tap: title, ...fields })
        await fixture.sandbox.drain()
        const {
          id: _id,
          from: _from,
          from_user_id: _user,
          timestamp: _at,
          ...message
        } = fixture.changes.findLast(({ value }) => value.messages)!.value.messages[0]
        return message
      }
      const assertNoTap = async (title: string, details: RegExp, fields: Record<string, unknown> = {}) =>
        assertError(
          await fixture.control('POST', 'say', {
            number_id: fixture.number,
            from: CUSTOMER,
            tap: title,
            ...fields,
          }),
          400,
          100,
          details,
        )
      await assertNoTap('Yes', /no message with a button or row/)
      await assertNoTap('Yes', /no message with a button or row/, { from: '16315550000' })

      const reply = (id: string, title: string) => ({ type: 'reply', reply: { id, title } })
      const buttons = await sendInteractive('button', { buttons: [reply('y', 'Yes'), reply('n', 'No')] })
      const context = { from: '16505551111', id: buttons }
      const yes = { type: 'button_reply', button_reply: { id: 'y', title: 'Yes' } }
      assert.deepEqual(await tap('yes'), { type: 'interactive', interactive: yes, context })
      assert.deepEqual(await tap('y'), { type: 'interactive', interactive: yes, context })

      const template = await send(
        buildTemplateMessage('rated', [
          {
            type: 'button',
            sub_type: 'quick_reply',
            index: '1',
            parameters: [{ type: 'payload', payload: 'B-7' }],
          },
        ]),
      )
      const ofTemplate = { type: 'button', context: { from: '16505551111', id: template } }
      assert.deepEqual(await tap('Bad'), { ...ofTemplate, button: { payload: 'B-7', text: 'Bad' } })
      assert.deepEqual(await tap('Good'), { ...ofTemplate, button: { payload: 'Good', text: 'Good' } })
      await assertNoTap('Shop', /Shop opens something on the phone and sends nothing/)
      await assertNoTap('Yes', /no button or row Yes: it has Good, Bad/)
      assert.deepEqual(await tap('No', { reply_to: buttons }), {
        type: 'interactive',
        interactive: { type: 'button_reply', button_reply: { id: 'n', title: 'No' } },
        context,
      })
      await assertNoTap('Yes', /no message with a button/, { reply_to: buttons, from: '16315550000' })

      const list = await sendInteractive('list', {
        button: 'Times',
        sections: [
          {
            rows: [
              { id: 's9', title: '09:00', description: 'Centre' },
              { id: 's10', title: '10:00' },
            ],
          },
        ],
      })
      await send({ type: 'text', text: { body: 'Take your time' } })
      await sendInteractive('cta_url', {
        name: 'cta_url',
        parameters: { display_text: 'Map', url: 'https://x.example/' },
      })
      const ofList = { type: 'interactive', context: { from: '16505551111', id: list } }
      assert.deepEqual(await tap('09:00'), {
        ...ofList,
        interactive: { type: 'list_reply', list_reply: { id: 's9', title: '09:00', description: 'Centre' } },
      })
      assert.deepEqual(await tap('s10'), {
        ...ofList,
        interactive: { type: 'list_reply', list_reply: { id: 's10', title: '10:00' } },
      })
      await assertNoTap('map', /Map opens something on the phone and sends nothing/)

      const request = await sendInteractive('location_request_message', { name: 'send_location' })
      const place = await tap('Send location')
      assert.deepEqual([place.type, place.context.id], ['location', request])
      assert.equal(typeof place.location.latitude, 'number')
      const message = { type: 'location', location: { latitude: 1, longitude: 2 } }
      assert.deepEqual((await tap('Send location', { message })).location, message.location)
      await assertNoTap('Send location', /sends a message of the type location/, {
        message: { type: 'image' },
      })
      await assertNoTap('Send location', /without text and echo/, { text: 'Here' })
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

  it('files: media upload as a form, resumable upload of samples', async () => {
    await withSandbox(async (fixture) => {
      const form = (type: string, bytes: Uint8Array = PNG) => {
        const data = new FormData()
        data.set('messaging_product', 'whatsapp')
        data.set('type', type)
        data.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), 'a.png')
        return data
      }
      const { body: media } = await fixture.call('POST', `v23.0/${fixture.number}/media`, form('image/png'))
      await writeAsCustomer(fixture)
      assert.equal(
        (
          await postMessage(fixture, {
            ...buildTextMessage(CUSTOMER, ''),
            type: 'image',
            image: { id: media.id, caption: 'x' },
          })
        ).status,
        200,
      )
      assertError(
        await postMessage(fixture, {
          ...buildTextMessage(CUSTOMER, ''),
          type: 'video',
          video: { id: media.id },
        }),
        400,
        131053,
      )
      assertError(
        await fixture.call('POST', `v23.0/${fixture.number}/media`, form('text/html')),
        400,
        100,
        /following types/,
      )
      assertError(
        await fixture.call(
          'POST',
          `v23.0/${fixture.number}/media`,
          form('image/webp', new Uint8Array(600 * 1024)),
        ),
        400,
        131053,
      )
      assert.deepEqual((await fixture.call('DELETE', `v23.0/${media.id}`)).body, { success: true })
      assertError(await fixture.call('GET', `v23.0/${media.id}`), 400, 100)

      const { body: session } = await fixture.call(
        'POST',
        'v23.0/app/uploads?file_name=a.png&file_length=10&file_type=image%2Fpng',
      )
      assert.match(session.id, /^upload:MTph/)
      const uploadPart = (offset: number, bytes: Uint8Array) =>
        fixture.call('POST', `v23.0/${session.id}`, bytes, { file_offset: String(offset) })
      assert.deepEqual((await uploadPart(0, new Uint8Array(4))).body, { id: session.id, file_offset: 4 })
      assertError(await uploadPart(0, new Uint8Array(4)), 400, 100)
      assert.deepEqual((await fixture.call('GET', `v23.0/${session.id}`)).body, {
        id: session.id,
        file_offset: 4,
      })
      const { body: completed } = await uploadPart(4, new Uint8Array(6))
      assert.match(completed.h, /^4::aW1hZ2UvcG5n:ARa/)
      assert.deepEqual((await uploadPart(10, new Uint8Array(0))).body, completed)
    })
  })

  it('responses to the recorded requests have the recorded status and structure', async () => {
    await withSandbox(
      async (fixture) => {
        await writeAsCustomer(fixture)
        const code = (
          await fixture.call('POST', `v23.0/${fixture.number}/message_qrdls`, { prefilled_message: 'x' })
        ).body.code as string
        await fixture.control('PUT', 'templates', {
          templates: [
            {
              ...seasonSale,
              id: '1689556908129832',
              account_id: fixture.account,
              name: 'to_archive',
              status: 'APPROVED',
            },
          ],
        })
        const playable = recordedExchanges.filter(
          ({ name }) => !['A2 empty', 'A4 delete', 'A7 subscribe elsewhere'].includes(name),
        )
        for (const exchange of playable) await assertExchange(fixture, exchange, code)
        await fixture.control('DELETE', 'faults')
        const { body } = await fixture.call(
          'DELETE',
          `v23.0/${fixture.account}/message_templates?name=season_sale`,
        )
        assert.deepEqual(body, { success: true })
        assertError(
          await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, seasonSale),
          400,
          100,
        )
        assert.equal(
          (await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, seasonSale)).body.error
            .error_subcode,
          2388023,
        )
        await fixture.call('DELETE', `v23.0/${fixture.number}/message_qrdls/${code}`)
      },
      { number: recordedIds.phone, account: recordedIds.account },
    )
  })

  it('a message whose phone and user id belong to two customers is rejected', async () => {
    await withSandbox(async (fixture) => {
      const say = (customer: Record<string, unknown>) =>
        fixture.call('POST', 'control/say', { number_id: fixture.number, text: 'Hello', ...customer })
      assert.equal((await say({ from: '15550100999' })).status, 200)
      assert.equal((await say({ user_id: 'US.77' })).status, 200)
      assert.equal((await say({ from: '15550100999', user_id: 'US.77' })).status, 400)
      assert.equal((await say({ from: '15550100998', user_id: 'US.77' })).status, 200)
    })
  })

  it('no malformed request causes a 5xx response', async () => {
    await withSandbox(async (fixture) => {
      const templates = buildTemplates(fixture.account)
      await writeAsCustomer(fixture)
      await fixture.control('PUT', 'templates', { templates })
      const wamid = await writeAsCustomer(fixture)
      const requests = buildValidRequests(fixture, templates[0]!.id, wamid)
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...requests),
          fc.array(mutation, { minLength: 1, maxLength: 3 }),
          async ([method, path, validBody], mutations) => {
            const body = structuredClone(validBody)
            for (const { at, value, drop } of mutations) {
              const members = listMembers(body)
              if (members.length === 0) break
              const [holder, key] = members[at % members.length]!
              if (drop) delete holder[key]
              else holder[key] = structuredClone(value)
            }
            const reply = await fixture.call(method, path, body)
            assert.ok(reply.status < 500, `${path} ${JSON.stringify(body)} ${JSON.stringify(reply.body)}`)
            await fixture.control('DELETE', 'faults')
          },
        ),
        { numRuns: runs(400, 1200) },
      )
      const paths = [
        '%00',
        '%ff',
        'v23.0',
        'v23.0/%00/messages',
        'control/x',
        'upload:x',
        'cdn/media/x',
        'cdn/qr/x.png',
        'cdn/qr/%00',
        `v23.0/${fixture.number}/message_qrdls?limit=x`,
        `v23.0/${fixture.number}/message_qrdls?after=OTk5OTk5OTk5OTk5OTk5OTk5OTk`,
        'x?access_token=1',
        `v23.0/${fixture.number}?fields=,`,
        'debug_token?input_token=%00',
      ]
      for (const path of paths)
        for (const method of ['GET', 'POST', 'DELETE', 'PUT'])
          assert.ok((await fixture.call(method, path)).status < 500, `${method} ${path}`)
      for (const body of ['{', '[]', '"x"', 'null', '{"a":'.repeat(5000)])
        assert.equal(
          (
            await fixture.call('POST', `v23.0/${fixture.number}/messages`, body, {
              'Content-Type': 'application/json',
            })
          ).status,
          400,
        )
    })
  })
})
