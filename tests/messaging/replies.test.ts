import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { applyStatus, type MessageStatusUpdate } from '../../server/messaging/message-status.ts'
import { createChannel, createTeam, updateChannel } from '../../storage/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { inFlow, plantConversation } from '../inbox/conversations.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { anyPhone, refusal, sandboxOf } from './sends.ts'
import { makeWorkspace, type TestWorkspace } from '../servers.ts'

const confirm = { confirm: 'send' }

everyDoor('Replies', (test) => {
  test('reach the customer while the window is open, and not 25 hours later', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    const sandbox = sandboxOf(server, workspace)
    const phone = anyPhone()
    await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Is my order on its way?' })
    const [conversation] = (await call('inbox_search_conversations')).body.data
    const given = { conversation_id: conversation.id, text: 'It arrives today.' }

    const rehearsed = await call('messaging_send_reply', { ...given, dry_run: true })
    assert.deepEqual(
      [
        rehearsed.status,
        rehearsed.body.dry_run,
        rehearsed.body.message.id,
        rehearsed.body.conversation_id,
        rehearsed.body.message.text,
      ],
      [201, true, null, conversation.id, given.text],
    )
    assert.deepEqual(await sandbox.sent(phone), [])
    assert.equal((await call('messaging_send_reply', given)).status, 428)
    const sent = await call('messaging_send_reply', given, {
      ...confirm,
      idempotencyKey: `reply-${door.name}-${workspace.id}`,
    })
    if (door.confirms) {
      assert.equal(sent.status, 201)
      const again = await call('messaging_send_reply', given, {
        ...confirm,
        idempotencyKey: `reply-${door.name}-${workspace.id}`,
      })
      assert.equal(again.text, sent.text)
      const [there, ...more] = await sandbox.sent(phone)
      assert.deepEqual(
        [there!.type, there!['text'], more],
        ['text', { body: given.text, preview_url: false }, []],
      )
      await server.settle()
      assert.equal(
        (await call('messaging_get_message', { message_id: sent.body.message.id })).body.status,
        'delivered',
      )
      await sandbox.status(sent.body.message.id, 'read')
      const read = (await call('messaging_get_message', { message_id: sent.body.message.id })).body
      assert.ok(read.status === 'read' && read.delivered_at !== null && read.read_at !== null)
      const now = (await call('inbox_get_conversation', { conversation_id: conversation.id })).body
      assert.deepEqual(
        [now.reply_status, now.unread_count, now.assignee, now.last_message.id],
        ['outgoing_no_response', 0, null, sent.body.message.id],
      )
    }

    await sandbox.advance('25h')
    const shut = await call('messaging_send_reply', { ...given, dry_run: true })
    const { window } = (await call('inbox_get_conversation', { conversation_id: conversation.id })).body
    assert.deepEqual([shut.status, shut.body.code, shut.body.window], [409, 'window_closed', window])
    assert.deepEqual([window.open, window.reason], [false, 'expired'])
  })
})

everyDatabase('Replies', (server) => {
  const scene = async () => {
    const workspace = await makeWorkspace(server())
    const phone = anyPhone()
    const [call, run, sandbox] = [
      callAs(server(), workspace.owner.key),
      doAs(server(), workspace.owner.key),
      sandboxOf(server(), workspace),
    ]
    await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Hello' })
    const { id, contact, channel } = (await run('inbox_search_conversations')).data[0]
    const reply = (input: object, options: object = {}) =>
      call('messaging_send_reply', { conversation_id: id, ...input }, { ...confirm, ...options })
    return {
      workspace,
      phone,
      id,
      contactId: contact.id as string,
      channelId: channel.id as string,
      call,
      reply,
      run,
      sandbox,
    }
  }
  const eventsOf = async (workspace: TestWorkspace): Promise<string[]> =>
    (
      await server()
        .db.selectFrom('events')
        .select('type')
        .where('workspace_id', '=', workspace.id)
        .orderBy('id')
        .execute()
    ).map(({ type }) => type)
  const quickMessage = async (
    { id: workspaceId }: TestWorkspace,
    staffId: string,
    fields: object,
  ): Promise<string> =>
    (
      await server()
        .db.insertInto('quick_messages')
        .values({
          code: 'q',
          code_key: Math.random().toString(36),
          title: null,
          type: 'TEXT',
          description: null,
          text: null,
          media_url: null,
          file_name: null,
          template_name: null,
          visibility: 'company',
          team_id: null,
          ...fields,
          workspace_id: workspaceId,
          owner_staff_id: staffId,
          created_at: server().app.now(),
          updated_at: server().app.now(),
        })
        .returning('id')
        .executeTakeFirstOrThrow()
    ).id

  it('are text or files, in answer to a message', async () => {
    const { reply, sandbox, phone, run, id } = await scene()
    await sandbox.say({ from: `+${phone}`, text: 'Which one?' })
    const [question] = (await run('inbox_list_messages', { conversation_id: id })).data
    const link = 'https://files.example.com/a'
    const said = [
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
    for (const [input, part] of said) {
      const { body, status } = await reply({ ...input, reply_to_id: question.id })
      assert.equal(status, 201, JSON.stringify(body))
      const there = (await sandbox.sent(phone)).at(-1)!
      const type = Object.keys(part)[0]!
      assert.deepEqual(
        [there.type, there[type], there['context']],
        [
          type,
          Object.values(part)[0],
          { message_id: (there['context'] as { message_id: string }).message_id },
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

  it('say one thing, of fields that go together', async () => {
    const { reply, call, id } = await scene()
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
      assert.deepEqual(refusal(await reply(input)), [400, 'invalid_input', ...errors], JSON.stringify(input))
    const {
      body: { message: note },
    } = await call('inbox_add_note', { conversation_id: id, text: 'a note' })
    assert.deepEqual(
      refusal(await reply({ text: 'a', reply_to_id: note.id })),
      [400, 'invalid_input', '#/reply_to_id unknown_message'],
      'nobody answers a note',
    )
    const other = await plantConversation(server(), (await makeWorkspace(server())).id)
    for (const conversationId of [other.id, '999999999', '9999999999999999999'])
      assert.deepEqual(refusal(await reply({ conversation_id: conversationId, text: 'a' })), [
        404,
        'not_found',
      ])
  })

  it('go where there is somebody to reach, on a channel that is connected', async () => {
    const { workspace, id, contactId, channelId, reply, call } = await scene()
    const { db } = server()
    const phoneless = { phone: null, chatapp_user_id: null, search: 'ada\n' }
    await db
      .updateTable('contacts')
      .set(phoneless)
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', contactId)
      .execute()
    assert.deepEqual(refusal(await reply({ text: 'a', dry_run: true })), [
      409,
      'conflict',
      'contact_unreachable',
    ])
    for (const [fields, reason] of [
      [{ status: 'disconnected' }, 'channel_not_connected'],
      [{ status: 'connected', provider_phone_number_id: null }, 'channel_not_connected'],
      [{ type: 'web' }, 'channel_not_supported'],
    ] as const) {
      await updateChannel(db, workspace.id, channelId, fields)
      assert.deepEqual(refusal(await reply({ text: 'a', dry_run: true })), [409, 'conflict', reason])
    }
    await call('crm_delete_contact', { contact_id: contactId }, { confirm: 'delete' })
    assert.deepEqual(refusal(await reply({ text: 'a' })), [409, 'conflict', 'contact_deleted'])
    const other = await createChannel(
      db,
      workspace.id,
      { type: 'chatapp', name: 'Other', status: 'connected', provider_phone_number_id: `99${workspace.id}` },
      server().app.now(),
    )
    const { key } = await workspace.staff({ channel_ids: [other.id] })
    assert.deepEqual(
      refusal(
        await callAs(server(), key)('messaging_send_reply', { conversation_id: id, text: 'a' }, confirm),
      ),
      [404, 'not_found'],
    )
  })

  it('reach customers who show no phone number', async () => {
    const { workspace, sandbox, run } = await scene()
    await sandbox.say({ user_id: 'US.13491208655302741918', name: 'Grace', text: 'Hi' })
    const conversation = (await run('inbox_search_conversations', { query: 'Grace' })).data[0]
    await run('messaging_send_reply', { conversation_id: conversation.id, text: 'Hello Grace' })
    const there = (await sandbox.sent()).filter((m) => m['recipient'] === 'US.13491208655302741918')
    assert.deepEqual(
      there.map((m) => [m.to, m.type]),
      [[undefined, 'text']],
    )
    assert.ok(workspace.id)
  })

  it('leave a closed conversation closed', async () => {
    const { run, id, sandbox, phone } = await scene()
    await run('inbox_close_conversation', { conversation_id: id })
    await run('messaging_send_reply', { conversation_id: id, text: 'One more thing' })
    assert.equal((await run('inbox_get_conversation', { conversation_id: id })).state, 'closed')
    assert.equal((await sandbox.sent(phone)).length, 1)
  })

  it('can be saved ones, with their placeholders filled', async () => {
    const { workspace, reply, contactId, run, sandbox, phone } = await scene()
    const staff = workspace.owner.staffId
    await run('crm_create_custom_field', {
      key: 'plan',
      label: 'Plan',
      type: 'select',
      options: [{ label: 'Gold plan', value: 'gold' }],
    })
    await run('crm_create_custom_field', {
      key: 'secret',
      label: 'Secret',
      type: 'text',
      visibility: 'manager_only',
    })
    await run('crm_update_contact', { contact_id: contactId, attributes: { plan: 'gold', secret: 'x' } })
    const text = await quickMessage(workspace, staff, {
      text: 'Hi {{contact.name}}, {{ staff.name }} here: {{contact.plan}}, +{{contact.phone}}.',
    })
    await reply({ quick_message_id: text })
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['text'], {
      body: `Hi Ada, Owner here: Gold plan, +${phone}.`,
      preview_url: false,
    })
    const file = await quickMessage(workspace, staff, {
      type: 'DOCUMENT',
      text: 'For {{contact.name}}',
      media_url: 'https://files.example.com/a',
      file_name: 'a.pdf',
    })
    assert.equal((await reply({ quick_message_id: file })).body.message.text, 'For Ada')
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['document'], {
      link: 'https://files.example.com/a',
      caption: 'For Ada',
      filename: 'a.pdf',
    })

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
        refusal(
          await reply({ quick_message_id: await quickMessage(workspace, staff, fields), dry_run: true }),
        ),
        expected,
        JSON.stringify(fields),
      )

    const agent = await workspace.staff({ hide_phone_numbers: true })
    const asAgent = (quick: string) =>
      callAs(server(), agent.key)('messaging_send_reply', {
        conversation_id: id,
        quick_message_id: quick,
        dry_run: true,
      })
    const { id } = (await run('inbox_search_conversations')).data[0]
    assert.deepEqual(refusal(await asAgent(text)), [403, 'forbidden', 'phone_hidden'])
    assert.deepEqual(
      refusal(await asAgent(await quickMessage(workspace, staff, { text: '{{contact.secret}}' }))),
      [400, 'invalid_input', '#/quick_message_id unknown_placeholder'],
    )
  })

  it("can be saved ones of the company, of one's team and one's own", async () => {
    const { workspace, id } = await scene()
    const { db, app } = server()
    const [mine, theirs] = [
      await createTeam(db, workspace.id, 'Mine', app.now()),
      await createTeam(db, workspace.id, 'Theirs', app.now()),
    ]
    const agent = await workspace.staff({})
    await db
      .insertInto('team_members')
      .values({ workspace_id: workspace.id, team_id: mine.id, staff_id: agent.staffId })
      .execute()
    const owner = workspace.owner.staffId
    for (const [staffId, fields, status] of [
      [owner, { visibility: 'company' }, 201],
      [owner, { visibility: 'team', team_id: mine.id }, 201],
      [owner, { visibility: 'team', team_id: theirs.id }, 404],
      [owner, { visibility: 'private' }, 404],
      [agent.staffId, { visibility: 'private' }, 201],
    ] as const) {
      const quick = await quickMessage(workspace, staffId, { ...fields, text: 'Hi' })
      assert.equal(
        (
          await callAs(server(), agent.key)('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quick,
            dry_run: true,
          })
        ).status,
        status,
        JSON.stringify(fields),
      )
    }
  })

  it('whose answer was lost are sent once', async () => {
    const { workspace, reply, sandbox, phone, id, run } = await scene()
    await sandbox.fault({ to: `+${phone}`, drop_answer: true, times: 2 })
    const key = `lost-reply-${workspace.id}`
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).status, 504)
    assert.deepEqual(
      (await run('inbox_list_messages', { conversation_id: id, limit: 1 })).data.map(
        (m: { status: string }) => m.status,
      ),
      ['pending'],
    )
    const again = await reply({ text: 'Once' }, { idempotencyKey: key })
    assert.equal(again.status, 201, again.text)
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.equal((await eventsOf(workspace)).filter((type) => type === 'message.sent/1').length, 1)
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).text, again.text)
  })

  it('whose status is quicker than the retry are sent once', async () => {
    const { workspace, reply, sandbox, phone, run } = await scene()
    await sandbox.fault({ to: `+${phone}`, drop_answer: true })
    const key = `quick-reply-${workspace.id}`
    assert.equal((await reply({ text: 'Once' }, { idempotencyKey: key })).status, 504)
    await server().settle()
    const again = await reply({ text: 'Once' }, { idempotencyKey: key })
    assert.deepEqual([again.status, again.body.message.status], [201, 'delivered'])
    assert.equal(
      (await run('messaging_get_message', { message_id: again.body.message.id })).status,
      'delivered',
    )
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.deepEqual(
      (await eventsOf(workspace)).filter((type) => /^message\.(sent|delivered)/.test(type)),
      ['message.sent/1', 'message.delivered/1'],
    )
  })

  it('that the provider refuses leave nothing behind', async () => {
    const { workspace, reply, sandbox, phone, id, run } = await scene()
    const before = await run('inbox_get_conversation', { conversation_id: id })
    const key = `refused-reply-${workspace.id}`
    await sandbox.fault({ to: `+${phone}`, code: 131026 })
    const refused = await reply({ text: 'Hi' }, { idempotencyKey: key })
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.provider_code],
      [502, 'upstream_error', 131026],
    )
    assert.ok(!refused.text.includes(phone))
    assert.deepEqual(await run('inbox_get_conversation', { conversation_id: id }), before)
    assert.equal((await run('inbox_list_messages', { conversation_id: id })).data.length, 1)
    assert.equal((await reply({ text: 'Hi' }, { idempotencyKey: key })).status, 201, 'the key is free again')
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

  it('learn from the provider that the window is closed, at once or later', async () => {
    for (const late of [false, true]) {
      const { reply, sandbox, phone, id, run } = await scene()
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
      assert.deepEqual(refusal(await reply({ text: 'Hi', dry_run: true })), [409, 'window_closed'])
      await sandbox.say({ from: `+${phone}`, text: 'Here I am' })
      assert.equal((await reply({ text: 'Hi', dry_run: true })).status, 201)
    }
  })

  it('come as far as the provider tells, in whatever order it does', async () => {
    const { workspace, reply } = await scene()
    const {
      body: { message },
    } = await reply({ text: 'Hi' })
    await server().settle()
    const { db } = server()
    const row = (id: string) =>
      db
        .selectFrom('messages')
        .selectAll()
        .where('workspace_id', '=', workspace.id)
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
    const sent = {
      ...(await row(message.id)),
      status: 'sent' as const,
      delivered_at: null,
      read_at: null,
      failed_at: null,
      error: null,
      error_code: null,
    }
    const at = (seconds: number) => new Date(Date.parse(sent.created_at) + seconds * 1000).toISOString()
    const tell = (status: Omit<MessageStatusUpdate, 'providerId'>) =>
      inFlow(server(), workspace.id, at(100), (flow) =>
        applyStatus(flow, { providerId: sent.provider_id!, ...status }),
      )
    const state = fc.record({
      status: fc.constantFrom('sent' as const, 'delivered' as const, 'read' as const),
      at: fc.integer({ min: -5, max: 50 }).map(at),
    })
    const failure: Omit<MessageStatusUpdate, 'providerId'> = {
      status: 'failed',
      at: at(7),
      error: { code: 131026, title: 'Message undeliverable', details: null },
    }
    await fc.assert(
      fc.asyncProperty(
        fc.array(state, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        fc.infiniteStream(fc.nat()),
        async (states, fails, random) => {
          const told = fails ? [...states, failure] : states
          const outcomes: unknown[] = []
          for (const order of [
            told,
            told.toReversed(),
            told.toSorted(() => (random.next().value! % 3) - 1),
          ]) {
            await db
              .updateTable('messages')
              .set({ ...sent, content: null })
              .where('workspace_id', '=', workspace.id)
              .where('id', '=', message.id)
              .execute()
            for (const status of order) await tell(status)
            outcomes.push(await row(message.id))
          }
          assert.deepEqual(outcomes[1], outcomes[0])
          assert.deepEqual(outcomes[2], outcomes[0])
          const final = await row(message.id)
          const seen = states.map((s) => s.status)
          assert.equal(
            final.status,
            seen.includes('read')
              ? 'read'
              : fails
                ? 'failed'
                : seen.includes('delivered')
                  ? 'delivered'
                  : 'sent',
          )
          assert.equal(final.delivered_at !== null, seen.includes('read') || seen.includes('delivered'))
          assert.equal(final.failed_at !== null, final.status === 'failed')
          for (const time of [final.delivered_at, final.read_at, final.sent_at])
            assert.ok(time === null || time >= final.created_at)
        },
      ),
      { numRuns: 25 },
    )
    assert.equal(
      await inFlow(server(), workspace.id, at(0), (flow) =>
        applyStatus(flow, { providerId: 'wamid.unknown', status: 'read', at: at(0) }),
      ),
      'unknown',
    )
  })

  it('are taken exactly when the window is shown open', async () => {
    const workspace = await makeWorkspace(server())
    const { db, app } = server()
    const { id, channelId } = await plantConversation(server(), workspace.id)
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    const ago = fc.option(
      fc.oneof(
        fc.integer({ min: 0, max: 80 * 3600 }),
        fc.constantFrom(24, 48, 72).chain((h) => fc.integer({ min: h * 3600 - 2, max: h * 3600 + 2 })),
      ),
    )
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(ago, ago, ago, async (inbound, ad, corrected) => {
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
        // Where the window closes between the two looks, either is right.
        assert.ok(
          [before.open, after.open].includes(reply.status === 201),
          `${reply.text} ${JSON.stringify(before)}`,
        )
        if (reply.status !== 201) assert.deepEqual(refusal(reply), [409, 'window_closed'])
        if (before.open === after.open && reply.status !== 201) assert.deepEqual(reply.body.window, after)
        seen.add(`${before.open} ${before.kind} ${before.reason}`)
      }),
      { numRuns: 60 },
    )
    assert.ok(
      seen.has('true service null') && seen.has('false service never_opened') && seen.size >= 4,
      [...seen].join('; '),
    )
    assert.ok(channelId)
  })

  it('asked for by many at once are each sent once', async () => {
    const { workspace, reply, sandbox, phone } = await scene()
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        reply({ text: `Reply ${n % 10}` }, { idempotencyKey: `many-reply-${workspace.id}-${n % 10}` }),
      ),
    )
    assert.ok(
      answers.every(({ status }) => status === 201 || status === 409),
      JSON.stringify(answers.map((a) => a.status)),
    )
    assert.equal((await sandbox.sent(phone)).length, 10)
  })
})
