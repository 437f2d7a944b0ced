import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { insertSlaPolicy } from '../../storage/conversations/sla.ts'
import { everyDatabase } from '../doors.ts'
import {
  createCustomerFixture,
  buildCustomerMessage,
  type WebhookPart,
  buildCustomerProfile,
  type CustomerFixture,
  insertSentMessage,
  toUnixSeconds,
} from '../provider/webhook-fixture.ts'
import { types, countOf } from './events.ts'

/** An id of the provider, which names the customer and who wrote the message beside the message itself. */
const spellId = (customer: string, id: string, by: 'ours' | 'theirs' = 'theirs'): string => {
  const ofUser = customer.includes('.')
  const bytes = [
    [0x1c, 0x18, customer.length],
    Buffer.from(customer),
    [0x15, ofUser ? 0x14 : 0x02, 0x00, by === 'ours' ? 0x11 : 0x12, 0x18, id.length],
    Buffer.from(id),
    [0x00],
  ]
  return `wamid.${Buffer.concat(bytes.map((part) => Buffer.from(part))).toString('base64')}`
}

/** Adds a number to the workspace. Returns the provider's id of it. */
const insertSecondChannel = async ({ server, workspace, number }: CustomerFixture): Promise<string> => {
  await sql`insert into channels select (jsonb_populate_record(c, jsonb_build_object('id',
      nextval(pg_get_serial_sequence('channels', 'id')), 'is_default', false,
      'provider_phone_number_id', ${`${number}2`}::text))).*
    from channels c where workspace_id = ${workspace.id}`.execute(server.db)
  return `${number}2`
}

/** What the provider sends, and the type, text and content that are stored. */
const messageCases: [WebhookPart, string, string | null, WebhookPart | null][] = [
  [{ type: 'text', text: { body: 'hi' }, context: { forwarded: true } }, 'TEXT', 'hi', { forwarded: 'once' }],
  [
    { type: 'text', text: { body: 'hi' }, context: { frequently_forwarded: true } },
    'TEXT',
    'hi',
    { forwarded: 'often' },
  ],
  [
    { type: 'image', image: { mime_type: 'image/jpeg', sha256: 'x', id: '1', caption: 'Look' } },
    'IMAGE',
    'Look',
    null,
  ],
  [{ type: 'video', video: { mime_type: 'video/mp4', id: '2' } }, 'VIDEO', null, null],
  [
    { type: 'audio', audio: { mime_type: 'audio/ogg; codecs=opus', id: '3', voice: true } },
    'AUDIO',
    null,
    { voice: true },
  ],
  [
    { type: 'document', document: { mime_type: 'application/pdf', id: '4', filename: 'bill.pdf' } },
    'DOCUMENT',
    null,
    null,
  ],
  [
    { type: 'sticker', sticker: { mime_type: 'image/webp', id: '5', animated: true } },
    'STICKER',
    null,
    { animated: true },
  ],
  [
    {
      type: 'location',
      location: { latitude: 37.44, longitude: -122.16, name: 'Office', address: 'Main St 1' },
    },
    'LOCATION',
    'Office\nMain St 1',
    { location: { latitude: 37.44, longitude: -122.16, name: 'Office', address: 'Main St 1' } },
  ],
  [
    { type: 'location', location: { latitude: 1.5, longitude: 2 } },
    'LOCATION',
    '1.5, 2',
    { location: { latitude: 1.5, longitude: 2 } },
  ],
  [
    {
      type: 'contacts',
      contacts: [{ name: { formatted_name: 'Bo Li' }, phones: [{ phone: '+1 555 010 0077' }] }],
    },
    'CONTACTS',
    'Bo Li',
    { contacts: [{ name: { formatted_name: 'Bo Li' }, phones: [{ phone: '+1 555 010 0077' }] }] },
  ],
  [
    {
      type: 'order',
      order: {
        catalog_id: 'c',
        text: 'please',
        product_items: [{ product_retailer_id: 'mug', quantity: 2 }],
      },
    },
    'ORDER',
    'please\n2 × mug',
    { order: { catalog_id: 'c', items: [{ product_retailer_id: 'mug', quantity: 2 }] } },
  ],
  [
    { type: 'button', button: { payload: 'YES', text: 'Yes please' } },
    'INTERACTIVE',
    'Yes please',
    { reply: { kind: 'button', id: 'YES', title: 'Yes please' } },
  ],
  [
    {
      type: 'interactive',
      interactive: { type: 'button_reply', button_reply: { id: 'b1', title: 'Track' } },
    },
    'INTERACTIVE',
    'Track',
    { reply: { kind: 'button', id: 'b1', title: 'Track' } },
  ],
  [
    {
      type: 'interactive',
      interactive: { type: 'list_reply', list_reply: { id: 'r1', title: 'Row', description: 'First' } },
    },
    'INTERACTIVE',
    'Row',
    { reply: { kind: 'list', id: 'r1', title: 'Row', description: 'First' } },
  ],
  [
    {
      type: 'interactive',
      interactive: {
        type: 'nfm_reply',
        nfm_reply: { name: 'flow', body: 'Sent', response_json: '{"a":1}' },
      },
    },
    'INTERACTIVE',
    'Sent',
    { reply: { kind: 'form', name: 'flow', values: '{"a":1}' } },
  ],
  [
    // A kind that this version does not know, and that every object of JavaScript has a member of.
    { type: 'interactive', interactive: { type: 'constructor', constructor: { title: 'New' } } },
    'INTERACTIVE',
    'New',
    { reply: { kind: 'constructor', title: 'New' } },
  ],
  [
    { type: 'unsupported', errors: [{ code: 131051, title: 'Message type unknown' }] },
    'SYSTEM',
    'The customer sent a message of a kind that cannot be shown.',
    { unsupported: { code: 131051, title: 'Message type unknown' } },
  ],
  [
    { type: 'hologram', hologram: {} },
    'SYSTEM',
    'The customer sent a message of a kind that cannot be shown.',
    { unsupported: { type: 'hologram' } },
  ],
]

everyDatabase('Inbound messages', (server) => {
  it('the first message creates a contact and an open conversation', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({
        contacts: [buildCustomerProfile('15550100042', 'Ada', 'US.1349')],
        messages: [buildCustomerMessage('15550100042')],
      }),
    )
    const {
      data: [conversation],
    } = await scene.run('inbox_search_conversations')
    assert.deepEqual(
      [
        conversation.state,
        conversation.contact.name,
        conversation.contact.phone,
        conversation.unread_count,
        conversation.reply_status,
        conversation.window.open,
      ],
      ['open', 'Ada', '15550100042', 1, 'incoming_no_reply', true],
    )
    assert.deepEqual(
      [conversation.last_message.text, conversation.last_message.direction, conversation.last_message.status],
      ['hello', 'inbound', 'received'],
    )
    const contact = await scene.run('crm_get_contact', { contact_id: conversation.contact.id })
    assert.deepEqual(
      [contact.chatapp_user_id, contact.last_activity_at, contact.conversations.length],
      ['US.1349', conversation.last_message.created_at, 1],
    )
    assert.equal((await scene.run('crm_search_contacts', { query: 'ada' })).total, 1)
    assert.deepEqual(types(await scene.events()), [
      'contact.created/1',
      'conversation.created/1',
      'message.received/1',
    ])
    assert.deepEqual(
      (await scene.updates()).map((u) => [u.state, u.payload]),
      [['done', null]],
    )
  })

  it('every message type is stored with its text, content and media', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(
      scene.value({
        messages: messageCases.map(([part], n) =>
          buildCustomerMessage('15550100042', { ...part, timestamp: String(1_697_000_000 + n) }),
        ),
      }),
    )
    assert.deepEqual(
      (await scene.messages()).map((m) => [m.type, m.text, m.content]),
      messageCases.map(([, type, text, content]) => [type, text, content]),
    )
    const [conversation] = (await scene.run('inbox_search_conversations')).data
    assert.deepEqual([conversation.unread_count, (await scene.contacts()).length], [messageCases.length, 1])
    const listed = (
      await scene.run('inbox_list_messages', { conversation_id: conversation.id, limit: 50 })
    ).data.toReversed()
    assert.deepEqual(
      listed.map((m: { has_media: boolean }) => m.has_media),
      messageCases.map(([{ type }]) =>
        ['image', 'video', 'audio', 'document', 'sticker'].includes(type as string),
      ),
    )
    assert.deepEqual(listed[5].media, {
      content_type: 'application/pdf',
      file_name: 'bill.pdf',
      size: null,
      url: `${server().url}/v1/messages/${listed[5].id}/media`,
    })
  })

  it('a reply refers to the sent message', async () => {
    const scene = await createCustomerFixture(server())
    const sent = await insertSentMessage(scene, '+15550100042')
    await scene.deliver(
      scene.value({
        messages: [buildCustomerMessage('15550100042', { context: { from: '15550100001', id: sent.wamid } })],
      }),
    )
    await scene.deliver(
      scene.value({
        messages: [buildCustomerMessage('15550100042', { context: { id: 'wamid.of.another' } })],
      }),
    )
    assert.deepEqual(
      (await scene.messages())
        .filter((m) => m.direction === 'inbound')
        .map((m) => [m.type, m.text, m.reply_to_id]),
      [
        ['TEXT', 'hello', sent.id],
        ['TEXT', 'hello', null],
      ],
    )
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['done', 'done'],
    )
  })

  it('every spelling of its id names one message', async () => {
    const scene = await createCustomerFixture(server())
    const phone = '15550100042'
    const [received, sent] = ['3AB46A8635A5665F9DFB', 'B6F950D4E7861A37ED']
    const { id: sentId, wamid } = await insertSentMessage(scene, phone, {
      providerId: spellId(phone, sent, 'ours'),
    })
    assert.notEqual(wamid, spellId(phone, sent, 'ours'))
    // The customer's number, or the user id; by whom, as each of the two sees it; with and without the padding.
    const spell = [
      (id: string) => spellId(phone, id),
      (id: string) => spellId('CO.2177313826172406', id),
      (id: string) => spellId('CO.2177313826172406', id, 'ours'),
      (id: string) => spellId(phone, id, 'ours').replaceAll('=', ''),
    ] as const
    const say = (fields: WebhookPart) => scene.value({ messages: [buildCustomerMessage(phone, fields)] })
    for (const spelling of spell) await scene.deliver(say({ id: spelling(received) }))
    const [inbound] = (await scene.messages()).filter(({ direction }) => direction === 'inbound')
    for (const [i, spelling] of spell.entries()) {
      await scene.deliver(
        say({ text: { body: `reply ${i}` }, context: { id: spelling(sent) } }),
        say({ text: { body: `quote ${i}` }, context: { id: spelling(received) } }),
        say({ type: 'reaction', reaction: { message_id: spelling(sent), emoji: '👍' } }),
        say({
          type: 'edit',
          edit: {
            original_message_id: spelling(received),
            message: { type: 'text', text: { body: `edit ${i}` } },
          },
        }),
        scene.value({
          statuses: [
            {
              id: spelling(sent),
              status: ['sent', 'delivered', 'read', 'failed'][i],
              timestamp: toUnixSeconds(new Date().toISOString()),
              recipient_id: phone,
            },
          ],
        }),
      )
      const now = await scene.messages()
      assert.deepEqual(
        ['reply', 'quote'].map((kind) => now.find(({ text }) => text === `${kind} ${i}`)!.reply_to_id),
        [sentId, inbound!.id],
      )
      assert.deepEqual(
        now.filter(({ id }) => id === inbound!.id || id === sentId).map(({ text, status }) => [text, status]),
        [
          ['hi', ['sent', 'delivered', 'read', 'read'][i]],
          [`edit ${i}`, 'received'],
        ],
      )
    }
    await scene.deliver(say({ type: 'revoke', revoke: { original_message_id: spell[1](received) } }))
    const shown = await scene.run('inbox_list_messages', { conversation_id: inbound!.conversation_id })
    const find = (id: string) => shown.data.find((m: WebhookPart) => m['id'] === id)
    assert.ok(find(inbound!.id).deleted_at)
    assert.deepEqual((await scene.messages()).filter(({ direction }) => direction === 'inbound').length, 9)
    assert.deepEqual([...new Set((await scene.updates()).map(({ state }) => state))], ['done'])
  })

  it('a message of one number to another of the workspace is one of each', async () => {
    const scene = await createCustomerFixture(server())
    const other = await insertSecondChannel(scene)
    await insertSentMessage(scene, '15550100002', { providerId: spellId('15550100002', 'ABCDEF', 'ours') })
    const message = buildCustomerMessage('15550100001', { id: spellId('15550100001', 'ABCDEF') })
    const value = scene.value({ messages: [message] })
    Object.assign(value['value'] as WebhookPart, { metadata: { phone_number_id: other } })
    await scene.deliver(value)
    assert.deepEqual((await scene.messages()).map(({ direction }) => direction).toSorted(), [
      'inbound',
      'outbound',
    ])
  })

  it('a message from an ad opens the free entry window', async () => {
    const scene = await createCustomerFixture(server())
    const referral = {
      source_url: 'https://ad.example/1',
      source_id: '12',
      source_type: 'ad',
      headline: 'Sale',
      body: 'Half price',
      media_type: 'image',
      image_url: 'https://ad.example/1.jpg',
      ctwa_clid: 'clid',
    }
    await scene.deliver(scene.value({ messages: [buildCustomerMessage('15550100042', { referral })] }))
    assert.deepEqual((await scene.messages())[0]!.content, {
      ad: {
        kind: 'ad',
        id: '12',
        url: 'https://ad.example/1',
        headline: 'Sale',
        text: 'Half price',
        media_type: 'image',
        media_url: 'https://ad.example/1.jpg',
        click_id: 'clid',
      },
    })
    const [conversation] = (await scene.run('inbox_search_conversations')).data
    assert.equal(conversation.window.kind, 'free_entry')
  })

  it('notices are shown, and neither open nor count as anything', async () => {
    const scene = await createCustomerFixture(server())
    const policy = { name: 'Gold', enabled: true, channel_ids: null, hours: null }
    await insertSlaPolicy(
      server().db,
      scene.workspace.id,
      { ...policy, first_response_seconds: 60, next_response_seconds: 60, resolution_seconds: 600 },
      server().app.now(),
    )
    const notices: [WebhookPart, string][] = [
      [
        {
          type: 'system',
          system: { type: 'customer_identity_changed', customer: '15550100042', body: 'stop' },
        },
        'stop',
      ],
      [
        { type: 'system', system: { type: 'security_code_changed' } },
        'Notice of the provider: security code changed.',
      ],
      [{ type: 'request_welcome' }, 'The customer opened the chat.'],
      ...(['accept', 'reject'] as const).map((response): [WebhookPart, string] => [
        {
          type: 'interactive',
          interactive: { type: 'call_permission_reply', call_permission_reply: { response } },
        },
        `The customer ${response === 'accept' ? 'allows' : 'does not allow'} calls.`,
      ]),
    ]
    const deliverNotices = () =>
      scene.deliver(
        scene.value({
          messages: notices.map(([part], n) =>
            buildCustomerMessage('15550100042', { timestamp: String(1_697_000_000 + n), ...part }),
          ),
        }),
      )
    const showNotices = async () => {
      const { data } = await scene.run('inbox_search_conversations')
      assert.equal(data.length, 1)
      const listed = (await scene.run('inbox_list_messages', { conversation_id: data[0].id })).data
      return {
        conversation: data[0],
        notices: listed
          .filter((m: WebhookPart) => m['direction'] === 'system')
          .map((m: WebhookPart) => [m['status'], m['text']])
          .toReversed(),
      }
    }
    const texts = notices.map(([, text]) => ['system', text])
    await deliverNotices()
    // Nobody has written yet: a conversation is there for the notices alone.
    const first = await showNotices()
    assert.deepEqual(first.notices, texts)
    const { state, unread_count, reply_status, sla, window, last_message, waiting_since } = first.conversation
    assert.deepEqual(
      [state, unread_count, reply_status, sla, window.reason, last_message, waiting_since],
      ['closed', 0, null, null, 'never_opened', null, null],
    )
    await scene.deliver(scene.value({ messages: [buildCustomerMessage('15550100042')] }))
    const { conversation: open } = await showNotices()
    assert.deepEqual(
      [open.id, open.state, open.unread_count, open.sla.next_due_metric],
      [first.conversation.id, 'open', 1, 'first_response'],
    )
    await scene.run('inbox_close_conversation', { conversation_id: open.id })
    const { conversation: closed } = await showNotices()
    const contact = await scene.run('crm_get_contact', { contact_id: closed.contact.id })
    const before = (await scene.events()).length
    await deliverNotices()
    const again = await showNotices()
    assert.deepEqual(
      again.notices,
      [...texts, ...texts].toSorted((a, b) => texts.indexOf(a) - texts.indexOf(b)),
    )
    assert.deepEqual(again.conversation, closed)
    assert.deepEqual(await scene.run('crm_get_contact', { contact_id: contact.id }), contact)
    assert.equal((await scene.events()).length, before)
    assert.deepEqual(countOf(types(await scene.events()), 'message.received/1'), 1)
  })

  it('a message in a closed conversation reopens it as a new episode', async () => {
    const scene = await createCustomerFixture(server())
    await scene.deliver(scene.value({ messages: [buildCustomerMessage('15550100042')] }))
    const [{ id }] = (await scene.run('inbox_search_conversations')).data
    await scene.run('inbox_close_conversation', { conversation_id: id })
    await scene.deliver(
      scene.value({
        messages: [
          buildCustomerMessage('15550100042', { text: { body: 'again' } }),
          buildCustomerMessage('15550100042', { text: { body: 'and again' } }),
        ],
      }),
    )
    const [conversation, ...others] = (await scene.run('inbox_search_conversations')).data
    assert.deepEqual(
      [conversation.id, conversation.state, conversation.last_message.text, others.length],
      [id, 'open', 'and again', 0],
    )
    assert.deepEqual(
      (await scene.messages()).map((m) => m.episode),
      [1, 2, 2],
    )
    assert.equal(countOf(types(await scene.events()), 'conversation.reopened/1'), 1)
  })
})
