import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { sql } from 'kysely'
import { deleteOldUpdates } from '../../server/jobs/retention.ts'
import { toEventTime } from '../../server/inbound/event-time.ts'
import { WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { everyDatabase } from '../doors.ts'
import {
  bodyOf,
  customerScene,
  messageOf,
  randomWamid,
  type Part,
  personOf,
  plantSent,
  post,
  secondsOf,
  signatureOf,
  verifyToken,
} from '../provider/bodies.ts'
import { startSharedServers } from '../servers.ts'
import { databases } from '../databases.ts'

const types = (events: { type: string }[]): string[] => events.map((e) => e.type)
const countOf = <T>(list: readonly T[], one: T): number => list.filter((item) => item === one).length

// It leaves nonsense among the updates, which are of no workspace.
everyDatabase(
  "The provider's webhook",
  (server) => {
    const ask = (query: string) => fetch(`${server().url}${WEBHOOK_PATH}?${query}`)

    it('answers the handshake with the challenge, to who knows the token', async () => {
      const right = await ask(`hub.mode=subscribe&hub.verify_token=${verifyToken}&hub.challenge=1158201444`)
      assert.deepEqual(
        [right.status, await right.text(), right.headers.get('content-type')],
        [200, '1158201444', 'text/plain; charset=utf-8'],
      )
      for (const query of [
        'hub.mode=subscribe&hub.verify_token=other&hub.challenge=1',
        `hub.mode=unsubscribe&hub.verify_token=${verifyToken}&hub.challenge=1`,
        `hub.verify_token=${verifyToken}`,
        '',
        `hub.mode=subscribe&hub.verify_token=${verifyToken.slice(0, -1)}&hub.challenge=1`,
      ])
        assert.equal((await ask(query)).status, 403, query)
      assert.equal((await fetch(`${server().url}${WEBHOOK_PATH}`, { method: 'DELETE' })).status, 405)
    })

    it('takes what is signed over its very bytes, and nothing else', async () => {
      const scene = await customerScene(server())
      const body = bodyOf(
        scene.account,
        scene.value({ messages: [messageOf('15550100042', { text: { body: 'Grüße ✨' } })] }),
      )
      assert.equal((await post(server(), body, {})).status, 401)
      const wrong = [
        '',
        'sha256=',
        signatureOf(body, 'other'),
        signatureOf(`${body} `),
        signatureOf(body).slice(7),
        signatureOf(body).replace('sha256', 'sha1'),
        `${signatureOf(body)}00`,
        `sha256=${'0'.repeat(64)}`,
      ]
      for (const signature of wrong)
        assert.equal(
          (await post(server(), body, { 'X-Hub-Signature-256': signature })).status,
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
          await post(server(), escaped, {
            'X-Hub-Signature-256': signatureOf(escaped).toUpperCase().replace('SHA256', 'sha256'),
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

    it('takes 3 MB and no more', async () => {
      const scene = await customerScene(server())
      const most = 3 * 1024 * 1024
      const body = bodyOf(
        scene.account,
        scene.value({ messages: [messageOf('15550100042', { text: { body: 'long' } })] }),
      )
      const whole = body + ' '.repeat(most - body.length)
      assert.equal((await post(server(), whole)).status, 200)
      assert.equal((await post(server(), `${whole} `)).status, 413)
      const stream = new ReadableStream({
        start: (to) => {
          to.enqueue(Buffer.from(`${whole} `))
          to.close()
        },
      })
      const chunked = await fetch(`${server().url}${WEBHOOK_PATH}`, {
        method: 'POST',
        body: stream,
        duplex: 'half',
        headers: { 'X-Hub-Signature-256': signatureOf(`${whole} `) },
      } as RequestInit)
      assert.equal(chunked.status, 413)
      await server().app.jobs.job('provider-updates').runOnce()
      assert.deepEqual(
        (await scene.messages()).map((m) => m.text),
        ['long'],
      )
    })

    it('counts what it does not understand, and answers that it has it', async () => {
      const scene = await customerScene(server())
      const counted = async () =>
        (await server().app.metrics.inbound.get()).values.find((v) => v.labels.outcome === 'not_understood')
          ?.value ?? 0
      const before = await counted()
      const odd = [
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
      for (const body of odd) assert.equal((await post(server(), body)).status, 200, body.slice(0, 50))
      assert.equal((await counted()) - before, odd.length)
      await scene.deliver(scene.value({ messages: [messageOf('15550100042')] }))
      assert.equal((await scene.messages()).length, 1)
    })

    it('keeps what is for a number of nobody, with its state', async () => {
      const scene = await customerScene(server())
      const value = {
        messaging_product: 'whatsapp',
        metadata: { phone_number_id: `99${scene.workspace.id}` },
        messages: [messageOf('15550100042')],
        statuses: [{ id: randomWamid(), status: 'sent', timestamp: '1698266945' }],
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

    it('never fails over what is signed, and goes on', async () => {
      const scene = await customerScene(server())
      const names = fc.constantFrom(
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
      const words = fc.oneof(
        fc.constantFrom(
          'text',
          'image',
          'reaction',
          'system',
          'user_changed_number',
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
      const { tree } = fc.letrec((tie) => ({
        tree: fc.oneof(
          { maxDepth: 4 },
          words,
          fc.double(),
          fc.constantFrom(1e300, -1, 2 ** 53, null, true),
          fc.array(tie('tree'), { maxLength: 3 }),
          fc.dictionary(fc.oneof(names, fc.string()), tie('tree'), { maxKeys: 6 }),
        ),
      }))
      const record = fc.dictionary(names, tree, { maxKeys: 8 })
      const message = fc.record(
        {
          id: fc.oneof(words, tree),
          from: fc.oneof(words, tree),
          type: words,
          timestamp: fc.oneof(words, tree),
          text: tree,
          image: tree,
          system: tree,
          reaction: tree,
          context: tree,
          referral: tree,
        },
        { requiredKeys: [] },
      )
      const value = fc.record(
        {
          metadata: fc.constant({ phone_number_id: scene.number }),
          contacts: fc.oneof(tree, fc.array(record, { maxLength: 2 })),
          messages: fc.oneof(tree, fc.array(message, { maxLength: 3 })),
          statuses: fc.oneof(tree, fc.array(record, { maxLength: 2 })),
          user_preferences: fc.array(record, { maxLength: 2 }),
          errors: tree,
          message_template_id: tree,
          event: words,
          display_phone_number: words,
          ban_info: tree,
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
      const change = fc.record({ field, value: fc.oneof(tree, value, value, value) })
      const whole = fc.oneof(
        tree,
        fc.record({
          entry: fc.array(
            fc.record({
              id: fc.oneof(fc.constant(scene.account), tree),
              time: fc.oneof(fc.integer(), tree),
              changes: fc.array(change, { maxLength: 4 }),
            }),
            { maxLength: 3 },
          ),
        }),
      )
      await fc.assert(
        fc.asyncProperty(whole, async (body) => {
          const { status } = await post(server(), JSON.stringify(body) ?? '')
          assert.ok(status === 200 || (status >= 400 && status < 500), String(status))
        }),
        { numRuns: 150 },
      )
      await server().app.jobs.job('provider-updates').runOnce()
      const { rows } = await sql<{
        kind: string
        payload: unknown
      }>`select kind, payload from provider_updates where state = 'failed' or (state = 'waiting' and kind = 'message')`.execute(
        server().db,
      )
      assert.deepEqual([...rows], [])
      await scene.deliver(
        scene.value({ messages: [messageOf('15550100077', { text: { body: 'still here' } })] }),
      )
      assert.equal((await scene.messages()).at(-1)!.text, 'still here')
    })
  },
  { dedicated: true },
)

everyDatabase('Messages of customers', (server) => {
  it('open a conversation with a contact, and are read as they came', async () => {
    const scene = await customerScene(server())
    await scene.deliver(
      scene.value({
        contacts: [personOf('15550100042', 'Ada', 'US.1349')],
        messages: [messageOf('15550100042')],
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

  it('are of every type that the provider has', async () => {
    const scene = await customerScene(server())
    const from = '15550100042'
    const cases: [Part, string, string | null, Part | null][] = [
      [
        { type: 'text', text: { body: 'hi' }, context: { forwarded: true } },
        'TEXT',
        'hi',
        { forwarded: 'once' },
      ],
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
    await scene.deliver(
      scene.value({
        messages: cases.map(([part], n) =>
          messageOf(from, { ...part, timestamp: String(1_697_000_000 + n) }),
        ),
      }),
    )
    assert.deepEqual(
      (await scene.messages()).map((m) => [m.type, m.text, m.content]),
      cases.map(([, type, text, content]) => [type, text, content]),
    )
    const [conversation] = (await scene.run('inbox_search_conversations')).data
    assert.deepEqual([conversation.unread_count, (await scene.contacts()).length], [cases.length, 1])
    const listed = (
      await scene.run('inbox_list_messages', { conversation_id: conversation.id, limit: 50 })
    ).data.toReversed()
    assert.deepEqual(
      listed.map((m: { has_media: boolean }) => m.has_media),
      cases.map(([{ type }]) => ['image', 'video', 'audio', 'document', 'sticker'].includes(type as string)),
    )
    assert.deepEqual(listed[5].media, {
      content_type: 'application/pdf',
      file_name: 'bill.pdf',
      size: null,
      url: `${server().url}/v1/messages/${listed[5].id}/media`,
    })
  })

  it('answer messages, by reply and by reaction; one that is taken back is none', async () => {
    const scene = await customerScene(server())
    const sent = await plantSent(scene, '+15550100042')
    await scene.deliver(
      scene.value({
        messages: [messageOf('15550100042', { context: { from: '15550100001', id: sent.wamid } })],
      }),
    )
    await scene.deliver(
      scene.value({
        messages: [
          messageOf('15550100042', { type: 'reaction', reaction: { message_id: sent.wamid, emoji: '👍' } }),
        ],
      }),
    )
    await scene.deliver(
      scene.value({
        messages: [
          messageOf('15550100042', { type: 'reaction', reaction: { message_id: sent.wamid, emoji: '' } }),
          messageOf('15550100042', { type: 'reaction', reaction: { message_id: sent.wamid } }),
        ],
      }),
    )
    await scene.deliver(
      scene.value({ messages: [messageOf('15550100042', { context: { id: 'wamid.of.another' } })] }),
    )
    assert.deepEqual(
      (await scene.messages())
        .filter((m) => m.direction === 'inbound')
        .map((m) => [m.type, m.text, m.reply_to_id]),
      [
        ['TEXT', 'hello', sent.id],
        ['TEXT', '👍', sent.id],
        ['TEXT', 'hello', null],
      ],
    )
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      Array(5).fill('done'),
    )
  })

  it('from an ad open the longer window', async () => {
    const scene = await customerScene(server())
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
    await scene.deliver(scene.value({ messages: [messageOf('15550100042', { referral })] }))
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

  it('reopen a closed conversation as a new episode', async () => {
    const scene = await customerScene(server())
    await scene.deliver(scene.value({ messages: [messageOf('15550100042')] }))
    const [{ id }] = (await scene.run('inbox_search_conversations')).data
    await scene.run('inbox_close_conversation', { conversation_id: id })
    await scene.deliver(
      scene.value({
        messages: [
          messageOf('15550100042', { text: { body: 'again' } }),
          messageOf('15550100042', { text: { body: 'and again' } }),
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

  it('that come twice, and 5,000 times, change nothing', async () => {
    const scene = await customerScene(server())
    const messages = Array.from({ length: 500 }, (_, n) =>
      messageOf(`155501${String(1000 + (n % 50))}0`.slice(0, 11), { text: { body: `n ${n}` } }),
    )
    const body = bodyOf(scene.account, scene.value({ messages }))
    assert.equal((await post(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    const look = async () => ({
      messages: await scene.messages(),
      contacts: await scene.contacts(),
      events: types(await scene.events()).length,
      updates: await scene.updates(),
      rows: (
        await sql`select xmin::text, ctid::text, * from provider_updates order by id`.execute(server().db)
      ).rows,
    })
    const before = await look()
    assert.deepEqual([before.messages.length, before.contacts.length], [500, 50])
    for (let n = 0; n < 10; n++) assert.equal((await post(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    assert.deepEqual(await look(), before)
    // Not even once its row is forgotten.
    await sql`delete from provider_updates`.execute(server().db)
    await scene.deliver(scene.value({ messages: messages.slice(0, 20) }))
    assert.deepEqual(
      [await scene.messages(), types(await scene.events()).length],
      [before.messages, before.events],
    )
  })

  it('keep the order in which they were written, whatever the order of arrival', async () => {
    const scene = await customerScene(server())
    const at = 1_790_000_000
    const said = ['one', 'two', 'three', 'four'].map((body, n) =>
      messageOf('15550100042', { text: { body }, timestamp: String(at + n * 60) }),
    )
    for (const n of [2, 0, 3, 1]) await scene.deliver(scene.value({ messages: [said[n]] }))
    assert.deepEqual(
      (await scene.messages()).map((m) => m.text),
      ['one', 'two', 'three', 'four'],
    )
    const [conversation] = (await scene.run('inbox_search_conversations')).data
    assert.deepEqual([conversation.last_message.text, conversation.unread_count], ['four', 4])
    assert.equal((await scene.contacts())[0]!.last_activity_at, new Date((at + 180) * 1000).toISOString())
  })

  it('are worked off unasked', async () => {
    const scene = await customerScene(server())
    assert.equal(
      (await post(server(), bodyOf(scene.account, scene.value({ messages: [messageOf('15550100042')] }))))
        .status,
      200,
    )
    const until = Date.now() + 10_000
    while ((await scene.messages()).length === 0 && Date.now() < until) await pause(20)
    assert.equal((await scene.messages()).length, 1)
  })

  it('that fail stop no other, leave nothing behind, and are tried again', async () => {
    const scene = await customerScene(server())
    await sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$`.execute(
      server().db,
    )
    await sql`create trigger refuse before insert on messages for each row when (new.text = 'poison') execute function refuse()`.execute(
      server().db,
    )
    const said = ['one', 'poison', 'two'].map((body, n) => messageOf(`1555010004${n}`, { text: { body } }))
    await scene.deliver(scene.value({ messages: said }))
    assert.deepEqual((await scene.messages()).map((m) => m.text).sort(), ['one', 'two'])
    assert.deepEqual(
      (await scene.updates()).map((u) => [u.state, u.attempts, u.payload === null]),
      [
        ['done', 0, true],
        ['waiting', 1, false],
        ['done', 0, true],
      ],
    )
    assert.deepEqual(
      [(await scene.contacts()).length, countOf(types(await scene.events()), 'contact.created/1')],
      [2, 2],
    )
    await sql`drop trigger refuse on messages`.execute(server().db)
    await sql`update provider_updates set next_attempt_at = now() where state = 'waiting' and subject = ${scene.number}`.execute(
      server().db,
    )
    await server().app.jobs.job('provider-updates').runOnce()
    assert.deepEqual(
      [
        (await scene.messages()).length,
        (await scene.contacts()).length,
        countOf(types(await scene.events()), 'message.received/1'),
      ],
      [3, 3, 3],
    )
  })

  it('of a full plan are not lost', async () => {
    const scene = await customerScene(server(), { contact_limit: 1 })
    await scene.run('crm_upsert_contact', { phone: '+15550100001' })
    await scene.deliver(scene.value({ messages: [messageOf('15550100042')] }))
    assert.deepEqual(
      [
        (await scene.contacts()).length,
        (await scene.messages()).length,
        (await scene.run('crm_search_contacts')).total,
      ],
      [2, 1, 2],
    )
  })

  it('are forgotten by their rows after eight days', async () => {
    const scene = await customerScene(server())
    await scene.deliver(scene.value({ messages: [messageOf('15550100042'), messageOf('15550100043')] }))
    await sql`update provider_updates set received_at = received_at - interval '8 days 1 minute' where id = (select min(id) from provider_updates where subject = ${scene.number})`.execute(
      server().db,
    )
    await deleteOldUpdates(server().app)
    assert.deepEqual([(await scene.updates()).length, (await scene.messages()).length], [1, 2])
  })
})

everyDatabase('Customers', (server) => {
  it('with a user id alone are contacts, and learn the phone when it is told', async () => {
    const scene = await customerScene(server())
    await scene.deliver(
      scene.value({
        contacts: [personOf(null, 'Ada', 'US.77')],
        messages: [messageOf(null, { from_user_id: 'US.77' })],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.phone, c.chatapp_user_id]),
      [['Ada', null, 'US.77']],
    )
    await scene.deliver(
      scene.value({
        contacts: [personOf('15550100042', 'Countess', 'US.77')],
        messages: [messageOf('15550100042', { from_user_id: 'US.77' })],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.phone, c.chatapp_user_id]),
      [['Ada', '15550100042', 'US.77']],
    )
    await scene.deliver(scene.value({ messages: [messageOf('15550100042')] }))
    assert.deepEqual(
      [
        (await scene.contacts()).length,
        (await scene.run('inbox_search_conversations')).data.length,
        (await scene.messages()).length,
      ],
      [1, 1, 3],
    )
    assert.equal((await scene.run('crm_search_contacts', { query: '0042' })).total, 1)
    assert.deepEqual(
      (await scene.events()).filter((e) => e.type === 'contact.updated/1').map((e) => e.data['changes']),
      [['phone']],
    )
  })

  it('who are known keep their name and learn their user id', async () => {
    const scene = await customerScene(server())
    await scene.run('crm_upsert_contact', { phone: '+15550100042', name: 'Mrs Lovelace' })
    await scene.run('crm_upsert_contact', { phone: '+15550100043' })
    await scene.deliver(
      scene.value({
        contacts: [personOf('15550100042', 'ada', 'US.1'), personOf('15550100043', ' Bo ', 'US.2')],
        messages: [messageOf('15550100042'), messageOf('15550100043', { from_user_id: 'US.2' })],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.name, c.chatapp_user_id]),
      [
        ['Mrs Lovelace', 'US.1'],
        ['Bo', 'US.2'],
      ],
    )
    // A user id that another contact has stays there.
    await scene.deliver(
      scene.value({
        contacts: [personOf('15550100099', 'Cy', 'US.1')],
        messages: [messageOf('15550100099')],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => [c.phone, c.chatapp_user_id]),
      [
        ['15550100042', 'US.1'],
        ['15550100043', 'US.2'],
      ],
    )
  })

  it('without any mark of who they are are kept for somebody to look at', async () => {
    const scene = await customerScene(server())
    await scene.deliver(
      scene.value({ messages: [messageOf(null), messageOf('*******0042'), messageOf('15550100042')] }),
    )
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['unmatched', 'unmatched', 'done'],
    )
    assert.equal((await scene.contacts()).length, 1)
  })

  it('stop marketing and ask for it again, in whatever order it arrives', async () => {
    const scene = await customerScene(server())
    const wish = (value: string, timestamp: number, waId = '15550100042') => ({
      field: 'user_preferences',
      value: {
        ...(scene.value({})['value'] as Part),
        contacts: [personOf(waId, 'Ada')],
        user_preferences: [
          { wa_id: waId, detail: 'User requested it', category: 'marketing_messages', value, timestamp },
        ],
      },
    })
    const dnd = async () => (await scene.contacts()).map((c) => c.dnd)
    await scene.deliver(wish('stop', 1_731_705_721))
    assert.deepEqual(await dnd(), [true])
    await scene.deliver(wish('resume', 1_731_705_700))
    assert.deepEqual(await dnd(), [true])
    await scene.deliver(wish('resume', 1_731_705_800))
    assert.deepEqual(await dnd(), [false])
    await scene.deliver(
      wish('stop', 1_731_705_900),
      wish('resume', 1_731_705_950),
      wish('stop', 1_731_706_000),
    )
    assert.deepEqual(await dnd(), [true])
    assert.deepEqual(
      (await scene.events())
        .filter((e) => e.type === 'contact.updated/1')
        .map((e) => e.data['contact']!['dnd']),
      [true, false, true, false, true],
    )
  })

  it('who change their number keep their conversation, unless somebody has it', async () => {
    const scene = await customerScene(server())
    await scene.deliver(scene.value({ messages: [messageOf('15550100042'), messageOf('15550100043')] }))
    const moved = (before: string, after: string) =>
      messageOf(before, {
        type: 'system',
        system: {
          body: `User A changed from ${before} to ${after}`,
          wa_id: after,
          type: 'user_changed_number',
        },
      })
    await scene.deliver(
      scene.value({
        messages: [
          messageOf('15550100088', { text: { body: 'new phone' } }),
          moved('15550100042', '15550100088'),
          moved('15550100043', '15550100088'),
          moved('15550100066', '15550100067'),
        ],
      }),
    )
    assert.deepEqual(
      (await scene.contacts()).map((c) => c.phone),
      ['15550100088', '15550100043'],
    )
    const messages = await scene.messages()
    assert.deepEqual(
      messages
        .map((m) => [m.direction, m.type, m.text])
        .filter(([direction]) => direction === 'system')
        .map(([, , text]) => text)
        .sort(),
      ['User A changed from 15550100042 to 15550100088', 'User A changed from 15550100043 to 15550100088'],
    )
    assert.equal(messages.find((m) => m.text === 'new phone')!.conversation_id, messages[0]!.conversation_id)
    // Nobody waits for an answer to that.
    assert.deepEqual(
      (await scene.run('inbox_search_conversations')).data.map((c: Part) => c['unread_count']).sort(),
      [1, 2],
    )
    const { key } = await scene.workspace.staff({ role: 'agent', hide_phone_numbers: true })
    const hidden = await fetch(`${server().url}/v1/conversations/${messages[0]!.conversation_id}/messages`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    assert.ok(!(await hidden.text()).includes('155501000'))
  })
})

everyDatabase('Statuses', (server) => {
  const status = (id: string, name: string, more: Part = {}) => ({
    id,
    status: name,
    timestamp: secondsOf(new Date().toISOString()),
    recipient_id: '15550100042',
    ...more,
  })

  it('are told in any order and counted once', async () => {
    const scene = await customerScene(server())
    const sent = await plantSent(scene, '+15550100042')
    for (const name of ['read', 'delivered', 'sent', 'read', 'delivered'])
      await scene.deliver(scene.value({ statuses: [status(sent.wamid, name)] }))
    const message = await scene.run('messaging_get_message', { message_id: sent.id })
    assert.equal(message.status, 'read')
    assert.ok(message.delivered_at && message.read_at)
    assert.equal(countOf(types(await scene.events()), 'message.read/1'), 1)
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['done', 'done', 'done'],
    )
  })

  it('as the provider wrote them (A9) find the message', async () => {
    const scene = await customerScene(server())
    const sent = await plantSent(scene, '+972987654321', {
      providerId: null,
      status: 'pending',
      reference: `ref_${randomWamid()}`,
    })
    const {
      rows: [{ reference }],
    } = (await sql<{
      reference: string
    }>`select reference from messages where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )) as unknown as { rows: [{ reference: string }] }
    const body = `{"object":"whatsapp_business_account","entry":[{"id":"5467539754836534","changes":[{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"972123456789","phone_number_id":"${scene.number}"},
      "contacts":[{"profile":{"name":"Test Name"},"wa_id":"972987654321","user_id":"US.13491208655302741918","parent_user_id":"US.ENT.11815799212886844830"}],
      "statuses":[{"id":"${sent.wamid}","status":"sent","timestamp":"1698266945","recipient_id":"972987654321","biz_opaque_callback_data":"${reference}","conversation":{"id":"7270...","expiration_timestamp":"1698339900","origin":{"type":"service"}},"pricing":{"billable":true,"pricing_model":"CBP","category":"service"}}]},"field":"messages"}]}]}`
    assert.equal((await post(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    assert.equal((await scene.run('messaging_get_message', { message_id: sent.id })).status, 'sent')
    assert.ok(types(await scene.events()).includes('message.sent/1'))
  })

  it('of a closed window and of stopped marketing are heeded', async () => {
    const scene = await customerScene(server())
    const failed = async (code: number) => {
      const sent = await plantSent(scene, '+15550100042')
      await scene.deliver(
        scene.value({
          statuses: [
            status(sent.wamid, 'failed', {
              errors: [
                {
                  code,
                  title: 'Re-engagement message',
                  error_data: { details: 'More than 24 hours have passed.' },
                },
              ],
            }),
          ],
        }),
      )
      return sent
    }
    const sent = await failed(131047)
    const message = await scene.run('messaging_get_message', { message_id: sent.id })
    assert.deepEqual(
      [message.status, message.error],
      ['failed', 'Re-engagement message: More than 24 hours have passed.'],
    )
    const {
      rows: [row],
    } = await sql<{
      window_corrected_at: string | null
    }>`select window_corrected_at from conversations where id = ${sent.conversationId}`.execute(server().db)
    assert.ok(row!.window_corrected_at)
    assert.deepEqual(
      (await scene.contacts()).map((c) => c.dnd),
      [false],
    )
    await failed(131050)
    assert.deepEqual(
      (await scene.contacts()).map((c) => c.dnd),
      [true],
    )
  })

  it("that come before their message wait for it; those of nobody's are set aside", async () => {
    const scene = await customerScene(server())
    const early = randomWamid()
    await scene.deliver(
      scene.value({ statuses: [status(early, 'delivered'), status(randomWamid(), 'delivered')] }),
    )
    assert.deepEqual(
      (await scene.updates()).map((u) => [u.state, u.attempts]),
      [
        ['waiting', 1],
        ['waiting', 1],
      ],
    )
    const sent = await plantSent(scene, '+15550100042')
    await sql`update messages set provider_id = ${early} where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )
    const due = () =>
      sql`update provider_updates set next_attempt_at = now() where state = 'waiting' and subject = ${scene.number}`.execute(
        server().db,
      )
    await due()
    await server().app.jobs.job('provider-updates').runOnce()
    assert.equal((await scene.run('messaging_get_message', { message_id: sent.id })).status, 'delivered')
    for (let n = 0; n < 8; n++) {
      await due()
      await server().app.jobs.job('provider-updates').runOnce()
    }
    assert.deepEqual(
      (await scene.updates()).map((u) => u.state),
      ['done', 'unmatched'],
    )
  })
})

everyDatabase('Templates and numbers', (server) => {
  const plantTemplate = async (
    workspaceId: string,
    account: string,
    providerId: string | null,
    status = 'PENDING',
  ) => {
    const now = server().app.now()
    await sql`
      insert into templates (workspace_id, account_id, provider_id, name, language, category, status, components, created_at, updated_at)
      values (${workspaceId}, ${account}, ${providerId}, 'abandoned_cart', 'en', 'MARKETING', ${status}, '[]', ${now}, ${now})`.execute(
      server().db,
    )
  }
  const templates = async (workspaceId: string) =>
    (
      await sql<Part>`select provider_id, status, category, rejection_reason, meta_errors from templates where workspace_id = ${workspaceId}`.execute(
        server().db,
      )
    ).rows

  it('a rejection as the provider wrote it (A10) is kept verbatim', async () => {
    const scene = await customerScene(server())
    await plantTemplate(scene.workspace.id, scene.account, null)
    const reason =
      'Your template has parameters placed next to each other (like {{1}}{{2}}) without text or punctuation between them.'
    const body = `{"object":"whatsapp_business_account","entry":[{"id":"${scene.account}","time":1751247548,"changes":[{"field":"message_template_status_update","value":{"event":"REJECTED","message_template_id":1689556908129835,"message_template_name":"abandoned_cart","message_template_language":"en","reason":"INVALID_FORMAT","message_template_category":"MARKETING",
      "rejection_info":{"reason":"${reason}","recommendation":"Separate parameters with descriptive text and ensure each parameter is clearly contextualized."}}}]}]}`
    for (let n = 0; n < 2; n++) assert.equal((await post(server(), body)).status, 200)
    await server().app.jobs.job('provider-updates').runOnce()
    const [template] = await templates(scene.workspace.id)
    assert.deepEqual(
      [
        template!['provider_id'],
        template!['status'],
        template!['rejection_reason'],
        (template!['meta_errors'] as Part)['reason'],
      ],
      ['1689556908129835', 'REJECTED', reason, 'INVALID_FORMAT'],
    )
    const [event, ...others] = await scene.events()
    assert.deepEqual(
      [
        event!.type,
        event!.data['template']!['status'],
        event!.data['template']!['previous_status'],
        event!.data['template']!['rejection_reason'],
        others.length,
      ],
      ['template.status_changed/1', 'REJECTED', 'PENDING', reason, 0],
    )
  })

  it('reviews count by their time and not by their arrival', async () => {
    const scene = await customerScene(server())
    await plantTemplate(scene.workspace.id, scene.account, '9007199254740993')
    const entry = (time: number, event: string, more: Part = {}) => ({
      id: scene.account,
      time,
      changes: [
        {
          field: 'message_template_status_update',
          value: {
            event,
            message_template_id: 'LONG',
            message_template_name: 'abandoned_cart',
            message_template_language: 'en',
            reason: 'NONE',
            ...more,
          },
        },
      ],
    })
    const say = async (...entries: Part[]) => {
      // An integer that JavaScript would round.
      assert.equal(
        (
          await post(
            server(),
            JSON.stringify({ object: 'whatsapp_business_account', entry: entries }).replaceAll(
              '"LONG"',
              '9007199254740993',
            ),
          )
        ).status,
        200,
      )
      await server().app.jobs.job('provider-updates').runOnce()
      return (await templates(scene.workspace.id))[0]!
    }
    assert.equal(
      (await say(entry(200, 'PAUSED', { other_info: { title: 'FIRST_PAUSE', description: 'Low quality' } })))[
        'rejection_reason'
      ],
      'Low quality',
    )
    assert.equal((await say(entry(100, 'APPROVED')))['status'], 'PAUSED')
    assert.deepEqual(await say(entry(300, 'APPROVED')), {
      provider_id: '9007199254740993',
      status: 'APPROVED',
      category: 'MARKETING',
      rejection_reason: null,
      meta_errors: null,
    })
    assert.equal((await say(entry(500, 'APPROVED'), entry(400, 'DISABLED')))['status'], 'APPROVED')
    assert.equal(
      (
        await say({
          id: scene.account,
          time: 600,
          changes: [
            {
              field: 'template_category_update',
              value: { message_template_id: 'LONG', previous_category: 'MARKETING', new_category: 'UTILITY' },
            },
          ],
        })
      )['category'],
      'UTILITY',
    )
    // Another account's template is not touched by its own id.
    await say({ ...entry(700, 'REJECTED'), id: '1' })
    assert.equal((await templates(scene.workspace.id))[0]!['status'], 'APPROVED')
  })

  it('a number that is flagged, banned and given back shows it on its channel', async () => {
    const scene = await customerScene(server())
    const channel = async () => {
      const [first] = (await scene.run('workspace_channels')).data
      return [first.status, first.quality_rating]
    }
    let time = 100
    const say = async (field: string, value: Part) => {
      assert.equal(
        (
          await post(
            server(),
            JSON.stringify({
              object: 'whatsapp_business_account',
              entry: [{ id: scene.account, time: time++, changes: [{ field, value }] }],
            }),
          )
        ).status,
        200,
      )
      await server().app.jobs.job('provider-updates').runOnce()
      return await channel()
    }
    assert.deepEqual(
      await say('phone_number_quality_update', {
        display_phone_number: '+1 555-010-0001',
        event: 'FLAGGED',
        current_limit: 'TIER_1K',
      }),
      ['connected', 'RED'],
    )
    assert.deepEqual(
      await say('account_update', {
        event: 'DISABLED_UPDATE',
        ban_info: { waba_ban_state: 'DISABLE', waba_ban_date: 'today' },
      }),
      ['disconnected', 'RED'],
    )
    assert.deepEqual(
      await say('account_update', { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'REINSTATE' } }),
      ['connected', 'RED'],
    )
    assert.deepEqual(
      await say('phone_number_quality_update', { display_phone_number: '15550109999', event: 'UNFLAGGED' }),
      ['connected', 'RED'],
    )
    assert.deepEqual(
      (await scene.events()).map((e) => [
        e.type,
        e.data['channel']!['status'],
        e.data['channel']!['previous_status'],
        e.data['channel']!['quality_rating'],
      ]),
      [
        ['channel.status_changed/1', 'connected', 'connected', 'RED'],
        ['channel.status_changed/1', 'disconnected', 'connected', 'RED'],
        ['channel.status_changed/1', 'connected', 'disconnected', 'RED'],
      ],
    )
  })
})

it('The moment of what is told in seconds is the latest that it may mean, if it came promptly', () => {
  const received = '2026-10-01T09:30:05.400Z'
  for (const [told, moment] of [
    ['2026-10-01T09:30:05Z', received],
    ['2026-10-01T09:30:04Z', '2026-10-01T09:30:04.999Z'],
    ['2026-10-01T09:00:00Z', '2026-10-01T09:00:00.000Z'],
    ['2026-10-01T09:31:00Z', received],
  ]) {
    assert.equal(toEventTime(secondsOf(told!), received), moment)
    assert.equal(toEventTime(Number(secondsOf(told!)), received), moment)
  }
  for (const odd of [undefined, null, '', 'soon', '-5', {}, Infinity])
    assert.equal(toEventTime(odd, received), received)
})

it(
  'Several servers work off the same updates once, and make one contact of one customer',
  { skip: !databases.includes('postgresql') },
  async () => {
    const { servers, close } = await startSharedServers(3)
    try {
      const scene = await customerScene(servers[0]!)
      const people = Array.from({ length: 12 }, (_, n) => ({
        phone: n % 3 === 2 ? null : `155501002${String(n).padStart(2, '0')}`,
        userId: `US.${n}`,
      }))
      const sent = await Promise.all(Array.from({ length: 10 }, () => plantSent(scene, '+15550100999')))
      const messages = people.flatMap(({ phone, userId }) =>
        Array.from({ length: 20 }, (_, n) =>
          messageOf(phone, {
            from_user_id: userId,
            text: { body: `${userId} ${n}` },
            timestamp: String(1_790_000_000 + n),
          }),
        ),
      )
      const statuses = sent.flatMap(({ wamid }) =>
        ['sent', 'delivered', 'read'].map((name) => ({ id: wamid, status: name, timestamp: '1790000000' })),
      )
      // Every body goes to every server, in parts that are shuffled.
      const parts = [
        ...messages.map((m) => ({
          messages: [m],
          contacts: [
            personOf(
              ((m as Part)['from'] as string) ?? null,
              undefined,
              (m as Part)['from_user_id'] as string,
            ),
          ],
        })),
        ...statuses.map((s) => ({ statuses: [s] })),
      ]
      const shuffled = parts.toSorted(
        (a, b) => ((JSON.stringify(a).length * 7919) % 101) - ((JSON.stringify(b).length * 7919) % 101),
      )
      const bodies = Array.from({ length: 30 }, (_, n) =>
        bodyOf(
          scene.account,
          ...shuffled.filter((_part, i) => i % 30 === n).map((part) => scene.value(part)),
        ),
      )
      await Promise.all(
        servers.flatMap((server) =>
          bodies.map(async (body) => assert.equal((await post(server, body)).status, 200)),
        ),
      )
      for (let left = -1; left !== 0;) {
        await Promise.all(servers.map((server) => server.app.jobs.job('provider-updates').runOnce()))
        left = Number(
          (
            await sql<{
              n: string
            }>`select count(*) as n from provider_updates where state = 'waiting' and next_attempt_at <= now()`.execute(
              servers[0]!.db,
            )
          ).rows[0]!.n,
        )
      }
      assert.deepEqual([...new Set((await scene.updates()).map((u) => u.state))], ['done'])
      assert.equal((await scene.contacts()).length, people.length + 1)
      const inbound = (await scene.messages()).filter((m) => m.direction === 'inbound')
      assert.equal(inbound.length, messages.length)
      assert.equal(new Set(inbound.map((m) => m.conversation_id)).size, people.length)
      const seen = types(await scene.events())
      assert.deepEqual(
        ['message.received/1', 'message.delivered/1', 'message.read/1', 'conversation.created/1']
          .map((type) => countOf(seen, type))
          .map((n, i) => (i === 1 ? n <= 10 : n)),
        [messages.length, true, 10, people.length],
      )
      const { data } = await scene.run('inbox_search_conversations', { limit: 100 })
      assert.deepEqual(
        data
          .filter((c: Part) => c['unread_count'] !== 0)
          .map((c: { unread_count: number; last_message: { text: string } }) => [
            c.unread_count,
            c.last_message.text.split(' ')[1],
          ]),
        people.map(() => [20, '19']),
      )
    } finally {
      await close()
    }
  },
)
