import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel, updateChannel } from '../../storage/workspace/admin.ts'
import { insertMessages } from '../../storage/messages/messages.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'
import { createSandboxDriver, generatePhone, summarizeReply } from './fixtures.ts'
import { createReplyScene } from './replies.ts'

const confirm = { confirm: 'send' }

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
    ] as const)
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
})
