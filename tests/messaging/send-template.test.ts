import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'
import { createSandboxDriver, generatePhone, listEmittedEventTypes, summarizeReply } from './fixtures.ts'
import { createTemplateScene, insertSandboxTemplates, ORDER_UPDATE } from './send-template.ts'

const confirm = { confirm: 'send' }

everyDoor('Sending templates', (test) => {
  test('a template can be sent to a new phone number', async ({ server, workspace, call, door }) => {
    await insertSandboxTemplates(server, workspace, {})
    const sandbox = createSandboxDriver(server, workspace)
    const phone = generatePhone()
    const input = { phone: `+${phone}`, template: ORDER_UPDATE }
    const preview = 'Hello Ada, your order 17 is on its way.'

    const dryRun = await call('messaging_send_template', { ...input, dry_run: true })
    assert.deepEqual([dryRun.status, dryRun.body.dry_run, dryRun.body.preview], [201, true, preview])
    assert.deepEqual(
      [dryRun.body.message.id, dryRun.body.message.conversation_id, dryRun.body.conversation_id],
      [null, null, null],
    )
    assert.deepEqual([(await call('crm_search_contacts')).body.total, await sandbox.sent(phone)], [0, []])
    assert.equal((await call('messaging_send_template', input)).status, 428)
    const { status, body: sent } = await call('messaging_send_template', input, confirm)
    if (!door.confirms) {
      assert.equal(status, 428)
      return
    }
    assert.deepEqual(
      [status, sent.preview, sent.message.text, sent.message.type, sent.message.template],
      [201, preview, preview, 'TEMPLATE', { name: 'order_update', language: 'en_US' }],
    )

    const [posted, ...others] = await sandbox.sent(phone)
    assert.deepEqual(
      [posted!['template'], others],
      [
        {
          name: 'order_update',
          language: { code: 'en_US' },
          components: [
            {
              type: 'body',
              parameters: [
                { type: 'text', text: 'Ada' },
                { type: 'text', text: '17' },
              ],
            },
          ],
        },
        [],
      ],
    )
  })

  test('a template needs no open window, and opens none', async ({ server, workspace, call, door }) => {
    await insertSandboxTemplates(server, workspace, {})
    const sandbox = createSandboxDriver(server, workspace)
    const phone = generatePhone()
    const input = { phone: `+${phone}`, template: ORDER_UPDATE }
    const { status, body: sent } = await call('messaging_send_template', input, confirm)
    if (!door.confirms) {
      assert.equal(status, 428)
      return
    }
    const conversation = (await call('inbox_get_conversation', { conversation_id: sent.conversation_id }))
      .body
    assert.deepEqual(
      [
        conversation.state,
        conversation.contact.phone,
        conversation.window.reason,
        conversation.last_message.id,
      ],
      ['open', phone, 'never_opened', sent.message.id],
    )
    const reply = () =>
      call('messaging_send_reply', { conversation_id: sent.conversation_id, text: 'Hi', dry_run: true })
    assert.equal((await reply()).body.code, 'window_closed')
    await sandbox.say({ from: `+${phone}`, text: 'Thanks' })
    assert.equal((await reply()).status, 201)
    assert.equal(
      (await call('messaging_get_message', { message_id: sent.message.id })).body.status,
      'delivered',
    )
  })
})

/** What is told of a contact and a conversation that a send made. */
const CREATED = ['contact.created/1', 'conversation.created/1']

everyDatabase('Sending templates', (server) => {
  it('events are emitted when the provider has accepted the message', async () => {
    const { workspace, send, sandbox, phone, run } = await createTemplateScene(server())
    const sent = await send({})
    assert.deepEqual(await listEmittedEventTypes(server(), workspace), [
      'contact.created/1',
      'conversation.created/1',
      'message.sent/1',
    ])
    await send({})
    assert.deepEqual((await listEmittedEventTypes(server(), workspace)).slice(3), ['message.sent/1'])
    assert.equal((await sandbox.sent(phone)).length, 2)
    assert.equal((await run('inbox_search_conversations')).data.length, 1)
    await run('inbox_close_conversation', { conversation_id: sent.body.conversation_id })
    assert.equal((await send({})).body.conversation_id, sent.body.conversation_id)
    assert.equal(
      (await run('inbox_get_conversation', { conversation_id: sent.body.conversation_id })).state,
      'closed',
    )
  })

  it('a rejection by the provider leaves neither contact nor conversation', async () => {
    const { workspace, send, sandbox, phone, run, call } = await createTemplateScene(server())
    await sandbox.fault({ to: `+${phone}`, code: 131026, times: 2 })
    const rejected = await send({})
    assert.deepEqual(
      [rejected.status, rejected.body.code, rejected.text.includes(phone)],
      [502, 'upstream_error', false],
    )
    assert.deepEqual(
      [
        (await run('crm_search_contacts')).total,
        (await run('inbox_search_conversations')).data,
        await listEmittedEventTypes(server(), workspace),
      ],
      [0, [], []],
    )
    const { id } = await run('crm_upsert_contact', { phone: `+${phone}` })
    assert.equal((await send({})).status, 502)
    assert.equal(
      (await call('crm_get_contact', { contact_id: id })).status,
      200,
      'an existing contact is kept',
    )
    assert.deepEqual((await run('inbox_search_conversations')).data, [])
  })

  it('a template is sent once when the response of the provider is lost', async () => {
    const { workspace, send, sandbox, phone, run } = await createTemplateScene(server())
    await sandbox.fault({ to: `+${phone}`, drop_answer: true })
    const key = `lost-template-${workspace.id}`
    assert.equal((await send({}, { idempotencyKey: key })).status, 504)
    assert.deepEqual(await listEmittedEventTypes(server(), workspace), CREATED)
    const sent = await send({}, { idempotencyKey: key })
    assert.equal(sent.status, 201, sent.text)
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.deepEqual(
      [(await run('crm_search_contacts')).total, await listEmittedEventTypes(server(), workspace)],
      [1, [...CREATED, 'message.sent/1']],
    )
    assert.equal((await send({}, { idempotencyKey: key })).text, sent.text)
  })

  it('events name who sent, also when a status is the first to tell that it was sent', async () => {
    const { workspace, send, sandbox, phone, run } = await createTemplateScene(server())
    await sandbox.fault({ to: `+${phone}`, drop_answer: true })
    assert.equal((await send({}, { idempotencyKey: `status-first-${workspace.id}` })).status, 504)
    await server().settle()
    const { data } = await run('events_list', {
      types: ['contact.created/1', 'conversation.created/1', 'message.sent/1'],
    })
    assert.deepEqual(
      data.map(({ type, data: { actor } }: any) => [type, actor?.staff.id]),
      ['contact.created/1', 'conversation.created/1', 'message.sent/1'].map((type) => [
        type,
        workspace.owner.staffId,
      ]),
    )
  })

  it('recipient: a contact or an international phone number, within the contact limit', async () => {
    const { send, run, workspace } = await createTemplateScene(server())
    const { id } = await run('crm_upsert_contact', { phone: '+15550100042' })
    assert.deepEqual(summarizeReply(await send({ phone: undefined })), [
      400,
      'invalid_input',
      '#/contact_id required',
    ])
    assert.deepEqual(summarizeReply(await send({ contact_id: id })), [
      400,
      'invalid_input',
      '#/phone ambiguous',
    ])
    assert.deepEqual(summarizeReply(await send({ phone: '0555 010042' })), [
      400,
      'invalid_input',
      '#/phone invalid_phone',
    ])
    assert.deepEqual(summarizeReply(await send({ phone: undefined, contact_id: '999999' })), [
      404,
      'not_found',
    ])
    assert.equal((await send({ phone: '+1 (555) 010-0042', dry_run: true })).status, 201)
    await server()
      .db.updateTable('workspaces')
      .set({ contact_limit: 1 })
      .where('id', '=', workspace.id)
      .execute()
    const limited = await makeWorkspace(server(), { contact_limit: 1 })
    await insertSandboxTemplates(server(), limited, {})
    const call = callAs(server(), limited.owner.key)
    assert.equal(
      (await call('messaging_send_template', { phone: '+15550100042', template: ORDER_UPDATE }, confirm))
        .status,
      201,
    )
    assert.deepEqual(
      summarizeReply(
        await call('messaging_send_template', { phone: '+15550100043', template: ORDER_UPDATE }, confirm),
      ),
      [403, 'forbidden', 'contact_limit'],
    )
    assert.equal(
      (await call('messaging_send_template', { phone: '+15550100042', template: ORDER_UPDATE }, confirm))
        .status,
      201,
    )
  })

  it('channel: the requested one, that of the latest conversation, or the default one', async () => {
    const { workspace, run, call } = await createTemplateScene(server())
    const { db, app } = server()
    const insertChannel = (fields: object) =>
      createChannel(
        db,
        workspace.id,
        { type: 'chatapp', name: 'C', status: 'connected', account_id: `77${workspace.id}`, ...fields },
        app.now(),
      )
    const second = await insertChannel({ provider_phone_number_id: `662${workspace.id}` })
    const disconnected = await insertChannel({
      provider_phone_number_id: `663${workspace.id}`,
      status: 'disconnected',
    })
    const web = await insertChannel({ type: 'web' })
    const otherAccount = await insertChannel({
      provider_phone_number_id: `664${workspace.id}`,
      account_id: '1',
    })
    await server().sync(workspace.id)
    const main = (await run('workspace_channels')).data.find((c: { is_default: boolean }) => c.is_default).id
    const { contactId } = await plantConversation(server(), workspace.id, { channelId: second.id })
    const newContactId = (await run('crm_upsert_contact', { phone: `+${generatePhone()}` })).id
    const sendAndLoadChannel = async (input: object) => {
      const { body: sent } = await call(
        'messaging_send_template',
        { template: ORDER_UPDATE, ...input },
        confirm,
      )
      return (await run('inbox_get_conversation', { conversation_id: sent.conversation_id })).channel.id
    }
    assert.equal(await sendAndLoadChannel({ contact_id: contactId }), second.id)
    assert.equal(await sendAndLoadChannel({ contact_id: newContactId }), main)
    assert.equal(await sendAndLoadChannel({ contact_id: contactId, channel_id: main }), main)
    await plantConversation(server(), workspace.id, {
      contactId,
      channelId: disconnected.id,
      inboundAt: new Date(Date.parse(app.now()) + 1000).toISOString(),
    })
    assert.equal(
      await sendAndLoadChannel({ contact_id: contactId }),
      main,
      'the latest conversation on a connected channel',
    )
    const dryRun = (input: object, key = workspace.owner.key) =>
      callAs(server(), key)('messaging_send_template', {
        contact_id: contactId,
        template: ORDER_UPDATE,
        dry_run: true,
        ...input,
      })
    assert.deepEqual(summarizeReply(await dryRun({ channel_id: disconnected.id })), [
      409,
      'conflict',
      'channel_not_connected',
    ])
    assert.deepEqual(summarizeReply(await dryRun({ channel_id: web.id })), [
      409,
      'conflict',
      'channel_not_supported',
    ])
    assert.deepEqual(
      summarizeReply(await dryRun({ channel_id: otherAccount.id })),
      [404, 'not_found'],
      'the account has no such template',
    )
    assert.deepEqual(summarizeReply(await dryRun({ channel_id: '999999' })), [404, 'not_found'])
    const agent = await workspace.staff({ channel_ids: [second.id] })
    assert.deepEqual(summarizeReply(await dryRun({ channel_id: main }, agent.key)), [404, 'not_found'])
    assert.deepEqual(summarizeReply(await dryRun({ contact_id: newContactId }, agent.key)), [
      400,
      'invalid_input',
      'channel_required',
      '#/channel_id required',
    ])
    assert.equal((await dryRun({ contact_id: contactId }, agent.key)).status, 201)
  })
})
