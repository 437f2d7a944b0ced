import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { createChannel, updateChannel, updateStaff } from '../../storage/workspace/admin.ts'
import { insertMessages } from '../../storage/messages/messages.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { inChangeContext, plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'
import { createSandboxDriver, generatePhone, listEmittedEventTypes, summarizeReply } from './fixtures.ts'
import { createReplyScene } from './replies.ts'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { applyStatus, type MessageStatusUpdate } from '../../server/domains/messaging/message-status.ts'
import type { TableRow } from '../../storage/database.ts'
import { createTeamWithMembers, insertQuickMessageRow } from './quick-messages.ts'

const confirm = { confirm: 'send' }

/** Generates status updates of a message, in seconds around its creation. */
const createStatusUpdates = (providerId: string, at: (seconds: number) => string) => {
  const failure: MessageStatusUpdate = {
    providerId,
    status: 'failed',
    at: at(7),
    error: { code: 131026, title: 'Message undeliverable', details: null },
  }
  const update: fc.Arbitrary<MessageStatusUpdate> = fc.record({
    providerId: fc.constant(providerId),
    status: fc.constantFrom('sent' as const, 'delivered' as const, 'read' as const),
    at: fc.integer({ min: -5, max: 50 }).map(at),
  })
  return { update, failure }
}

const toFinalStatus = (statuses: readonly string[], fails: boolean): string => {
  if (statuses.includes('read')) return 'read'
  if (fails) return 'failed'
  return statuses.includes('delivered') ? 'delivered' : 'sent'
}

/** Asserts the status and the times of a message after all its updates. */
const assertFinalStatus = (
  row: TableRow<'messages'>,
  successes: readonly MessageStatusUpdate[],
  fails: boolean,
): void => {
  const statuses = successes.map(({ status }) => status)
  assert.equal(row.status, toFinalStatus(statuses, fails))
  assert.equal(row.delivered_at !== null, statuses.includes('read') || statuses.includes('delivered'))
  assert.equal(row.failed_at !== null, row.status === 'failed')
  for (const time of [row.delivered_at, row.read_at, row.sent_at])
    assert.ok(time === null || time >= row.created_at)
}

everyDoor('Replies', (test) => {
  test('a reply is sent while the window is open, and rejected 25 hours later', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    const sandbox = createSandboxDriver(server, workspace)
    const phone = generatePhone()
    await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Is my order on its way?' })
    const [conversation] = (await call('inbox_search_conversations')).body.data
    const input = { conversation_id: conversation.id, text: 'It arrives today.' }

    const dryRun = await call('messaging_send_reply', { ...input, dry_run: true })
    assert.deepEqual(
      [
        dryRun.status,
        dryRun.body.dry_run,
        dryRun.body.message.id,
        dryRun.body.conversation_id,
        dryRun.body.message.text,
      ],
      [201, true, null, conversation.id, input.text],
    )
    assert.deepEqual(await sandbox.sent(phone), [])
    assert.equal((await call('messaging_send_reply', input)).status, 428)
    const sent = await call('messaging_send_reply', input, {
      ...confirm,
      idempotencyKey: `reply-${door.name}-${workspace.id}`,
    })
    if (door.confirms) {
      assert.equal(sent.status, 201)
      const replayed = await call('messaging_send_reply', input, {
        ...confirm,
        idempotencyKey: `reply-${door.name}-${workspace.id}`,
      })
      assert.equal(replayed.text, sent.text)
      const [posted, ...others] = await sandbox.sent(phone)
      assert.deepEqual(
        [posted!.type, posted!['text'], others],
        ['text', { body: input.text, preview_url: false }, []],
      )
      await server.settle()
      assert.equal(
        (await call('messaging_get_message', { message_id: sent.body.message.id })).body.status,
        'delivered',
      )
      await sandbox.status(sent.body.message.id, 'read')
      const read = (await call('messaging_get_message', { message_id: sent.body.message.id })).body
      assert.ok(read.status === 'read' && read.delivered_at !== null && read.read_at !== null)
      const after = (await call('inbox_get_conversation', { conversation_id: conversation.id })).body
      assert.deepEqual(
        [after.reply_status, after.unread_count, after.assignee, after.last_message.id],
        ['outgoing_no_response', 0, null, sent.body.message.id],
      )
    }

    await sandbox.advance('25h')
    const rejected = await call('messaging_send_reply', { ...input, dry_run: true })
    const { window } = (await call('inbox_get_conversation', { conversation_id: conversation.id })).body
    assert.deepEqual(
      [rejected.status, rejected.body.code, rejected.body.window],
      [409, 'window_closed', window],
    )
    assert.deepEqual([window.open, window.reason], [false, 'expired'])
  })

  test('external ids are stored with a send, found by, and taken once', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    const sandbox = createSandboxDriver(server, workspace)
    const run = doAs(server, workspace.owner.key)
    const phone = generatePhone()
    await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Is my order on its way?' })
    const [conversation] = (await run('inbox_search_conversations')).data
    const input = { conversation_id: conversation.id, text: 'It is.', external_id: 'order/7' }

    const rehearsed = await call('messaging_send_reply', { ...input, dry_run: true })
    assert.deepEqual([rehearsed.status, rehearsed.body.message.external_id], [201, 'order/7'])
    assert.equal((await call('messaging_get_message', { external_id: 'order/7' })).status, 404)
    // MCP cannot confirm: another door sends.
    const send = door.confirms
      ? call
      : async (op: string, body: object) => ({ status: 201, body: await run(op, { ...body }) })
    const options = { ...confirm, idempotencyKey: `external-${door.name}-${workspace.id}` }
    const sent = await send('messaging_send_reply', input, options)
    assert.deepEqual([sent.status, sent.body.message.external_id], [201, 'order/7'])
    const { id } = sent.body.message
    if (door.confirms) assert.equal((await call('messaging_send_reply', input, options)).body.message.id, id)
    const read = await call('messaging_get_message', { external_id: 'order/7' })
    assert.deepEqual([read.status, read.body.id, read.body.text], [200, id, 'It is.'])
    assert.equal((await call('messaging_get_message', { message_id: id })).body.external_id, 'order/7')

    const again = await call('messaging_send_reply', { ...input, text: 'Once more.', dry_run: true })
    assert.deepEqual([again.status, again.body.reason], [409, 'external_id_taken'])
    assert.match(
      again.body.detail,
      new RegExp(`^Message ${id} has the external id order/7\\. Nothing was sent\\.`),
    )
    if (door.confirms)
      assert.equal((await call('messaging_send_reply', { ...input, text: 'Again.' }, confirm)).status, 409)
    assert.equal((await sandbox.sent(phone)).length, 1)
    const events = (await run('events_list', { types: ['message.sent/1'] })).data
    assert.deepEqual(
      events.map(({ data }: any): unknown => data.message.external_id),
      ['order/7'],
    )
    // Staff without access to the channel are told of no message.
    const limited = doAs(server, (await workspace.staff({ channel_ids: ['999999'] })).key)
    await assert.rejects(limited('messaging_get_message', { external_id: 'order/7' }), /No message with the/)
  })
})

const CHOICES = [
  {
    interactive: {
      kind: 'buttons',
      buttons: [{ title: 'Yes', id: 'yes-1' }, { title: 'No 🙈' }],
      header: 'Delivery',
      footer: 'Ada & Co.',
    },
    posted: {
      type: 'button',
      header: { type: 'text', text: 'Delivery' },
      footer: { text: 'Ada & Co.' },
      action: {
        buttons: [
          { type: 'reply', reply: { id: 'yes-1', title: 'Yes' } },
          { type: 'reply', reply: { id: 'No 🙈', title: 'No 🙈' } },
        ],
      },
    },
  },
  {
    interactive: {
      kind: 'rows',
      button: 'Choose',
      rows: [
        { title: 'Today', id: 'd0', description: 'Until 18:00', section: 'Soon' },
        { title: 'Friday', section: 'Later' },
        { title: 'Tomorrow', section: 'Soon' },
      ],
    },
    posted: {
      type: 'list',
      action: {
        button: 'Choose',
        sections: [
          {
            title: 'Soon',
            rows: [
              { id: 'd0', title: 'Today', description: 'Until 18:00' },
              { id: 'Tomorrow', title: 'Tomorrow' },
            ],
          },
          { title: 'Later', rows: [{ id: 'Friday', title: 'Friday' }] },
        ],
      },
    },
  },
  {
    interactive: { kind: 'link', title: 'Track it', url: 'https://shop.example.com/t?id=1' },
    posted: {
      type: 'cta_url',
      action: {
        name: 'cta_url',
        parameters: { display_text: 'Track it', url: 'https://shop.example.com/t?id=1' },
      },
    },
  },
  {
    interactive: { kind: 'location_request' },
    posted: { type: 'location_request_message', action: { name: 'send_location' } },
  },
]

everyDoor('Replies that can be tapped', (test) => {
  test('are shown as they were sent, and reach the provider in its form', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    const { id, phone, sandbox, reply, run } = await createReplyScene(server, workspace)
    for (const { interactive, posted } of CHOICES) {
      const input = { conversation_id: id, text: 'When shall we come?', interactive }
      const dry = await call('messaging_send_reply', { ...input, dry_run: true })
      assert.deepEqual([dry.status, dry.body.message.content], [201, interactive], dry.text)
      const sent = door.confirms ? await call('messaging_send_reply', input, confirm) : await reply(input)
      assert.deepEqual(
        [sent.status, sent.body.message.type, sent.body.message.text],
        [201, 'INTERACTIVE', input.text],
      )
      assert.deepEqual((await sandbox.sent(phone)).at(-1)!['interactive'], {
        body: { text: input.text },
        ...posted,
      })
      const [shown] = (await call('inbox_list_messages', { conversation_id: id, limit: 1 })).body.data
      assert.deepEqual(shown.content, interactive)
    }
    const [event] = (await run('events_list', { types: ['message.sent/1'] })).data
    assert.deepEqual(event.data.message.content, CHOICES[0]!.interactive)
  })

  test('are saved, and sent with the values of the customer', async ({ server, workspace, call, door }) => {
    const { id, phone, sandbox, run } = await createReplyScene(server, workspace)
    const { interactive, posted } = CHOICES[0]!
    const saved = await call('messaging_create_quick_message', {
      code: 'delivery',
      type: 'INTERACTIVE',
      text: 'May we come today, {{contact.name}}?',
      interactive,
    })
    assert.deepEqual(
      [saved.status, saved.body.type, saved.body.interactive, saved.body.can_edit],
      [201, 'INTERACTIVE', interactive, false],
    )
    const { data } = (await call('messaging_list_quick_messages', { type: 'INTERACTIVE' })).body
    assert.deepEqual(data[0].interactive, interactive)
    const input = { conversation_id: id, quick_message_id: saved.body.id }
    const sent = door.confirms
      ? (await call('messaging_send_reply', input, confirm)).body
      : await run('messaging_send_reply', input)
    assert.deepEqual([sent.message.text, sent.message.content], ['May we come today, Ada?', interactive])
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['interactive'], {
      body: { text: 'May we come today, Ada?' },
      ...posted,
    })
  })
})

everyDatabase('Replies', (server) => {
  const createScene = () => createReplyScene(server())

  it('content: text and each type of media, as a reply to a message', async () => {
    const { reply, sandbox, phone, run, id } = await createScene()
    await sandbox.say({ from: `+${phone}`, text: 'Which one?' })
    const [question] = (await run('inbox_list_messages', { conversation_id: id })).data
    const link = 'https://files.example.com/a'
    const cases = [
      [{ text: 'Hello 👋\nthere' }, { text: { body: 'Hello 👋\nthere', preview_url: false } }],
      [{ media_url: link, type: 'IMAGE', caption: 'Look' }, { image: { link, caption: 'Look' } }],
      [{ media_url: link, type: 'VIDEO', caption: '  ' }, { video: { link } }],
      [{ media_url: link, type: 'AUDIO' }, { audio: { link } }],
      [
        { media_url: link, type: 'DOCUMENT', caption: 'Bill', file_name: 'bill.pdf' },
        { document: { link, caption: 'Bill', filename: 'bill.pdf' } },
      ],
      [{ media_url: link, type: 'STICKER' }, { sticker: { link } }],
    ] as const
    for (const [input, expected] of cases) {
      const { body, status } = await reply({ ...input, reply_to_id: question.id })
      assert.equal(status, 201, JSON.stringify(body))
      const posted = (await sandbox.sent(phone)).at(-1)!
      const type = Object.keys(expected)[0]!
      assert.deepEqual(
        [posted.type, posted[type], posted['context']],
        [
          type,
          Object.values(expected)[0],
          { message_id: (posted['context'] as { message_id: string }).message_id },
        ],
      )
      const { message } = body
      assert.deepEqual(
        [message.type, message.reply_to_id, message.has_media, message.text],
        [
          type.toUpperCase(),
          question.id,
          'media_url' in input,
          'text' in input
            ? input.text
            : 'caption' in input && input.caption.trim() !== ''
              ? input.caption
              : null,
        ],
      )
      assert.equal(message.media?.url ?? null, 'media_url' in input ? link : null)
      assert.deepEqual((await run('messaging_get_message', { message_id: message.id })).text, message.text)
    }
  })

  it('a file at an address in any script is found through its message', async () => {
    const { reply, workspace } = await createScene()
    const link = 'https://例え.example.com/日本/Übung 1.jpg?x=%0d%0aX:1'
    const { body } = await reply({ media_url: link, type: 'IMAGE' })
    const response = await fetch(`${server().url}/v1/messages/${body.message.id}/media`, {
      headers: { Authorization: `Bearer ${workspace.owner.key}` },
      redirect: 'manual',
    })
    assert.equal(response.status, 302, await response.text())
    assert.equal(
      response.headers.get('location'),
      'https://xn--r8jz45g.example.com/%E6%97%A5%E6%9C%AC/%C3%9Cbung%201.jpg?x=%0d%0aX:1',
    )
  })

  const invalidInteractive: [object, ...string[]][] = [
    [{ kind: 'poll' }, '#/interactive/kind invalid_value'],
    [{ kind: 'buttons', buttons: [] }, '#/interactive/buttons too_short'],
    [{ kind: 'buttons', buttons: [...'abcd'].map((title) => ({ title })) }, '#/interactive/buttons too_long'],
    [
      { kind: 'buttons', buttons: [{ title: 'a' }, { title: 'b', id: 'a' }] },
      '#/interactive/buttons duplicate',
    ],
    [
      {
        kind: 'buttons',
        buttons: [
          { title: 'a', id: '1' },
          { title: 'a', id: '2' },
        ],
      },
      '#/interactive/buttons duplicate',
    ],
    [{ kind: 'buttons', buttons: [{ title: 'a'.repeat(21) }] }, '#/interactive/buttons/0/title too_long'],
    [{ kind: 'buttons', buttons: [{ title: 'a\nb' }] }, '#/interactive/buttons/0/title invalid_format'],
    [
      { kind: 'rows', button: 'a', rows: [{ title: 'a' }, { title: 'b', section: 'c' }] },
      '#/interactive/rows required',
    ],
    [
      { kind: 'rows', button: 'a', rows: Array.from({ length: 11 }, (_, n) => ({ title: `${n}` })) },
      '#/interactive/rows too_long',
    ],
    [
      { kind: 'rows', button: 'a', rows: [{ title: 'a', description: 'b'.repeat(73) }] },
      '#/interactive/rows/0/description too_long',
    ],
    [{ kind: 'link', title: 'a', url: 'javascript:alert(1)' }, '#/interactive/url invalid_format'],
    [
      { kind: 'link', title: 'a', url: 'https://a.example', footer: 'b'.repeat(61) },
      '#/interactive/footer too_long',
    ],
    [{ kind: 'location_request', footer: 'a' }, '#/interactive/footer unknown_field'],
  ]

  it('input: exactly one content, and only the fields that belong to it', async () => {
    const { workspace, reply, call, id, channelId } = await createScene()
    const link = 'https://files.example.com/a'
    for (const [input, errors] of [
      [{}, ['#/text required']],
      [{ text: 'a', media_url: link, type: 'IMAGE' }, ['#/media_url ambiguous']],
      [{ text: 'a', quick_message_id: '1' }, ['#/quick_message_id ambiguous']],
      [{ text: ' \n ' }, ['#/text blank']],
      [{ text: 'a', caption: 'b' }, ['#/caption not_allowed']],
      [{ text: 'a', type: 'IMAGE' }, ['#/type not_allowed']],
      [{ quick_message_id: '1', file_name: 'b' }, ['#/file_name not_allowed']],
      [{ media_url: link }, ['#/type required']],
      [{ media_url: link, type: 'AUDIO', caption: 'b' }, ['#/caption not_allowed']],
      [{ media_url: link, type: 'IMAGE', file_name: 'b' }, ['#/file_name not_allowed']],
      [{ media_url: 'http://files.example.com/a', type: 'IMAGE' }, ['#/media_url invalid_format']],
      [{ text: '' }, ['#/text too_short']],
      [{ text: 'a', reply_to_id: '999999' }, ['#/reply_to_id unknown_message']],
      [{ interactive: { kind: 'location_request' } }, ['#/text required']],
      [
        { media_url: link, type: 'IMAGE', interactive: { kind: 'location_request' } },
        ['#/interactive not_allowed'],
      ],
      ...invalidInteractive.map(
        ([interactive, ...errors]) => [{ text: 'a', interactive }, errors] as [object, string[]],
      ),
      [{ text: 'a'.repeat(1025), interactive: { kind: 'location_request' } }, ['#/text too_long']],
    ] as [object, string[]][])
      assert.deepEqual(
        summarizeReply(await reply(input)),
        [400, 'invalid_input', ...errors],
        JSON.stringify(input),
      )
    const {
      body: { message: note },
    } = await call('inbox_add_note', { conversation_id: id, text: 'a note' })
    assert.deepEqual(
      summarizeReply(await reply({ text: 'a', reply_to_id: note.id })),
      [400, 'invalid_input', '#/reply_to_id unknown_message'],
      'a note cannot be replied to',
    )
    const [lost] = await insertMessages(server().db, workspace.id, [
      {
        conversation_id: id,
        channel_id: channelId,
        episode: 1,
        direction: 'outbound',
        type: 'TEXT',
        status: 'failed',
        text: 'Never sent',
        created_at: server().app.now(),
      },
    ])
    assert.deepEqual(
      summarizeReply(await reply({ text: 'a', reply_to_id: lost })),
      [409, 'conflict', 'not_at_provider'],
      'the customer never saw it',
    )
    const other = await plantConversation(server(), (await makeWorkspace(server())).id)
    for (const conversationId of [other.id, '999999999', '9999999999999999999'])
      assert.deepEqual(summarizeReply(await reply({ conversation_id: conversationId, text: 'a' })), [
        404,
        'not_found',
      ])
  })

  it('a reply is rejected without a reachable contact or a connected channel', async () => {
    const { workspace, id, contactId, channelId, reply, call } = await createScene()
    const { db } = server()
    const withoutPhone = { phone: null, chatapp_user_id: null, search: 'ada\n' }
    await db
      .updateTable('contacts')
      .set(withoutPhone)
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', contactId)
      .execute()
    assert.deepEqual(summarizeReply(await reply({ text: 'a', dry_run: true })), [
      409,
      'conflict',
      'contact_unreachable',
    ])
    for (const [fields, code, reason] of [
      [{ status: 'disconnected' }, 'conflict', 'channel_not_connected'],
      [{ status: 'connected', provider_phone_number_id: null }, 'conflict', 'channel_not_connected'],
      [{ type: 'web' }, 'conflict', 'channel_not_supported'],
    ] as const) {
      await updateChannel(db, workspace.id, channelId, fields)
      assert.deepEqual(summarizeReply(await reply({ text: 'a', dry_run: true })), [409, code, reason])
    }
    await call('crm_delete_contact', { contact_id: contactId }, { confirm: 'delete' })
    assert.deepEqual(summarizeReply(await reply({ text: 'a' })), [409, 'conflict', 'contact_deleted'])
    const other = await createChannel(
      db,
      workspace.id,
      { type: 'chatapp', name: 'Other', status: 'connected', provider_phone_number_id: `99${workspace.id}` },
      server().app.now(),
    )
    const { key } = await workspace.staff({ channel_ids: [other.id] })
    assert.deepEqual(
      summarizeReply(
        await callAs(server(), key)('messaging_send_reply', { conversation_id: id, text: 'a' }, confirm),
      ),
      [404, 'not_found'],
    )
  })

  it('a reply is sent to the user id of a customer without a phone number', async () => {
    const { sandbox, run } = await createScene()
    await sandbox.say({ user_id: 'US.13491208655302741918', name: 'Grace', text: 'Hi' })
    const conversation = (await run('inbox_search_conversations', { query: 'Grace' })).data[0]
    await run('messaging_send_reply', { conversation_id: conversation.id, text: 'Hello Grace' })
    const posted = (await sandbox.sent()).filter((m) => m['recipient'] === 'US.13491208655302741918')
    assert.deepEqual(
      posted.map((m) => [m.to, m.type]),
      [[undefined, 'text']],
    )
  })

  it('a reply does not reopen a closed conversation', async () => {
    const { run, id, sandbox, phone } = await createScene()
    await run('inbox_close_conversation', { conversation_id: id })
    await run('messaging_send_reply', { conversation_id: id, text: 'One more thing' })
    assert.equal((await run('inbox_get_conversation', { conversation_id: id })).state, 'closed')
    assert.equal((await sandbox.sent(phone)).length, 1)
  })

  it('a reply is sent once when the response of the provider is lost', async () => {
    const { workspace, reply, sandbox, phone, id, run } = await createScene()
    await sandbox.fault({ to: `+${phone}`, drop_answer: true, times: 2 })
    const key = `lost-reply-${workspace.id}`
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).status, 504)
    assert.deepEqual(
      (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data.map(
        (m: { status: string }) => m.status,
      ),
      ['pending'],
    )
    const retried = await reply({ text: 'Once' }, { idempotencyKey: key })
    assert.equal(retried.status, 201, retried.text)
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.equal(
      (await listEmittedEventTypes(server(), workspace)).filter((type) => type === 'message.sent/1').length,
      1,
    )
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).text, retried.text)
  })

  it('a repeat after the staff member lost the channel tells nothing, whoever finds the outcome', async () => {
    const { workspace, id, channelId, phone, sandbox } = await createScene()
    const { staffId } = await workspace.staff({ role: 'agent' })
    const other = await createChannel(
      server().db,
      workspace.id,
      { type: 'custom', name: 'Other', identifier: 'other', status: 'connected' },
      server().app.now(),
    )
    const send = async (channels: string[], name: string) => {
      await updateStaff(server().db, workspace.id, staffId, { channel_ids: channels }, undefined)
      const { key } = await workspace.key(staffId)
      return await callAs(server(), key)(
        'messaging_send_reply',
        { conversation_id: id, text: name },
        { confirm: 'send', idempotencyKey: `${name}-${workspace.id}` },
      )
    }
    await sandbox.fault({ to: `+${phone}`, drop_answer: true, times: 2 })
    assert.equal((await send([channelId], 'by-repeat')).status, 504)
    assert.equal((await send([channelId], 'by-worker')).status, 504)
    const repeated = [await send([other.id], 'by-repeat')]
    await reconcileProviderCalls(server().app)
    repeated.push(await send([other.id], 'by-repeat'), await send([other.id], 'by-worker'))
    for (const { status, body } of repeated)
      assert.deepEqual([status, body.reason], [409, 'visibility_changed'])
    assert.equal((await send([channelId], 'by-worker')).status, 201)
  })

  it('a rejection by the provider leaves no message', async () => {
    const { workspace, reply, sandbox, phone, id, run } = await createScene()
    const before = await run('inbox_get_conversation', { conversation_id: id })
    const key = `rejected-reply-${workspace.id}`
    await sandbox.fault({ to: `+${phone}`, code: 131026 })
    const rejected = await reply({ text: 'Hi' }, { idempotencyKey: key })
    assert.deepEqual(
      [rejected.status, rejected.body.code, rejected.body.provider_code],
      [502, 'upstream_error', 131026],
    )
    assert.ok(!rejected.text.includes(phone))
    assert.deepEqual(await run('inbox_get_conversation', { conversation_id: id }), before)
    assert.equal((await run('inbox_list_messages', { conversation_id: id })).data.length, 1)
    assert.equal(
      (await reply({ text: 'Hi' }, { idempotencyKey: key })).status,
      201,
      'the idempotency key can be used again',
    )
    for (const code of [131056, 130429]) {
      await sandbox.fault({ to: `+${phone}`, code })
      const throttled = await reply(
        { text: 'Later' },
        { idempotencyKey: `throttled-reply-${code}-${workspace.id}` },
      )
      assert.deepEqual([throttled.status, throttled.body.code], [503, 'upstream_unavailable'])
      assert.ok(Number(throttled.headers['retry-after']) > 0)
      assert.equal(
        (await reply({ text: 'Later' }, { idempotencyKey: `throttled-reply-${code}-${workspace.id}` }))
          .status,
        201,
      )
    }
    assert.equal((await sandbox.sent(phone)).length, 3)
  })

  it('concurrent calls send one message for each idempotency key', async () => {
    const { workspace, reply, sandbox, phone } = await createScene()
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        reply({ text: `Reply ${n % 10}` }, { idempotencyKey: `many-reply-${workspace.id}-${n % 10}` }),
      ),
    )
    assert.ok(
      replies.every(({ status }) => status === 201 || status === 409),
      JSON.stringify(replies.map((a) => a.status)),
    )
    assert.equal((await sandbox.sent(phone)).length, 10)
  })

  it('the window is corrected when the provider reports it closed, at once or with a status', async () => {
    for (const late of [false, true]) {
      const { reply, sandbox, phone, id, run } = await createScene()
      if (late) {
        const {
          body: { message },
        } = await reply({ text: 'Hi' })
        await sandbox.status(message.id, 'failed', 131047)
        const failed = await run('messaging_get_message', { message_id: message.id })
        assert.ok(failed.status === 'failed' && failed.failed_at !== null && failed.error.length > 10)
      } else {
        await sandbox.fault({ to: `+${phone}`, code: 131047 })
        const { status, body } = await reply({ text: 'Hi' })
        assert.deepEqual(
          [status, body.code, body.window.open, body.window.reason],
          [409, 'window_closed', false, 'expired'],
        )
        assert.equal((await run('inbox_list_messages', { conversation_id: id })).data.length, 1)
      }
      const { window } = await run('inbox_get_conversation', { conversation_id: id })
      assert.deepEqual([window.open, window.reason], [false, 'expired'])
      assert.deepEqual(summarizeReply(await reply({ text: 'Hi', dry_run: true })), [409, 'window_closed'])
      await sandbox.say({ from: `+${phone}`, text: 'Here I am' })
      assert.equal((await reply({ text: 'Hi', dry_run: true })).status, 201)
    }
  })

  it('a reply is accepted exactly when the conversation shows an open window', async () => {
    const workspace = await makeWorkspace(server())
    const { db, app } = server()
    const { id } = await plantConversation(server(), workspace.id)
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    const secondsAgo = fc.option(
      fc.oneof(
        fc.integer({ min: 0, max: 80 * 3600 }),
        fc.constantFrom(24, 48, 72).chain((h) => fc.integer({ min: h * 3600 - 2, max: h * 3600 + 2 })),
      ),
    )
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(secondsAgo, secondsAgo, secondsAgo, async (inbound, ad, corrected) => {
        const time = (seconds: number | null) =>
          seconds === null ? null : new Date(Date.parse(app.now()) - seconds * 1000).toISOString()
        await db
          .updateTable('conversations')
          .set({
            last_inbound_at: time(inbound),
            free_entry_at: time(ad),
            window_corrected_at: time(corrected),
          })
          .where('workspace_id', '=', workspace.id)
          .where('id', '=', id)
          .execute()
        const before = (await run('inbox_get_conversation', { conversation_id: id })).window
        const reply = await call('messaging_send_reply', { conversation_id: id, text: 'a', dry_run: true })
        const after = (await run('inbox_get_conversation', { conversation_id: id })).window
        // The window may close between the two reads; then either result is right.
        assert.ok(
          [before.open, after.open].includes(reply.status === 201),
          `${reply.text} ${JSON.stringify(before)}`,
        )
        if (reply.status !== 201) assert.deepEqual(summarizeReply(reply), [409, 'window_closed'])
        if (before.open === after.open && reply.status !== 201) assert.deepEqual(reply.body.window, after)
        seen.add(`${before.open} ${before.kind} ${before.reason}`)
      }),
      { numRuns: 60 },
    )
    assert.ok(
      seen.has('true service null') && seen.has('false service never_opened') && seen.size >= 4,
      [...seen].join('; '),
    )
  })

  it('the final status does not depend on the order of the updates', async () => {
    const { workspace, reply } = await createScene()
    const { message } = (await reply({ text: 'Hi' })).body
    await server().settle()
    const loadRow = () =>
      server()
        .db.selectFrom('messages')
        .selectAll()
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', message.id)
        .executeTakeFirstOrThrow()
    const sent = {
      ...(await loadRow()),
      status: 'sent' as const,
      delivered_at: null,
      read_at: null,
      failed_at: null,
      error: null,
      error_code: null,
    }
    const at = (seconds: number) => new Date(Date.parse(sent.created_at) + seconds * 1000).toISOString()
    const apply = (update: MessageStatusUpdate) =>
      inChangeContext(server(), workspace.id, at(100), (context) => applyStatus(context, update))
    const { update, failure } = createStatusUpdates(sent.provider_id!, at)
    await fc.assert(
      fc.asyncProperty(
        fc.array(update, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        fc.infiniteStream(fc.nat()),
        async (successes, fails, random) => {
          const updates = fails ? [...successes, failure] : successes
          const outcomes: Awaited<ReturnType<typeof loadRow>>[] = []
          for (const order of [
            updates,
            updates.toReversed(),
            updates.toSorted(() => (random.next().value! % 3) - 1),
          ]) {
            await server()
              .db.updateTable('messages')
              .set({ ...sent, content: null })
              .where('workspace_id', '=', workspace.id)
              .where('id', '=', message.id)
              .execute()
            for (const statusUpdate of order) await apply(statusUpdate)
            outcomes.push(await loadRow())
          }
          assert.deepEqual(outcomes[1], outcomes[0])
          assert.deepEqual(outcomes[2], outcomes[0])
          assertFinalStatus(await loadRow(), successes, fails)
        },
      ),
      { numRuns: 25 },
    )
    assert.equal(await apply({ providerId: 'wamid.unknown', status: 'read', at: at(0) }), 'unknown')
  })

  it('placeholders are filled for the contact and the staff member', async () => {
    const { workspace, reply, contactId, run, sandbox, phone } = await createScene()
    const owner = workspace.owner.staffId
    await run('crm_create_custom_field', {
      key: 'plan',
      label: 'Plan',
      type: 'select',
      options: [{ label: 'Gold plan', value: 'gold' }],
    })
    await run('crm_update_contact', { contact_id: contactId, name: 'Ada $&', attributes: { plan: 'gold' } })
    const textId = await insertQuickMessageRow(server(), workspace.id, {
      owner_staff_id: owner,
      text: 'Hi {{contact.name}}, {{ staff.name }} here: {{contact.plan}}, +{{contact.phone}}.',
    })
    await reply({ quick_message_id: textId })
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['text'], {
      body: `Hi Ada $&, Owner here: Gold plan, +${phone}.`,
      preview_url: false,
    })
    const documentId = await insertQuickMessageRow(server(), workspace.id, {
      owner_staff_id: owner,
      type: 'DOCUMENT',
      text: 'For {{contact.name}}',
      media_url: 'https://files.example.com/a',
      file_name: 'a.pdf',
    })
    assert.equal((await reply({ quick_message_id: documentId })).body.message.text, 'For Ada $&')
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['document'], {
      link: 'https://files.example.com/a',
      caption: 'For Ada $&',
      filename: 'a.pdf',
    })
    // Of a quick message that was a document once.
    const imageId = await insertQuickMessageRow(server(), workspace.id, {
      owner_staff_id: owner,
      type: 'IMAGE',
      media_url: 'https://files.example.com/a',
      file_name: 'a.pdf',
    })
    await reply({ quick_message_id: imageId })
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['image'], { link: 'https://files.example.com/a' })
  })

  it('a quick message that cannot be sent as a reply is rejected with the reason', async () => {
    const { workspace, reply } = await createScene()
    const owner = workspace.owner.staffId
    for (const [fields, expected] of [
      [
        { text: 'Hi {{contact.shoe_size}}' },
        [400, 'invalid_input', '#/quick_message_id unknown_placeholder'],
      ],
      [{ text: 'Hi {{contact.email}}' }, [409, 'conflict', 'placeholder_empty']],
      [{ text: 'x'.repeat(4097) }, [400, 'invalid_input', '#/quick_message_id too_long']],
      [
        { type: 'IMAGE', media_url: 'https://a.example/', text: 'x'.repeat(1025) },
        [400, 'invalid_input', '#/quick_message_id too_long'],
      ],
      [{ text: ' ' }, [409, 'conflict', 'quick_message_incomplete']],
      [{ type: 'VIDEO', text: 'x' }, [409, 'conflict', 'quick_message_incomplete']],
      [{ type: 'TEMPLATE', template_name: 'offer' }, [409, 'conflict', 'quick_message_is_template']],
      [{ type: 'INTERACTIVE', text: 'x' }, [409, 'conflict', 'quick_message_not_supported']],
    ] as const)
      assert.deepEqual(
        summarizeReply(
          await reply({
            quick_message_id: await insertQuickMessageRow(server(), workspace.id, {
              owner_staff_id: owner,
              ...fields,
            }),
            dry_run: true,
          }),
        ),
        expected,
        JSON.stringify(fields),
      )
  })

  it('agents: no hidden phone numbers and no manager-only fields', async () => {
    const { workspace, id, contactId, run } = await createScene()
    const owner = workspace.owner.staffId
    await run('crm_create_custom_field', {
      key: 'secret',
      label: 'Secret',
      type: 'text',
      visibility: 'manager_only',
    })
    await run('crm_update_contact', { contact_id: contactId, attributes: { secret: 'x' } })
    const agent = await workspace.staff({ hide_phone_numbers: true })
    const replyAsAgent = async (text: string) =>
      summarizeReply(
        await callAs(server(), agent.key)('messaging_send_reply', {
          conversation_id: id,
          quick_message_id: await insertQuickMessageRow(server(), workspace.id, {
            owner_staff_id: owner,
            text,
          }),
          dry_run: true,
        }),
      )
    assert.deepEqual(await replyAsAgent('Hi {{contact.name}}, +{{contact.phone}}.'), [
      403,
      'forbidden',
      'phone_hidden',
    ])
    assert.deepEqual(await replyAsAgent('{{contact.secret}}'), [
      400,
      'invalid_input',
      '#/quick_message_id unknown_placeholder',
    ])
  })

  it('what is hidden is refused, then what is missing, whatever else the text has', async () => {
    const { workspace, id, contactId, run, phone } = await createScene()
    const owner = workspace.owner
    for (const [key, type] of [
      ['mobile', 'phone'],
      ['plan', 'text'],
    ])
      await run('crm_create_custom_field', { key, label: key, type })
    const agent = await workspace.staff({ name: 'Bea', hide_phone_numbers: true })
    const named = ['contact.name', 'contact.phone', 'contact.mobile', 'contact.plan', 'staff.name']
    const texts = await Promise.all(
      named.flatMap((first, n) =>
        named.slice(n).map(async (second) => {
          const text = `{{ ${first} }} and {{${second}}}`
          const quickId = await insertQuickMessageRow(server(), workspace.id, {
            owner_staff_id: owner.staffId,
            text,
          })
          return { names: [first, second], quickId }
        }),
      ),
    )
    const contacts = [
      { name: 'Ada', attributes: { mobile: '+1 555 010 7777', plan: 'Gold' } },
      { name: 'Ada +1 555 010 7777', attributes: { mobile: null, plan: 'Gold' } },
      { name: 'Ada', attributes: { mobile: '+1 555 010 7777', plan: null } },
    ]
    for (const contact of contacts) {
      await run('crm_update_contact', { contact_id: contactId, ...contact })
      for (const reader of [owner, agent]) {
        const call = callAs(server(), reader.key)
        const values = new Map<string, string | undefined>([
          ['contact.name', contact.name],
          ['contact.phone', phone],
          ['contact.mobile', contact.attributes.mobile?.replaceAll(/\D/g, '')],
          ['contact.plan', contact.attributes.plan ?? undefined],
          ['staff.name', reader === agent ? 'Bea' : 'Owner'],
        ])
        const hidden = [
          'contact.phone',
          'contact.mobile',
          ...(contact.name === 'Ada' ? [] : ['contact.name']),
        ]
        for (const { names, quickId } of texts) {
          const answer = await call('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quickId,
            dry_run: true,
          })
          const missing = [...new Set(names)].filter((name) => !values.get(name))
          const isHidden = reader === agent && names.some((name) => hidden.includes(name))
          const [status, found, expected] = isHidden
            ? [403, answer.body.reason, 'phone_hidden']
            : missing.length > 0
              ? [409, answer.body.placeholders, missing]
              : [201, answer.body.message?.text, names.map((name) => values.get(name)).join(' and ')]
          const what = `${names.join()} ${contact.name} ${answer.text}`
          assert.deepEqual([answer.status, found], [status, expected], what)
          if (isHidden) assert.ok(!answer.text.includes('5550107777') && !answer.text.includes(phone), what)
        }
      }
    }
  })

  it('quick messages of the company, of own teams and own private ones can be sent', async () => {
    const { workspace, id } = await createScene()
    const agent = await workspace.staff({})
    const ownTeam = await createTeamWithMembers(server(), workspace.id, 'Own', [agent])
    const otherTeam = await createTeamWithMembers(server(), workspace.id, 'Other')
    const owner = workspace.owner.staffId
    for (const [staffId, fields, status] of [
      [owner, { visibility: 'company' }, 201],
      [owner, { visibility: 'team', team_id: ownTeam }, 201],
      [owner, { visibility: 'team', team_id: otherTeam }, 404],
      [owner, { visibility: 'private' }, 404],
      [agent.staffId, { visibility: 'private' }, 201],
    ] as const) {
      const quickMessageId = await insertQuickMessageRow(server(), workspace.id, {
        owner_staff_id: staffId,
        ...fields,
        text: 'Hi',
      })
      assert.equal(
        (
          await callAs(server(), agent.key)('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quickMessageId,
            dry_run: true,
          })
        ).status,
        status,
        JSON.stringify(fields),
      )
    }
  })
})
