import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { insertSlaPolicy } from '../../storage/conversations/sla.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import {
  createCustomerFixture,
  buildCustomerMessage,
  type WebhookPart,
  buildCustomerProfile,
  createWamid,
  type CustomerFixture,
  insertSentMessage,
  toUnixSeconds,
} from '../provider/webhook-fixture.ts'
import { types, countOf } from './events.ts'

const NO_CARD = {
  company: null,
  title: null,
  emails: [],
  addresses: [],
  urls: [],
  birthday: null,
  own: false,
}

/** An id of the provider, which names the customer and who wrote the message beside the message itself. */
const spellId = (customer: string, id: string, by: 'ours' | 'theirs' = 'theirs'): string => {
  const ofUser = customer.includes('.')
  const head = [0x15, ofUser ? 0x14 : 0x02, 0x00, by === 'ours' ? 0x11 : 0x12, 0x18, id.length]
  const bytes = [0x1c, 0x18, customer.length, ...Buffer.from(customer), ...head, ...Buffer.from(id), 0x00]
  return `wamid.${Buffer.from(bytes).toString('base64')}`
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
    { content: { kind: 'audio', voice: true } },
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
    { content: { kind: 'sticker', animated: true } },
  ],
  [
    {
      type: 'location',
      location: { latitude: 37.44, longitude: -122.16, name: 'Office', address: 'Main St 1' },
    },
    'LOCATION',
    'Office\nMain St 1',
    {
      content: {
        kind: 'location',
        latitude: 37.44,
        longitude: -122.16,
        name: 'Office',
        address: 'Main St 1',
        url: null,
      },
    },
  ],
  [
    { type: 'location', location: { latitude: 1.5, longitude: 2 } },
    'LOCATION',
    '1.5, 2',
    { content: { kind: 'location', latitude: 1.5, longitude: 2, name: null, address: null, url: null } },
  ],
  [
    {
      type: 'contacts',
      contacts: [
        { name: { formatted_name: 'Bo Li' }, phones: [{ phone: '555 0100', wa_id: '15550100077' }] },
      ],
    },
    'CONTACTS',
    'Bo Li\n555 0100 (+15550100077)',
    {
      content: {
        kind: 'contacts',
        contacts: [
          {
            ...NO_CARD,
            name: 'Bo Li',
            phones: [{ phone: '555 0100', kind: null, chatapp_number: '15550100077' }],
          },
        ],
      },
    },
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
    {
      content: {
        kind: 'order',
        catalog_id: 'c',
        note: 'please',
        items: [{ product_id: 'mug', quantity: 2, price: null, currency: null }],
        totals: [],
      },
    },
  ],
  [
    { type: 'button', button: { payload: 'YES', text: 'Yes please' } },
    'INTERACTIVE',
    'Yes please',
    { content: { kind: 'button', payload: 'YES', title: 'Yes please' } },
  ],
  [
    {
      type: 'interactive',
      interactive: { type: 'button_reply', button_reply: { id: 'b1', title: 'Track' } },
    },
    'INTERACTIVE',
    'Track',
    { content: { kind: 'button', payload: 'b1', title: 'Track' } },
  ],
  [
    {
      type: 'interactive',
      interactive: { type: 'list_reply', list_reply: { id: 'r1', title: 'Row', description: 'First' } },
    },
    'INTERACTIVE',
    'Row\nFirst',
    { content: { kind: 'list', row_id: 'r1', title: 'Row', description: 'First' } },
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
    'a: 1',
    { content: { kind: 'form', name: 'flow', values: [{ field: 'a', label: 'a', value: '1' }] } },
  ],
  [
    // A kind that this version does not know, and that every object of JavaScript has a member of.
    { type: 'interactive', interactive: { type: 'constructor', constructor: { title: 'New' } } },
    'SYSTEM',
    'The customer sent a message of the kind interactive, which cannot be shown.\nconstructor\nNew',
    { content: { kind: 'unsupported', type: 'interactive', code: null, reason: null } },
  ],
  [
    { type: 'unsupported', errors: [{ code: 131051, title: 'Message type unknown' }] },
    'SYSTEM',
    'The customer sent a message, which cannot be shown. Message type unknown',
    { content: { kind: 'unsupported', type: null, code: 131051, reason: 'Message type unknown' } },
  ],
  [
    { type: 'hologram', hologram: {} },
    'SYSTEM',
    'The customer sent a message of the kind hologram, which cannot be shown.',
    { content: { kind: 'unsupported', type: 'hologram', code: null, reason: null } },
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

  it('what a colleague answers in the phone app counts as an answer, with its edits and reactions', async () => {
    const scene = await createCustomerFixture(server())
    const [asked, answered] = ['1697000000', '1697000060']
    await scene.deliver(
      scene.value({ messages: [buildCustomerMessage('15550100042', { timestamp: asked })] }),
    )
    const echo = (fields: WebhookPart) => ({
      ...scene.value({
        contacts: [buildCustomerProfile('15550100042', 'Ada', 'US.3')],
        message_echoes: [
          { ...buildCustomerMessage('15550100001', fields), to: '15550100042', to_user_id: 'US.3' },
        ],
      }),
      field: 'smb_message_echoes',
    })
    const id = createWamid()
    await scene.deliver(echo({ id, timestamp: answered, text: { body: 'We open at 9' } }))
    const read = async () => {
      const { data } = await scene.run('inbox_search_conversations')
      assert.equal(data.length, 1)
      const [conversation] = data
      const messages = (await scene.run('inbox_list_messages', { conversation_id: conversation.id })).data
      return { conversation, messages }
    }
    const { conversation, messages } = await read()
    assert.deepEqual(
      [conversation.unread_count, conversation.reply_status, conversation.waiting_since],
      [0, 'outgoing_no_response', null],
    )
    assert.deepEqual(
      messages.map((m: WebhookPart) => [m['direction'], m['status'], m['text'], m['from'], m['phone_app']]),
      [
        ['outbound', 'sent', 'We open at 9', { staff_id: null, name: 'Phone app' }, true],
        ['inbound', 'received', 'hello', null, undefined],
      ],
    )
    const day = { from: '2023-10-11', to: '2023-10-11', timezone: 'UTC', medians: true, compare: true }
    const { data: rows } = await scene.run('reports_staff', day)
    assert.deepEqual(
      rows.map((row: WebhookPart) =>
        ['staff_id', 'name', 'conversations', 'replied', 'messages_sent', 'avg_first_response_seconds'].map(
          (name) => row[name],
        ),
      ),
      [[null, 'Phone app', 1, 1, 1, 60]],
    )
    assert.deepEqual(
      [rows[0].median_first_response_seconds, rows[0].sla_breaches.total, rows[0].closed],
      [60, 0, 0],
    )
    const summary = await scene.run('reports_workspace_summary', day)
    assert.deepEqual([summary.messages.sent, summary.conversations.median_first_response_seconds], [1, 60])
    const after = { ...day, from: '2023-10-12', to: '2023-10-12' }
    assert.deepEqual((await scene.run('reports_staff', after)).data, [])
    const later = '1697000120'
    await scene.deliver(
      echo({
        timestamp: later,
        type: 'edit',
        edit: { original_message_id: id, message: { type: 'text', text: { body: 'At 10' } } },
      }),
      echo({ timestamp: later, type: 'reaction', reaction: { message_id: id, emoji: '🕙' } }),
    )
    const [edited] = (await read()).messages
    assert.deepEqual(
      [edited.text, edited.reactions.map((r: WebhookPart) => [r['emoji'], r['from']])],
      ['At 10', [['🕙', 'staff']]],
    )
    await scene.deliver(echo({ timestamp: later, type: 'revoke', revoke: { original_message_id: id } }))
    assert.deepEqual([(await read()).messages[0].text, (await scene.contacts()).length], [null, 1])
    assert.deepEqual(
      types(await scene.events()).filter((type) => type.startsWith('message.')),
      [
        'message.received/1',
        'message.sent/1',
        'message.edited/1',
        'message.reaction_changed/1',
        'message.deleted/1',
      ],
    )
  })

  it('the history of a number that joins with its phone app is there, and is nothing to do', async () => {
    const scene = await createCustomerFixture(server())
    const phone = '15550100042'
    const past = (from: string, body: string, timestamp: string) =>
      buildCustomerMessage(from, { text: { body }, timestamp, history_context: { status: 'READ' } })
    const thread = {
      id: phone,
      context: { wa_id: phone, user_id: 'US.7', username: 'ada' },
      messages: [past(phone, 'Are you open?', '1697000000'), past('15550100001', 'Yes', '1697000060')],
    }
    const history = {
      ...scene.value({
        history: [{ metadata: { phase: 0, chunk_order: 1, progress: 100 }, threads: [thread] }],
      }),
      field: 'history',
    }
    await scene.deliver(history)
    await scene.deliver(history)
    const { data } = await scene.run('inbox_search_conversations')
    const [{ id, state, unread_count, reply_status, waiting_since, last_message }] = data
    assert.deepEqual(
      [data.length, state, unread_count, reply_status, waiting_since, last_message.text],
      [1, 'closed', 0, null, null, 'Yes'],
    )
    assert.deepEqual(
      (await scene.run('inbox_list_messages', { conversation_id: id })).data.map((m: WebhookPart) => [
        m['direction'],
        m['text'],
        m['created_at'],
      ]),
      [
        ['outbound', 'Yes', '2023-10-11T04:54:20.000Z'],
        ['inbound', 'Are you open?', '2023-10-11T04:53:20.000Z'],
      ],
    )
    assert.deepEqual(await scene.events(), [])
    await scene.deliver(scene.value({ messages: [buildCustomerMessage(phone)] }))
    assert.deepEqual(types(await scene.events()), ['conversation.reopened/1', 'message.received/1'])
  })

  it('a group is a conversation of its own, with the author on each message, and takes no reply', async () => {
    const scene = await createCustomerFixture(server())
    const say = (from: string, body: string, fields: WebhookPart = {}) =>
      scene.deliver(
        scene.value({
          contacts: [buildCustomerProfile(from, `Member ${from.at(-1)}`)],
          messages: [buildCustomerMessage(from, { text: { body }, ...fields })],
        }),
      )
    const group_id = 'Y2FwaV9ncm91cDox'
    await say('15550100041', 'in private')
    await say('15550100041', 'in the group', { group_id })
    await say('15550100042', 'stop', { group_id })
    const { data } = await scene.run('inbox_search_conversations')
    const group = data.find((one: WebhookPart) => one['group'])
    assert.deepEqual(
      data.map((c: WebhookPart & { contact: WebhookPart }) => [c['group'], c.contact?.['name'] ?? null]),
      [
        [{ id: group_id }, null],
        [undefined, 'Member 1'],
      ],
    )
    const { data: waiting } = await scene.run('inbox_queue')
    assert.deepEqual(
      waiting.map((row: WebhookPart) => [row['id'] === group.id, row['group']]),
      [
        [false, undefined],
        [true, { id: group_id }],
      ],
    )
    const { data: messages } = await scene.run('inbox_list_messages', { conversation_id: group.id })
    assert.deepEqual(
      messages.map((m: { author: WebhookPart; text: string }) => [m.author['name'], m.text]),
      [
        ['Member 2', 'stop'],
        ['Member 1', 'in the group'],
      ],
    )
    const [, second] = await scene.contacts()
    assert.deepEqual([second!.id, second!.dnd], [messages[0].author.contact_id, false])
    const reply = scene.run('messaging_send_reply', { conversation_id: group.id, text: 'Hi' })
    await assert.rejects(reply, /answered in the phone app/)
    await scene.run('crm_erase_contact', { contact_id: second!.id })
    await server().app.jobs.job('erasures').runOnce()
    const erased = (await scene.run('inbox_list_messages', { conversation_id: group.id })).data
    assert.deepEqual(
      erased.map((m: WebhookPart) => [m['text'], m['author']]),
      [
        [null, undefined],
        ['in the group', messages[1].author],
      ],
    )
    assert.deepEqual(
      (await scene.events())
        .filter(({ type }) => type === 'message.received/1')
        .map(({ data: d }) => d['message']!['contact_id']),
      [(await scene.contacts())[0]!.id, null, null],
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
        ad_id: '12',
        type: 'ad',
        url: 'https://ad.example/1',
        headline: 'Sale',
        text: 'Half price',
        media_url: 'https://ad.example/1.jpg',
        click_id: 'clid',
      },
    })
    const fromAd = (adId: string) => scene.run('inbox_search_conversations', { ad: adId })
    const [conversation] = (await fromAd('12')).data
    assert.deepEqual([conversation.window.kind, conversation.ad.headline], ['free_entry', 'Sale'])
    assert.deepEqual((await fromAd('1')).data, [])
    const [shown] = (await scene.run('inbox_list_messages', { conversation_id: conversation.id })).data
    assert.deepEqual([shown.ad.click_id, shown.content], ['clid', null])
  })

  it('what the text does not say is found, and numbers on cards are hidden from whom phones are', async () => {
    const scene = await createCustomerFixture(server())
    const card = {
      name: { formatted_name: 'Bo Li' },
      phones: [{ phone: '+1 555 010 0077', type: 'CELL', wa_id: '15550100077' }],
    }
    await scene.deliver(
      scene.value({
        messages: [
          buildCustomerMessage('15550100042', {
            type: 'button',
            button: { payload: 'CONFIRM_4711', text: 'Yes' },
          }),
          buildCustomerMessage('15550100042', { type: 'contacts', contacts: [card] }),
          buildCustomerMessage('15550100042', {
            context: { referred_product: { catalog_id: '19', product_retailer_id: 'MOKA-3' } },
          }),
        ],
      }),
    )
    const find = async (query: string) =>
      (await scene.run('inbox_search_messages', { query })).data.map((hit: WebhookPart) => hit['excerpt'])
    assert.deepEqual(await find('4711'), ['Yes\nCONFIRM_**4711**'])
    assert.deepEqual(await find('"moka 3"'), ['hello\n19\n**MOKA**-**3**'])
    const { key } = await scene.workspace.staff({ hide_phone_numbers: true })
    const blind = doAs(server(), key)
    const [conversation] = (await blind('inbox_search_conversations')).data
    const shown = (await blind('inbox_list_messages', { conversation_id: conversation.id })).data.find(
      ({ type }: WebhookPart) => type === 'CONTACTS',
    )
    assert.deepEqual(
      [shown.text, shown.content.contacts[0].phones],
      ['Bo Li\n+* *** *** *077', [{ phone: '+* *** *** *077', kind: 'CELL', chatapp_number: '********077' }]],
    )
    const event = (await scene.events()).find(({ data }) => data['message']?.['type'] === 'CONTACTS')!
    assert.deepEqual(event.data['message']!['content'], {
      kind: 'contacts',
      contacts: [
        {
          ...NO_CARD,
          name: 'Bo Li',
          phones: [{ phone: '+1 555 010 0077', kind: 'CELL', chatapp_number: '15550100077' }],
        },
      ],
    })
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
