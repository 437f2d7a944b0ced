import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { it } from 'node:test'
import fc from 'fast-check'
import type { Problem } from '../../server/core/problem.ts'
import { createAdapter } from '../../server/provider/adapter.ts'
import { exchanges, recorded, seasonSale } from '../provider/recorded.ts'
import { everySandbox, type Reply, SECRET, type Side, text, TOKEN } from './sandbox-side.ts'

const CUSTOMER = '16315551234'
const HOUR_MS = 3_600_000
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

const refused = ({ status, body }: Reply, http: number, code: number, details?: RegExp): void => {
  assert.deepEqual([status, body.error?.code], [http, code], JSON.stringify(body))
  assert.match(body.error.fbtrace_id, /^A[\w-]+$/)
  if (details) assert.match(body.error.error_data?.details ?? body.error.message, details)
}

const send = (side: Side, body: unknown, version = 'v23.0'): Promise<Reply> =>
  side.call('POST', `${version}/${side.number}/messages`, body)
const say = async (side: Side, more: Record<string, unknown> = {}): Promise<string> => {
  const { status, body } = await side.control('POST', 'say', {
    number_id: side.number,
    from: `+${CUSTOMER}`,
    name: 'Zoë',
    text: 'Hello',
    ...more,
  })
  assert.equal(status, 200, JSON.stringify(body))
  return body.id as string
}
const statuses = (side: Side): string[] =>
  side.changes.flatMap(({ value }) => (value.statuses ?? []).map((s: Record<string, string>) => s.status))

/** Templates of every kind that is checked, as the product brings them. */
const templatesOf = (account: string) =>
  [
    { name: 'plain', components: [{ type: 'BODY', text: 'Hello {{1}}, your code {{2}} is here.' }] },
    {
      name: 'named',
      parameter_format: 'NAMED',
      components: [{ type: 'BODY', text: 'Hello {{first_name}} of ours.' }],
    },
    {
      name: 'rich',
      category: 'MARKETING',
      components: [
        { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['4::x'] } },
        { type: 'BODY', text: 'Save {{1}} now.' },
        { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Offer', has_expiration: true } },
        {
          type: 'BUTTONS',
          buttons: [
            { type: 'QUICK_REPLY', text: 'Stop' },
            { type: 'URL', text: 'Shop', url: 'https://x.example/{{1}}' },
            { type: 'COPY_CODE', example: 'A' },
          ],
        },
      ],
    },
    {
      name: 'cards',
      components: [
        { type: 'BODY', text: 'Look.' },
        {
          type: 'CAROUSEL',
          cards: [1, 2].map(() => ({
            components: [
              { type: 'HEADER', format: 'IMAGE' },
              { type: 'BODY', text: 'Card {{1}} of ours' },
            ],
          })),
        },
      ],
    },
    { name: 'paused', status: 'PAUSED', components: [{ type: 'BODY', text: 'Hello.' }] },
    { name: 'waiting', status: 'PENDING', components: [{ type: 'BODY', text: 'Hello.' }] },
  ].map((t, n) => ({
    id: `${account}${n}`,
    account_id: account,
    language: 'en_US',
    category: 'UTILITY',
    status: 'APPROVED',
    ...t,
  }))

const template = (name: string, components?: unknown[]) => ({
  messaging_product: 'whatsapp',
  to: CUSTOMER,
  type: 'template',
  template: { name, language: { code: 'en_US' }, ...(components ? { components } : {}) },
})
const texts = (type: string, ...values: string[]) => ({
  type,
  parameters: values.map((value) => ({ type: 'text', text: value })),
})

/** Every key of a recorded answer, with the type of its value. */
const assertShape = (actual: unknown, wanted: unknown, path: string): void => {
  if (Array.isArray(wanted)) {
    assert.ok(Array.isArray(actual), path)
    wanted.slice(0, 1).forEach((one) => assertShape(actual[0], one, `${path}[0]`))
  } else if (wanted !== null && typeof wanted === 'object') {
    for (const [key, value] of Object.entries(wanted))
      assertShape((actual as Record<string, unknown> | undefined)?.[key], value, `${path}.${key}`)
  } else assert.equal(typeof actual, typeof wanted, path)
}

everySandbox('The sandbox', (withSandbox) => {
  it('answers the recorded exchanges in their shapes', async () => {
    await withSandbox(
      async (side) => {
        await say(side)
        const code = (
          await side.call('POST', `v23.0/${side.number}/message_qrdls`, { prefilled_message: 'x' })
        ).body.code as string
        await side.control('PUT', 'templates', {
          templates: [
            {
              ...seasonSale,
              id: '1689556908129832',
              account_id: side.account,
              name: 'to_archive',
              status: 'APPROVED',
            },
          ],
        })
        // What must be ordered or spoiled for an answer to be this one.
        const fault: Record<string, number> = { 'A1 no permission': 200, 'A1 throttled': 4, 'A1 fault': 2 }
        const elsewhere = exchanges.filter(
          ({ name }) => !['A2 empty', 'A4 delete', 'A7 subscribe elsewhere'].includes(name),
        )
        for (const { name, request, response } of elsewhere) {
          if (fault[name] !== undefined)
            await side.control('POST', 'faults', { on: 'links', code: fault[name], times: 1 })
          const path = name === 'A1 no such number' ? request.path.replace(side.number, '1') : request.path
          let body = request.body as Record<string, unknown> | undefined
          if (body?.code !== undefined) body = { ...body, code }
          if (name === 'A1 too long') body = { prefilled_message: 'x'.repeat(141) }
          if (body?.override_callback_uri !== undefined)
            body = { ...body, override_callback_uri: 'http://127.0.0.1:9/' }
          const token: Record<string, string> =
            name === 'A1 bad token' ? { Authorization: 'Bearer other' } : {}
          const reply = await side.call(
            request.method,
            `${request.unversioned ? '' : 'v23.0/'}${path}${request.query ? `?${new URLSearchParams(request.query)}` : ''}`,
            body,
            token,
          )
          assert.equal(reply.status, response.status, `${name}: ${JSON.stringify(reply.body)}`)
          assertShape(reply.body, response.body, name)
          const literal = (
            response.body as { error?: { code: number; message: string; error_subcode?: number } }
          ).error
          if (literal)
            assert.deepEqual(
              [reply.body.error.code, reply.body.error.message, reply.body.error.error_subcode],
              [literal.code, literal.message, literal.error_subcode],
              name,
            )
        }
        await side.control('DELETE', 'faults')
        const { body } = await side.call('DELETE', `v23.0/${side.account}/message_templates?name=season_sale`)
        assert.deepEqual(body, { success: true })
        refused(await side.call('POST', `v23.0/${side.account}/message_templates`, seasonSale), 400, 100)
        assert.equal(
          (await side.call('POST', `v23.0/${side.account}/message_templates`, seasonSale)).body.error
            .error_subcode,
          2388023,
        )
        await side.call('DELETE', `v23.0/${side.number}/message_qrdls/${code}`)
      },
      { number: recorded.phone, account: recorded.account },
    )
  })

  it("carries a customer's message and the statuses of the answer in signed webhooks", async () => {
    await withSandbox(async (side) => {
      const id = await say(side, { text: 'Grüße 👋' })
      await side.sandbox.drain()
      const [webhook] = side.webhooks
      assert.equal(
        webhook!.signature,
        `sha256=${createHmac('sha256', SECRET).update(webhook!.body).digest('hex')}`,
      )
      assert.match(webhook!.body, /^[\x20-\x7e]+$/)
      assert.match(webhook!.body, /Gr\\u00fc\\u00dfe \\ud83d\\udc4b/)
      const [inbound] = side.changes
      assert.deepEqual(
        [inbound!.account, inbound!.field, inbound!.value.metadata],
        [side.account, 'messages', { display_phone_number: '16505551111', phone_number_id: side.number }],
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

      const { status, body } = await send(
        side,
        text(`+${CUSTOMER}`, 'Hi', { biz_opaque_callback_data: 'msg_1', context: { message_id: id } }),
      )
      assert.equal(status, 200)
      assert.deepEqual(body.contacts, [{ input: `+${CUSTOMER}`, wa_id: CUSTOMER }])
      await side.sandbox.drain()
      const [sent, delivered] = side.changes.slice(1).map(({ value }) => value.statuses[0])
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
        (await side.call('GET', `v23.0/${side.number}/messages?biz_opaque_callback_data=msg_1`)).body,
        { data: [{ id: body.messages[0].id }] },
      )
      assert.deepEqual(
        (await side.call('GET', `v23.0/${side.number}/messages?biz_opaque_callback_data=msg_2`)).body,
        { data: [] },
      )
      const kept = (await side.control('GET', `messages?number_id=${side.number}&to=%2B${CUSTOMER}`)).body
        .data
      assert.deepEqual(
        [kept.length, kept[0].text.body, kept[0].status, kept[0].number_id],
        [1, 'Hi', 'delivered', side.number],
      )
      assert.deepEqual(
        (
          await send(side, {
            messaging_product: 'whatsapp',
            status: 'read',
            message_id: id,
            typing_indicator: { type: 'text' },
          })
        ).body,
        { success: true },
      )
      refused(
        await send(side, { messaging_product: 'whatsapp', status: 'read', message_id: 'wamid.none' }),
        400,
        131009,
      )
      await side.control('POST', 'status', { message_id: body.messages[0].id, status: 'read' })
      await side.control('POST', 'status', {
        message_id: body.messages[0].id,
        status: 'failed',
        code: 131026,
      })
      await side.sandbox.drain()
      const [read, failed] = side.changes.slice(3).map(({ value }) => value.statuses[0])
      assert.deepEqual(
        [read.status, read.pricing, failed.errors[0].code, failed.errors[0].title],
        ['read', undefined, 131026, 'Message undeliverable'],
      )
    })
  })

  it('brings every type of message, ads, answers and people without a number', async () => {
    await withSandbox(async (side) => {
      const location = { type: 'location', location: { latitude: 1, longitude: 2 } }
      await say(side, { message: location, text: undefined, ad: true, reply_to: 'wamid.x' })
      await say(side, {
        message: {
          type: 'image',
          image: { caption: 'Look', data: PNG.toString('base64'), mime_type: 'image/png' },
        },
        text: undefined,
      })
      await say(side, { message: { type: 'unsupported' }, text: undefined })
      await say(side, { from: undefined, user_id: 'US.13491208655302741918', name: 'Ada' })
      await side.sandbox.drain()
      const [ad, image, unsupported, hidden] = side.changes.map(({ value }) => ({
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

      const { body: media } = await side.call('GET', `v23.0/${image.image.id}`)
      assert.deepEqual(
        [media.mime_type, media.file_size, media.sha256],
        ['image/png', PNG.length, createHash('sha256').update(PNG).digest('hex')],
      )
      const download = async (token?: string) =>
        await fetch(media.url, { headers: token ? { Authorization: `Bearer ${token}` } : {} })
      assert.deepEqual(Buffer.from(await (await download('EAAsandbox-token')).arrayBuffer()), PNG)
      assert.equal((await download()).status, 401)
      side.clock.offsetMs = 301_000
      assert.equal((await download('EAAsandbox-token')).status, 404)

      const reply = await send(side, {
        messaging_product: 'whatsapp',
        recipient: 'US.13491208655302741918',
        type: 'text',
        text: { body: 'Hi' },
      })
      assert.deepEqual(reply.body.contacts, [
        { input: 'US.13491208655302741918', user_id: 'US.13491208655302741918' },
      ])
      await side.sandbox.drain()
      assert.deepEqual(
        Object.keys(side.changes.at(-1)!.value.statuses[0]).filter((key) => key.startsWith('recipient')),
        ['recipient_user_id'],
      )
      refused(
        await send(side, {
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

  it('closes the window after 24 hours, and after 72 when an ad opened it', async () => {
    await withSandbox(async (side) => {
      refused(await send(side, text(CUSTOMER, 'Hi')), 429, 131047, /more than 24 hours/)
      await say(side)
      const at = async (hours: number) => {
        side.clock.offsetMs = hours * HOUR_MS
        return (await send(side, text(CUSTOMER, 'Hi'))).status
      }
      assert.deepEqual([await at(23.9), await at(24.1)], [200, 429])
      await say(side, { ad: true })
      assert.deepEqual([await at(24.1 + 71.9), await at(24.1 + 72.1)], [200, 429])
      await say(side, { ad: true })
      await side.control('POST', 'settings', { free_entry: false })
      assert.deepEqual([await at(96.2 + 23.9), await at(96.2 + 24.1)], [200, 429])
      await side.sandbox.drain()
      side.changes.length = 0

      await side.control('POST', 'faults', { on: 'messages', async: true })
      assert.equal((await send(side, text(CUSTOMER, 'Hi'))).status, 200)
      await side.sandbox.drain()
      assert.deepEqual(
        side.changes.map(({ value }) => value.statuses[0].errors[0].code),
        [131047],
      )
      assert.equal(
        (await side.control('POST', 'clock', { offset_ms: 5 * HOUR_MS })).body.offset_ms,
        5 * HOUR_MS,
      )
      assert.equal(side.clock.offsetMs, 5 * HOUR_MS)
    })
  })

  it('checks templates against what they were made with', async () => {
    await withSandbox(async (side) => {
      const templates = templatesOf(side.account)
      assert.deepEqual((await side.control('PUT', 'templates', { templates })).body, {
        success: true,
        added: templates.length,
      })
      assert.equal((await side.control('PUT', 'templates', { templates })).body.added, 0)
      const ok = async (name: string, components?: unknown[]) =>
        assert.equal((await send(side, template(name, components))).status, 200, name)
      const image = {
        type: 'header',
        parameters: [{ type: 'image', image: { link: 'https://x.example/a.png' } }],
      }
      const button = (index: number, subType: string, parameter?: unknown) => ({
        type: 'button',
        sub_type: subType,
        index: String(index),
        parameters: parameter ? [parameter] : [],
      })
      const offer = {
        type: 'limited_time_offer',
        parameters: [{ type: 'limited_time_offer', limited_time_offer: { expiration_time_ms: 1 } }],
      }
      const url = button(1, 'url', { type: 'text', text: 'abc' })
      const coupon = button(2, 'copy_code', { type: 'coupon_code', coupon_code: '25OFF' })
      const rich = [image, texts('body', '25 %'), offer, url, coupon]
      const cards = (n: number) => ({
        type: 'carousel',
        cards: Array.from({ length: n }, (_, i) => ({
          card_index: i,
          components: [image, texts('body', 'x')],
        })),
      })
      await ok('plain', [texts('body', 'Ada', '7')])
      await ok('named', [
        { type: 'body', parameters: [{ type: 'text', parameter_name: 'first_name', text: 'Ada' }] },
      ])
      await ok('rich', rich)
      await ok('rich', [...rich, button(0, 'quick_reply', { type: 'payload', payload: 'p' })])
      await ok('cards', [cards(2)])

      const no = async (code: number, details: RegExp, name: string, components?: unknown[]) => {
        const reply = await send(side, template(name, components))
        refused(reply, code === 132001 ? 404 : 400, code, details)
      }
      await no(132001, /template name \(none\) does not exist in en_US/, 'none')
      await no(132001, /does not exist/, 'waiting')
      await no(132015, /paused/, 'paused')
      await no(
        132000,
        /body: number of localizable_params \(1\) does not match the expected number of params \(2\)/,
        'plain',
        [texts('body', 'x')],
      )
      await no(132000, /header: number of localizable_params \(1\)/, 'plain', [
        texts('header', 'x'),
        texts('body', 'x', 'y'),
      ])
      await no(131008, /missing text value/, 'plain', [texts('body', 'x', '')])
      await no(100, /new-line/, 'plain', [texts('body', 'x', 'a\nb')])
      await no(132005, /too long/, 'plain', [texts('body', 'x', 'y'.repeat(1025))])
      await no(100, /Parameter name/, 'named', [texts('body', 'x')])
      await no(132012, /expected IMAGE, received UNKNOWN/, 'rich', rich.slice(1))
      await no(132012, /expected IMAGE, received VIDEO/, 'rich', [
        { type: 'header', parameters: [{ type: 'video', video: { link: 'https://x.example' } }] },
        ...rich.slice(1),
      ])
      await no(
        131008,
        /expiration_time_ms/,
        'rich',
        rich.filter((c) => c !== offer),
      )
      await no(
        131008,
        /Button at index 1 of type Url requires a parameter/,
        'rich',
        rich.filter((c) => c !== url),
      )
      await no(
        131008,
        /Button at index 2 of type CopyCode requires/,
        'rich',
        rich.filter((c) => c !== coupon),
      )
      await no(131009, /no button at index 9/, 'rich', [...rich, button(9, 'url')])
      await no(132012, /number of cards/, 'cards', [cards(1)])

      await say(side)
      await side.control('POST', 'preferences', { number_id: side.number, from: CUSTOMER, marketing: 'stop' })
      await ok('rich', rich)
      await side.sandbox.drain()
      assert.equal(
        side.changes.find(({ field }) => field === 'user_preferences')!.value.user_preferences[0].value,
        'stop',
      )
      assert.equal(side.changes.at(-1)!.value.statuses[0].errors[0].code, 131050)
    })
  })

  it("refuses messages in the provider's words", async () => {
    await withSandbox(async (side) => {
      await say(side)
      const message = (more: Record<string, unknown>) => ({ ...text(CUSTOMER, 'Hi'), ...more })
      const cases: [Record<string, unknown>, number, RegExp][] = [
        [{ messaging_product: undefined }, 100, /messaging_product is required/],
        [{ to: undefined }, 100, /to is required/],
        [{ to: 'me' }, 131009, /not a valid phone number/],
        [{ to: '+1 650-555-1111' }, 131021, /same/],
        [{ type: 'poem' }, 131009, /must be one of/],
        [{ text: undefined }, 100, /text is required/],
        [{ text: { body: 'x'.repeat(4097) } }, 131009, /at most 4096/],
        [{ type: 'image', image: {} }, 131008, /one of id and link/],
        [
          { type: 'image', image: { id: '1' } },
          100,
          /not a valid whatsapp business account media attachment ID/,
        ],
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
      for (const [more, code, details] of cases) refused(await send(side, message(more)), 400, code, details)
      const buttons = [1, 2, 3].map((n) => ({ type: 'reply', reply: { id: `b${n}`, title: `B${n}` } }))
      const good = [
        {
          type: 'interactive',
          interactive: {
            type: 'button',
            header: { type: 'text', text: 'H' },
            body: { text: 'x' },
            footer: { text: 'f' },
            action: { buttons },
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
      for (const more of good)
        assert.equal((await send(side, message(more))).status, 200, JSON.stringify(more))
      refused(await side.call('POST', 'v23.0/1/messages', text(CUSTOMER, 'Hi')), 400, 100)
      refused(
        await side.call('POST', `v23.0/${side.number}/messages`, text(CUSTOMER, 'Hi'), {
          Authorization: 'Bearer wrong',
        }),
        401,
        190,
      )
      refused(await side.call('GET', 'v23.0/a/b/c'), 400, 2500)
      await side.control('POST', 'number', { id: side.number, status: 'DISCONNECTED', quality_rating: 'RED' })
      refused(await send(side, text(CUSTOMER, 'Hi')), 400, 133010)
      await side.sandbox.drain()
      assert.deepEqual(
        side.changes
          .filter(({ field }) => field === 'phone_number_quality_update')
          .map(({ value }) => value.event),
        ['FLAGGED'],
      )
    })
  })

  it('limits how fast a number may send when it is told to', async () => {
    await withSandbox(async (side) => {
      await say(side)
      await side.control('POST', 'settings', { pair_burst: 2, pair_seconds: 3600 })
      assert.deepEqual(
        [(await send(side, text(CUSTOMER, '1'))).status, (await send(side, text(CUSTOMER, '2'))).status],
        [200, 200],
      )
      const third = await send(side, text(CUSTOMER, '3'))
      refused(third, 429, 131056)
      assert.equal(third.headers.get('retry-after'), '6')
      assert.ok(JSON.parse(third.headers.get('x-business-use-case-usage')!).sandbox[0].type)
      await side.control('POST', 'settings', { pair_burst: null, throughput: 1 })
      const many = await Promise.all(Array.from({ length: 8 }, (_, n) => send(side, text(CUSTOMER, `m${n}`))))
      assert.ok(many.some((r) => r.body.error?.code === 130429))
      assert.ok(many.some((r) => r.status === 200))
    })
  })

  it('gives ordered faults to whom and as often as was said, and loses answers after the work was done', async () => {
    await withSandbox(async (side) => {
      await say(side)
      await say(side, { from: '+16315550000' })
      await side.control('POST', 'faults', { on: 'messages', to: `+${CUSTOMER}`, code: 131026, times: 1 })
      assert.equal((await send(side, text('16315550000', 'Hi'))).status, 200)
      refused(await send(side, text(CUSTOMER, 'Hi')), 400, 131026)
      assert.equal((await send(side, text(CUSTOMER, 'Hi'))).status, 200)
      assert.deepEqual((await side.control('GET', 'faults')).body, { data: [] })

      await side.control('POST', 'faults', { on: 'messages', drop_answer: true, times: 1 })
      await assert.rejects(
        send(side, text(CUSTOMER, 'lost', { biz_opaque_callback_data: 'lost' })),
        TypeError,
      )
      assert.equal(
        (await side.call('GET', `v23.0/${side.number}/messages?biz_opaque_callback_data=lost`)).body.data
          .length,
        1,
      )

      await side.control('POST', 'faults', { on: 'messages', latency_ms: 300, times: 1 })
      const before = performance.now()
      await send(side, text(CUSTOMER, 'late'))
      assert.ok(performance.now() - before >= 290)

      await side.control('POST', 'faults', { on: 'messages', code: 131026, async: true, times: 1 })
      const { body } = await send(side, text(CUSTOMER, 'fails'))
      side.changes.length = 0
      await side.sandbox.drain()
      const own = side.changes
        .flatMap(({ value }) => value.statuses ?? [])
        .filter((s: { id: string }) => s.id === body.messages[0].id)
      assert.deepEqual(
        own.map((s) => [s.status, s.errors[0].code]),
        [['failed', 131026]],
      )
      for (const on of ['templates', 'media', 'links'])
        await side.control('POST', 'faults', { on, code: 2, times: 1 })
      assert.equal((await side.call('GET', `v23.0/${side.account}/message_templates`)).status, 503)
      assert.equal((await side.call('GET', 'v23.0/12345')).status, 503)
      assert.equal((await side.call('GET', `v23.0/${side.number}/message_qrdls`)).status, 500)
      await side.control('POST', 'faults', { on: 'messages', code: 1 })
      await side.control('DELETE', 'faults')
      assert.equal((await send(side, text(CUSTOMER, 'Hi'))).status, 200)
    })
  })

  it('repeats webhooks until they are answered with 200', async () => {
    await withSandbox(async (side) => {
      side.answers.push(500, 201)
      await say(side)
      assert.equal(await side.sandbox.pump(), 0)
      assert.deepEqual(side.changes, [])
      const stop = side.sandbox.start()
      const deadline = Date.now() + 10_000
      while (side.changes.length === 0 && Date.now() < deadline)
        await new Promise((soon) => {
          setTimeout(soon, 20)
        })
      await stop()
      assert.equal(side.webhooks.length, 3)
      assert.equal(
        new Set(
          side.webhooks.map(({ body }) =>
            JSON.stringify((JSON.parse(body) as { entry: { changes: unknown }[] }).entry[0]!.changes),
          ),
        ).size,
        1,
      )
      assert.equal(await side.sandbox.pump(), 0)
    })
  })

  it('sends batches, duplicates, and updates in no order', async () => {
    await withSandbox(async (side) => {
      for (let n = 0; n < 30; n++) await say(side, { text: `m${n}` })
      await side.sandbox.drain()
      assert.deepEqual([side.webhooks.length, side.changes.length], [1, 30])
      assert.deepEqual(
        side.changes.map(({ value }) => value.messages[0].text.body),
        Array.from({ length: 30 }, (_, n) => `m${n}`),
      )

      assert.deepEqual(
        (await side.control('POST', 'webhooks', { duplicates: 2, shuffle: true })).body.duplicates,
        2,
      )
      side.changes.length = 0
      for (let n = 0; n < 10; n++) await send(side, text(CUSTOMER, `r${n}`))
      await side.sandbox.drain()
      assert.equal(side.changes.length, 60)
      assert.equal(statuses(side).filter((s) => s === 'delivered').length, 30)
      const first = new Map<string, string>()
      for (const { value } of side.changes)
        if (!first.has(value.statuses[0].id)) first.set(value.statuses[0].id, value.statuses[0].status)
      assert.ok([...first.values()].includes('delivered'), 'some are delivered before they are sent')

      await side.control('POST', 'webhooks', { duplicates: 0, shuffle: false, batch: 4 })
      side.webhooks.length = 0
      for (let n = 0; n < 10; n++) await say(side)
      await side.sandbox.drain()
      assert.deepEqual(
        side.webhooks.map(
          ({ body }) => (JSON.parse(body) as { entry: { changes: unknown[] }[] }).entry[0]!.changes.length,
        ),
        [4, 4, 2],
      )
    })
  })

  it('keeps everything over a restart, and shares the work with other servers', async () => {
    await withSandbox(async (side) => {
      await say(side)
      const ids = new Set<string>()
      for (let n = 0; n < 20; n++)
        ids.add((await send(side, text(CUSTOMER, `n${n}`))).body.messages[0].id as string)
      const [one, other] = [side.another(), side.another()]
      await Promise.all([one.drain(), other.drain()])
      const sent = side.changes
        .flatMap(({ value }) => value.statuses ?? [])
        .filter((s: { status: string }) => s.status === 'sent')
        .map((s: { id: string }) => s.id)
      assert.equal(sent.length, ids.size)
      assert.deepEqual(new Set(sent), ids)
      assert.equal((await side.control('GET', `messages?account_id=${side.account}`)).body.data.length, 20)
    })
  })

  it('reviews templates by itself after two seconds, and as it is told', async () => {
    await withSandbox(async (side) => {
      const { body: made } = await side.call('POST', `v23.0/${side.account}/message_templates`, seasonSale)
      const events = () =>
        side.changes
          .filter(({ field }) => field === 'message_template_status_update')
          .map(({ value }) => value.event)
      const status = async () => (await side.call('GET', `v23.0/${made.id}?fields=status`)).body.status
      assert.deepEqual([made.status, made.category], ['PENDING', 'MARKETING'])
      await side.sandbox.drain()
      assert.equal(await status(), 'PENDING')
      side.clock.offsetMs += 2000
      await side.sandbox.drain()
      assert.deepEqual([await status(), events()], ['APPROVED', ['APPROVED']])
      const { value } = side.changes[0]!
      assert.deepEqual(
        [value.message_template_id, value.message_template_name, value.message_template_language],
        [Number(made.id), 'season_sale', 'en_US'],
      )

      await side.control('POST', 'review', {
        template_id: made.id,
        decision: 'reject',
        reason: 'Variables stand next to each other.',
      })
      await side.control('POST', 'review', { template_id: made.id, decision: 'pause' })
      assert.deepEqual((await side.call('POST', `v23.0/${made.id}/unpause`)).body, { success: true })
      await side.control('POST', 'review', {
        template_id: made.id,
        decision: 'category',
        category: 'UTILITY',
      })
      await side.sandbox.drain()
      assert.deepEqual(events(), ['APPROVED', 'REJECTED', 'PAUSED', 'APPROVED'])
      assert.equal(side.changes[1]!.value.rejection_info.reason, 'Variables stand next to each other.')
      assert.deepEqual(
        [
          side.changes.at(-1)!.field,
          side.changes.at(-1)!.value.previous_category,
          side.changes.at(-1)!.value.new_category,
        ],
        ['template_category_update', 'MARKETING', 'UTILITY'],
      )

      assert.deepEqual(
        (await side.call('POST', `v23.0/${made.id}`, { components: [{ type: 'BODY', text: 'Shop now.' }] }))
          .body,
        { success: true },
      )
      refused(
        await side.call('POST', `v23.0/${made.id}`, { components: [{ type: 'BODY', text: 'Again.' }] }),
        400,
        100,
      )
      side.clock.offsetMs += 2000
      await side.sandbox.drain()
      assert.deepEqual(
        (await side.call('POST', `${side.account}/message_templates/archive`, { hsm_ids: made.id })).body,
        { archived_templates: [made.id], failed_templates: {} },
      )
      assert.equal(await status(), 'ARCHIVED')
      assert.deepEqual(
        (await side.call('POST', `${side.account}/message_templates/unarchive`, { hsm_ids: [made.id] })).body,
        { unarchived_templates: [made.id], failed_templates: {} },
      )
      assert.equal(await status(), 'APPROVED')
      await side.call('POST', `${side.account}/message_templates/archive`, { hsm_ids: [made.id] })
      side.clock.offsetMs += 29 * 24 * HOUR_MS
      await side.sandbox.drain()
      assert.equal(events().at(-1), 'DELETED')
      refused(await side.call('GET', `v23.0/${made.id}`), 400, 100)
    })
  })

  it('refuses templates that the provider does not take', async () => {
    await withSandbox(async (side) => {
      const make = (more: Record<string, unknown>) =>
        side.call('POST', `v23.0/${side.account}/message_templates`, { ...seasonSale, ...more })
      const body = (bodyText: string, example?: unknown) => ({
        components: [{ type: 'BODY', text: bodyText, ...(example ? { example } : {}) }],
      })
      const cases: [Record<string, unknown>, number | undefined][] = [
        [{ name: 'Upper' }, undefined],
        [{ language: 'english' }, undefined],
        [{ category: 'OTHER' }, undefined],
        [{ components: [] }, undefined],
        [{ components: [{ type: 'FOOTER', text: 'x' }] }, 2388072],
        [body('x'.repeat(1025)), 2388040],
        [body('Hi {{2}} x', { body_text: [['a']] }), 2388072],
        [body('Hi {{1}} x'), 2388043],
        [body('{{1}} hi', { body_text: [['a']] }), 2388299],
        [
          {
            components: [
              { type: 'BODY', text: 'x' },
              { type: 'HEADER', format: 'IMAGE' },
            ],
          },
          2388043,
        ],
        [
          {
            components: [
              { type: 'BODY', text: 'x' },
              { type: 'FOOTER', text: '{{1}}' },
            ],
          },
          2388073,
        ],
      ]
      for (const [more, subcode] of cases) {
        const reply = await make(more)
        refused(reply, 400, 100)
        assert.equal(reply.body.error.error_subcode, subcode, JSON.stringify([more, reply.body]))
      }
    })
  })

  it('lists templates by what is asked, in pages', async () => {
    await withSandbox(async (side) => {
      const templates = templatesOf(side.account)
      await side.control('PUT', 'templates', { templates })
      const list = async (query: string) =>
        (await side.call('GET', `v23.0/${side.account}/message_templates?${query}`)).body
      assert.deepEqual((await list('name=plain&fields=id,name')).data, [
        { name: 'plain', id: templates[0]!.id },
      ])
      assert.deepEqual(
        (await list('status=PAUSED,PENDING&fields=name')).data.map((t: { name: string }) => t.name),
        ['waiting', 'paused'],
      )
      const names: string[] = []
      let after: string | undefined = ''
      while (after !== undefined) {
        const page = await list(`limit=2&fields=name&after=${after}`)
        names.push(...page.data.map((t: { name: string }) => t.name))
        after = page.paging?.next ? page.paging.cursors.after : undefined
      }
      assert.deepEqual(names, templates.map((t) => t.name).reverse())
      refused(
        await side.call('GET', `v23.0/${side.account}/message_templates?fields=id,poem`),
        400,
        100,
        /nonexisting field \(poem\)/,
      )
      refused(await side.call('GET', `v23.0/${side.account}/message_templates?after=%00`), 400, 100)
      assert.equal(
        (await side.control('GET', `templates?account_id=${side.account}`)).body.data.length,
        templates.length,
      )
    })
  })

  it('takes files: media in a form, samples in steps', async () => {
    await withSandbox(async (side) => {
      const form = (type: string, bytes: Uint8Array = PNG) => {
        const data = new FormData()
        data.set('messaging_product', 'whatsapp')
        data.set('type', type)
        data.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), 'a.png')
        return data
      }
      const { body: media } = await side.call('POST', `v23.0/${side.number}/media`, form('image/png'))
      await say(side)
      assert.equal(
        (await send(side, { ...text(CUSTOMER, ''), type: 'image', image: { id: media.id, caption: 'x' } }))
          .status,
        200,
      )
      refused(
        await send(side, { ...text(CUSTOMER, ''), type: 'video', video: { id: media.id } }),
        400,
        131053,
      )
      refused(
        await side.call('POST', `v23.0/${side.number}/media`, form('text/html')),
        400,
        100,
        /following types/,
      )
      refused(
        await side.call('POST', `v23.0/${side.number}/media`, form('image/webp', new Uint8Array(600 * 1024))),
        400,
        131053,
      )
      assert.deepEqual((await side.call('DELETE', `v23.0/${media.id}`)).body, { success: true })
      refused(await side.call('GET', `v23.0/${media.id}`), 400, 100)

      const { body: session } = await side.call(
        'POST',
        'v23.0/app/uploads?file_name=a.png&file_length=10&file_type=image%2Fpng',
      )
      assert.match(session.id, /^upload:MTph/)
      const part = (offset: number, bytes: Uint8Array) =>
        side.call('POST', `v23.0/${session.id}`, bytes, { file_offset: String(offset) })
      assert.deepEqual((await part(0, new Uint8Array(4))).body, { id: session.id, file_offset: 4 })
      refused(await part(0, new Uint8Array(4)), 400, 100)
      assert.deepEqual((await side.call('GET', `v23.0/${session.id}`)).body, {
        id: session.id,
        file_offset: 4,
      })
      const { body: done } = await part(4, new Uint8Array(6))
      assert.match(done.h, /^4::aW1hZ2UvcG5n:ARa/)
      assert.deepEqual((await part(10, new Uint8Array(0))).body, done)
    })
  })

  it('makes short links with QR codes, which live in lists and die', async () => {
    await withSandbox(async (side) => {
      const base = `v23.0/${side.number}/message_qrdls`
      const { body: link } = await side.call('POST', base, {
        prefilled_message: 'Hi 👋',
        generate_qr_image: 'SVG',
      })
      assert.match(link.code, /^[A-Z2-7]{14}$/)
      assert.match(link.deep_link_url, new RegExp(`^http://127\\.0\\.0\\.1:\\d+/message/${link.code}$`))
      const svg = await fetch(link.qr_image_url)
      assert.deepEqual(
        [svg.headers.get('content-type'), (await svg.text()).includes('<svg')],
        ['image/svg+xml', true],
      )
      const { body: list } = await side.call('GET', `${base}?fields=code,qr_image_url.format(PNG)`)
      const png = Buffer.from(await (await fetch(list.data[0].qr_image_url)).arrayBuffer())
      assert.deepEqual(png.subarray(1, 4).toString(), 'PNG')
      await side.call('POST', base, { code: link.code, prefilled_message: 'Other' })
      assert.deepEqual((await side.call('GET', `${base}/${link.code}`)).body, {
        data: [{ code: link.code, prefilled_message: 'Other', deep_link_url: link.deep_link_url }],
      })
      for (let n = 0; n < 30; n++) await side.call('POST', base, { prefilled_message: `n${n}` })
      const { body: page } = await side.call('GET', base)
      assert.deepEqual(
        [page.data.length, page.data[0].prefilled_message, typeof page.paging.next],
        [25, 'n29', 'string'],
      )
      const { body: rest } = await side.call('GET', `${base}?after=${page.paging.cursors.after}`)
      assert.deepEqual([rest.data.length, rest.paging.next], [6, undefined])
      assert.equal((await side.control('GET', `links?number_id=${side.number}`)).body.data.length, 31)
      assert.deepEqual((await side.call('DELETE', `${base}/${link.code}`)).body, { success: true })
      refused(await side.call('GET', `${base}/${link.code}`), 404, 100)
      side.clock.offsetMs = 8 * 24 * HOUR_MS
      assert.equal((await fetch(list.data[0].qr_image_url)).status, 403)
    })
  })

  it("sends an account's updates where it asked, once the address has proved itself", async () => {
    await withSandbox(async (side) => {
      const subscribe = (body: unknown) => side.call('POST', `v23.0/${side.account}/subscribed_apps`, body)
      await say(side)
      await side.sandbox.drain()
      const hook = side.webhooks.length
      await side.call('DELETE', `v23.0/${side.account}/subscribed_apps`)
      await say(side)
      await side.sandbox.drain()
      assert.equal(side.webhooks.length, hook)
      assert.deepEqual((await side.call('GET', `v23.0/${side.account}/subscribed_apps`)).body, { data: [] })
      assert.deepEqual((await subscribe({})).body, { success: true })
      await side.sandbox.drain()
      assert.equal(side.changes.length, 2)
      refused(
        await subscribe({ override_callback_uri: 'http://127.0.0.1:9/x', verify_token: 'right' }),
        422,
        100,
      )
      refused(await subscribe({ override_callback_uri: 'nowhere', verify_token: 'right' }), 400, 100)
    })
  })

  it('serves the adapter with all that it asks for', async () => {
    await withSandbox(async (side) => {
      const provider = createAdapter({ baseUrl: side.url, version: 'v23.0', token: TOKEN, appId: 'app' })
      const from = { phoneNumberId: side.number }
      const signal = AbortSignal.timeout(30_000)
      const outgoing = (reference: string) => ({
        to: CUSTOMER,
        reference,
        body: { type: 'text', text: { body: 'Hi' } },
      })
      await assert.rejects(
        provider.send(from, outgoing('r0'), signal),
        (e: Problem) => e.extras.provider_code === 131047 && e.code === 'window_closed',
      )
      await say(side)
      const sent = await provider.send(from, outgoing('r1'), signal)
      assert.deepEqual(
        [await provider.findSent(from, 'r1', signal), await provider.findSent(from, 'r0', signal)],
        [sent, 'absent'],
      )

      const { id: mediaId } = await provider.uploadMedia(
        from,
        { bytes: PNG, contentType: 'image/png', fileName: 'a.png' },
        signal,
      )
      const info = await provider.mediaInfo(mediaId, signal)
      assert.deepEqual([info.contentType, info.size], ['image/png', PNG.length])
      assert.deepEqual(Buffer.from(await provider.downloadMedia(info.url, 1000, signal)), PNG)

      assert.deepEqual(await provider.phoneNumbers(side.account, signal), [
        {
          id: side.number,
          displayPhoneNumber: '+1 650-555-1111',
          verifiedName: 'Lucky Shrub',
          status: 'CONNECTED',
          qualityRating: 'GREEN',
        },
      ])
      await provider.subscribe(side.account, undefined, signal)
      const { handle } = await provider.uploadSample(
        { bytes: PNG, contentType: 'image/png', fileName: 'a.png' },
        signal,
      )
      const components = [
        { type: 'HEADER', format: 'IMAGE', example: { header_handle: [handle] } },
        { type: 'BODY', text: 'Hello.' },
      ]
      const made = await provider.createTemplate(
        side.account,
        {
          name: 'by_adapter',
          language: 'en_US',
          category: 'UTILITY',
          allowCategoryChange: false,
          components,
        },
        signal,
      )
      assert.equal(made.status, 'PENDING')
      await side.control('POST', 'review', { template_id: made.id, decision: 'approve' })
      const [listed] = await provider.listTemplates(side.account, 'by_adapter', signal)
      assert.deepEqual([listed!.id, listed!.status, listed!.components], [made.id, 'APPROVED', components])
      assert.deepEqual(await provider.archiveTemplates(side.account, [made.id], signal), {
        archived: [made.id],
        failed: {},
      })

      const link = await provider.createLink(from, { message: 'Hi', qrFormat: 'PNG' }, signal)
      assert.deepEqual(
        (await provider.listLinks(from, signal)).map(({ code, message }) => [code, message]),
        [[link.code, 'Hi']],
      )
      await provider.deleteLink(from, link.code, signal)
      assert.deepEqual(await provider.listLinks(from, signal), [])
    })
  })

  it('never fails, whatever it is sent', async () => {
    await withSandbox(async (side) => {
      const templates = templatesOf(side.account)
      await say(side)
      await side.control('PUT', 'templates', { templates })
      const {
        body: { id: wamid },
      } = { body: { id: await say(side) } }
      const good: [string, string, Record<string, unknown>][] = [
        [
          'POST',
          `v23.0/${side.number}/messages`,
          text(CUSTOMER, 'Hi', { context: { message_id: wamid }, biz_opaque_callback_data: 'x' }),
        ],
        [
          'POST',
          `v23.0/${side.number}/messages`,
          template('rich', [
            texts('body', 'x'),
            { type: 'button', sub_type: 'url', index: 0, parameters: [{ type: 'text', text: 'x' }] },
          ]),
        ],
        [
          'POST',
          `v23.0/${side.number}/messages`,
          {
            ...text(CUSTOMER, ''),
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
          `v23.0/${side.number}/messages`,
          { ...text(CUSTOMER, ''), type: 'contacts', contacts: [{ name: { formatted_name: 'x' } }] },
        ],
        ['POST', `v23.0/${side.account}/message_templates`, { ...seasonSale }],
        ['POST', `v23.0/${templates[0]!.id}`, { components: seasonSale.components, category: 'MARKETING' }],
        ['POST', `${side.account}/message_templates/archive`, { hsm_ids: ['1', '2'] }],
        [
          'POST',
          `v23.0/${side.number}/message_qrdls`,
          { prefilled_message: 'x', generate_qr_image: 'PNG', code: 'ABC' },
        ],
        ['POST', 'v23.0/app/uploads', { file_name: 'x', file_length: 5, file_type: 'image/png' }],
        [
          'POST',
          'control/say',
          {
            number_id: side.number,
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
          { template_id: templates[0]!.id, decision: 'reject', reason: 'x', category: 'UTILITY' },
        ],
        ['POST', 'control/settings', { duplicates: 0, batch: 10, review_seconds: 2 }],
        [
          'PUT',
          'control/numbers',
          {
            numbers: [
              { id: '9', account_id: '8', display_phone_number: '+1 650 555 1112', verified_name: 'x' },
            ],
          },
        ],
        [
          'PUT',
          'control/templates',
          { templates: [{ id: '77', account_id: '8', name: 'x', language: 'en', components: [] }] },
        ],
        ['POST', 'control/preferences', { number_id: side.number, from: CUSTOMER, marketing: 'stop' }],
      ]
      const nasty = fc.oneof(
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
      const change = fc.record({ at: fc.nat(60), value: nasty, drop: fc.boolean() })
      const places = (node: unknown): [Record<string, unknown>, string][] =>
        node === null || typeof node !== 'object'
          ? []
          : Object.keys(node).flatMap((key) => [
              [node as Record<string, unknown>, key] as [Record<string, unknown>, string],
              ...places((node as Record<string, unknown>)[key]),
            ])
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...good),
          fc.array(change, { minLength: 1, maxLength: 3 }),
          async ([method, path, given], changes) => {
            const body = structuredClone(given)
            for (const { at, value, drop } of changes) {
              const all = places(body)
              if (all.length === 0) break
              const [holder, key] = all[at % all.length]!
              if (drop) delete holder[key]
              else holder[key] = structuredClone(value)
            }
            const reply = await side.call(method, path, body)
            assert.ok(reply.status < 500, `${path} ${JSON.stringify(body)} ${JSON.stringify(reply.body)}`)
            await side.control('DELETE', 'faults')
          },
        ),
        { numRuns: 400 },
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
        `v23.0/${side.number}/message_qrdls?limit=x`,
        `v23.0/${side.number}/message_qrdls?after=OTk5OTk5OTk5OTk5OTk5OTk5OTk`,
        'x?access_token=1',
        `v23.0/${side.number}?fields=,`,
        'debug_token?input_token=%00',
      ]
      for (const path of paths)
        for (const method of ['GET', 'POST', 'DELETE', 'PUT'])
          assert.ok((await side.call(method, path)).status < 500, `${method} ${path}`)
      for (const body of ['{', '[]', '"x"', 'null', '{"a":'.repeat(5000)])
        assert.equal(
          (
            await side.call('POST', `v23.0/${side.number}/messages`, body, {
              'Content-Type': 'application/json',
            })
          ).status,
          400,
        )
    })
  })
})
