import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../storage/admin.ts'
import { insertTemplate, type NewTemplate } from '../../storage/templates.ts'
import { callAs, doAs } from '../calls.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { anyPhone, refusal, sandboxOf } from './sends.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

const confirm = { confirm: 'send' }
const update = { name: 'order_update', language: 'en_US', body: ['Ada', '17'] }
const body = { type: 'BODY', text: 'Hello {{1}}, your order {{2}} is on its way.' }

/** Templates of a workspace that the sandbox knows too. */
const plantTemplates = async (
  server: TestServer,
  workspace: TestWorkspace,
  ...templates: Partial<NewTemplate>[]
): Promise<void> => {
  for (const template of templates) {
    await insertTemplate(
      server.db,
      workspace.id,
      {
        account_id: `77${workspace.id}`,
        name: 'order_update',
        language: 'en_US',
        category: 'UTILITY',
        status: 'APPROVED',
        components: [body],
        ...template,
      },
      server.app.now(),
    )
  }
  await server.sync(workspace.id)
}

everyDoor('Templates', (test) => {
  test('reach a contact that is not there yet, whatever the window', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    await plantTemplates(server, workspace, {})
    const sandbox = sandboxOf(server, workspace)
    const phone = anyPhone()
    const given = { phone: `+${phone}`, template: update }
    const preview = 'Hello Ada, your order 17 is on its way.'

    const rehearsed = await call('messaging_send_template', { ...given, dry_run: true })
    assert.deepEqual([rehearsed.status, rehearsed.body.dry_run, rehearsed.body.preview], [201, true, preview])
    assert.deepEqual(
      [rehearsed.body.message.id, rehearsed.body.message.conversation_id, rehearsed.body.conversation_id],
      [null, null, null],
    )
    assert.deepEqual([(await call('crm_search_contacts')).body.total, await sandbox.sent(phone)], [0, []])
    assert.equal((await call('messaging_send_template', given)).status, 428)
    const { status, body: sent } = await call('messaging_send_template', given, confirm)
    if (!door.confirms) return void assert.equal(status, 428)
    assert.deepEqual(
      [status, sent.preview, sent.message.text, sent.message.type, sent.message.template],
      [201, preview, preview, 'TEMPLATE', { name: 'order_update', language: 'en_US' }],
    )

    const [there, ...more] = await sandbox.sent(phone)
    assert.deepEqual(
      [there!['template'], more],
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
    assert.equal(
      (
        await call('messaging_send_reply', {
          conversation_id: sent.conversation_id,
          text: 'Hi',
          dry_run: true,
        })
      ).body.code,
      'window_closed',
    )
    await sandbox.say({ from: `+${phone}`, text: 'Thanks' })
    assert.equal(
      (
        await call('messaging_send_reply', {
          conversation_id: sent.conversation_id,
          text: 'Hi',
          dry_run: true,
        })
      ).status,
      201,
    )
    assert.equal(
      (await call('messaging_get_message', { message_id: sent.message.id })).body.status,
      'delivered',
    )
  })
})

everyDatabase('Templates', (server) => {
  const scene = async (...templates: Partial<NewTemplate>[]) => {
    const workspace = await makeWorkspace(server())
    await plantTemplates(server(), workspace, ...(templates.length === 0 ? [{}] : templates))
    const phone = anyPhone()
    const call = callAs(server(), workspace.owner.key)
    const send = (input: object, options: object = {}) =>
      call(
        'messaging_send_template',
        { phone: `+${phone}`, template: update, ...input },
        { ...confirm, ...options },
      )
    return {
      workspace,
      phone,
      call,
      send,
      run: doAs(server(), workspace.owner.key),
      sandbox: sandboxOf(server(), workspace),
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

  it('announce what they made when the provider has taken them', async () => {
    const { workspace, send, sandbox, phone, run } = await scene()
    const sent = await send({})
    assert.deepEqual(await eventsOf(workspace), [
      'contact.created/1',
      'conversation.created/1',
      'message.sent/1',
    ])
    await send({})
    assert.deepEqual((await eventsOf(workspace)).slice(3), ['message.sent/1'])
    assert.equal((await sandbox.sent(phone)).length, 2)
    assert.equal((await run('inbox_search_conversations')).data.length, 1)
    await run('inbox_close_conversation', { conversation_id: sent.body.conversation_id })
    assert.equal((await send({})).body.conversation_id, sent.body.conversation_id)
    assert.equal(
      (await run('inbox_get_conversation', { conversation_id: sent.body.conversation_id })).state,
      'closed',
    )
  })

  it('that the provider refuses leave neither contact nor conversation', async () => {
    const { workspace, send, sandbox, phone, run, call } = await scene()
    await sandbox.fault({ to: `+${phone}`, code: 131026, times: 2 })
    const refused = await send({})
    assert.deepEqual(
      [refused.status, refused.body.code, refused.text.includes(phone)],
      [502, 'upstream_error', false],
    )
    assert.deepEqual(
      [
        (await run('crm_search_contacts')).total,
        (await run('inbox_search_conversations')).data,
        await eventsOf(workspace),
      ],
      [0, [], []],
    )
    const { id } = await run('crm_upsert_contact', { phone: `+${phone}` })
    assert.equal((await send({})).status, 502)
    assert.equal(
      (await call('crm_get_contact', { contact_id: id })).status,
      200,
      'a contact that was there stays',
    )
    assert.deepEqual((await run('inbox_search_conversations')).data, [])
  })

  it('whose answer was lost are sent once, with all that they made', async () => {
    const { workspace, send, sandbox, phone, run } = await scene()
    await sandbox.fault({ to: `+${phone}`, drop_answer: true })
    const key = `lost-template-${workspace.id}`
    assert.equal((await send({}, { idempotencyKey: key })).status, 504)
    assert.deepEqual(await eventsOf(workspace), [])
    const sent = await send({}, { idempotencyKey: key })
    assert.equal(sent.status, 201, sent.text)
    assert.equal((await sandbox.sent(phone)).length, 1)
    assert.deepEqual(
      [(await run('crm_search_contacts')).total, await eventsOf(workspace)],
      [1, ['contact.created/1', 'conversation.created/1', 'message.sent/1']],
    )
    assert.equal((await send({}, { idempotencyKey: key })).text, sent.text)
  })

  it('want one recipient, and a phone number in full', async () => {
    const { send, run, workspace } = await scene()
    const { id } = await run('crm_upsert_contact', { phone: '+15550100042' })
    assert.deepEqual(refusal(await send({ phone: undefined })), [
      400,
      'invalid_input',
      '#/contact_id required',
    ])
    assert.deepEqual(refusal(await send({ contact_id: id })), [400, 'invalid_input', '#/phone ambiguous'])
    assert.deepEqual(refusal(await send({ phone: '0555 010042' })), [
      400,
      'invalid_input',
      '#/phone invalid_phone',
    ])
    assert.deepEqual(refusal(await send({ phone: undefined, contact_id: '999999' })), [404, 'not_found'])
    assert.equal((await send({ phone: '+1 (555) 010-0042', dry_run: true })).status, 201)
    await server()
      .db.updateTable('workspaces')
      .set({ contact_limit: 1 })
      .where('id', '=', workspace.id)
      .execute()
    const limited = await makeWorkspace(server(), { contact_limit: 1 })
    await plantTemplates(server(), limited, {})
    const call = callAs(server(), limited.owner.key)
    assert.equal(
      (await call('messaging_send_template', { phone: '+15550100042', template: update }, confirm)).status,
      201,
    )
    assert.deepEqual(
      refusal(await call('messaging_send_template', { phone: '+15550100043', template: update }, confirm)),
      [403, 'forbidden', 'contact_limit'],
    )
    assert.equal(
      (await call('messaging_send_template', { phone: '+15550100042', template: update }, confirm)).status,
      201,
    )
  })

  it('go out on the channel asked for, that of the latest conversation, or the default one', async () => {
    const { workspace, run, call } = await scene()
    const { db, app } = server()
    const channel = (fields: object) =>
      createChannel(
        db,
        workspace.id,
        { type: 'chatapp', name: 'C', status: 'connected', account_id: `77${workspace.id}`, ...fields },
        app.now(),
      )
    const second = await channel({ provider_phone_number_id: `662${workspace.id}` })
    const off = await channel({ provider_phone_number_id: `663${workspace.id}`, status: 'disconnected' })
    const web = await channel({ type: 'web' })
    const elsewhere = await channel({ provider_phone_number_id: `664${workspace.id}`, account_id: '1' })
    await server().sync(workspace.id)
    const main = (await run('workspace_channels')).data.find((c: { is_default: boolean }) => c.is_default).id
    const { contactId } = await plantConversation(server(), workspace.id, { channelId: second.id })
    const stranger = (await run('crm_upsert_contact', { phone: `+${anyPhone()}` })).id
    const used = async (input: object) => {
      const { body: sent } = await call('messaging_send_template', { template: update, ...input }, confirm)
      return (await run('inbox_get_conversation', { conversation_id: sent.conversation_id })).channel.id
    }
    assert.equal(await used({ contact_id: contactId }), second.id)
    assert.equal(await used({ contact_id: stranger }), main)
    assert.equal(await used({ contact_id: contactId, channel_id: main }), main)
    await plantConversation(server(), workspace.id, {
      contactId,
      channelId: off.id,
      inboundAt: new Date(Date.parse(app.now()) + 1000).toISOString(),
    })
    assert.equal(await used({ contact_id: contactId }), main, 'the latest on a channel that can send')
    const ask = (input: object, key = workspace.owner.key) =>
      callAs(server(), key)('messaging_send_template', {
        contact_id: contactId,
        template: update,
        dry_run: true,
        ...input,
      })
    assert.deepEqual(refusal(await ask({ channel_id: off.id })), [409, 'conflict', 'channel_not_connected'])
    assert.deepEqual(refusal(await ask({ channel_id: web.id })), [409, 'conflict', 'channel_not_supported'])
    assert.deepEqual(
      refusal(await ask({ channel_id: elsewhere.id })),
      [404, 'not_found'],
      'no such template on that account',
    )
    assert.deepEqual(refusal(await ask({ channel_id: '999999' })), [404, 'not_found'])
    const agent = await workspace.staff({ channel_ids: [second.id] })
    assert.deepEqual(refusal(await ask({ channel_id: main }, agent.key)), [404, 'not_found'])
    assert.deepEqual(refusal(await ask({ contact_id: stranger }, agent.key)), [
      400,
      'invalid_input',
      'channel_required',
      '#/channel_id required',
    ])
    assert.equal((await ask({ contact_id: contactId }, agent.key)).status, 201)
  })

  it('are approved ones, by name and language', async () => {
    const { send } = await scene(
      {},
      { name: 'waiting', status: 'PENDING' },
      { name: 'paused', status: 'PAUSED' },
      { name: 'anyones', account_id: null },
      { name: 'others', account_id: '1' },
    )
    for (const [name, status] of [
      ['waiting', 'PENDING'],
      ['paused', 'PAUSED'],
    ] as const) {
      const reply = await send({ template: { ...update, name } })
      assert.deepEqual(
        [...refusal(reply), reply.body.status],
        [409, 'conflict', 'template_not_approved', 409],
      )
      assert.ok(reply.body.detail.includes(status))
    }
    assert.equal((await send({ template: { ...update, name: 'anyones' }, dry_run: true })).status, 201)
    for (const template of [
      { ...update, name: 'others' },
      { ...update, name: 'none' },
      { ...update, language: 'en' },
    ])
      assert.deepEqual(refusal(await send({ template })), [404, 'not_found'])
  })

  it('have the values that they ask for', async () => {
    const { send, sandbox, phone } = await scene()
    for (const [template, errors] of [
      [{ ...update, body: ['Ada'] }, ['#/template/body/1 required']],
      [{ ...update, body: ['a', 'b', 'c'] }, ['#/template/body/2 too_many']],
      [{ ...update, body: ['a', 'b\nc'] }, ['#/template/body/1 line_break']],
      [
        { ...update, header: { text: 'x' }, buttons: [{ index: 0 }] },
        ['#/template/header/text not_in_template', '#/template/buttons/0/index not_in_template'],
      ],
    ] as const) {
      const reply = await send({ template })
      assert.deepEqual(
        refusal(reply),
        [400, 'invalid_input', 'template_values', ...errors],
        JSON.stringify(template),
      )
      assert.ok(reply.body.errors.every((e: { fix: string }) => e.fix.endsWith('.')))
    }
    assert.match(
      (await send({ template: { ...update, body: ['a', 'b\nc'] } })).body.detail,
      /^template\.body\[1\] has a line break/,
    )
    assert.deepEqual(await sandbox.sent(phone), [])
  })

  it('of every kind are taken by the provider as they are built', async () => {
    const { send, sandbox, phone } = await scene(
      {
        name: 'pictured',
        category: 'MARKETING',
        components: [
          { type: 'HEADER', format: 'IMAGE' },
          { type: 'BODY', text: 'Sale until {{1}}' },
          { type: 'FOOTER', text: 'Bye' },
          {
            type: 'BUTTONS',
            buttons: [
              { type: 'QUICK_REPLY', text: 'Stop' },
              {
                type: 'URL',
                text: 'Shop',
                url: 'https://shop.example.com/{{1}}',
                example: ['https://shop.example.com/a'],
              },
              { type: 'COPY_CODE', example: 'CODE' },
            ],
          },
        ],
      },
      {
        name: 'titled',
        components: [
          { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' },
          { type: 'BODY', text: 'Hello' },
        ],
      },
      {
        name: 'placed',
        components: [
          { type: 'HEADER', format: 'LOCATION' },
          { type: 'BODY', text: 'Here' },
        ],
      },
      {
        name: 'coded',
        category: 'AUTHENTICATION',
        components: [
          { type: 'BODY', add_security_recommendation: true },
          { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }] },
        ],
      },
      {
        name: 'offered',
        category: 'MARKETING',
        components: [
          { type: 'BODY', text: 'Now' },
          { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Ends', has_expiration: true } },
          { type: 'BUTTONS', buttons: [{ type: 'COPY_CODE', example: 'CODE' }] },
        ],
      },
      {
        name: 'carded',
        category: 'MARKETING',
        components: [
          { type: 'BODY', text: 'See' },
          {
            type: 'CAROUSEL',
            cards: [1, 2].map((n) => ({
              components: [
                { type: 'HEADER', format: 'IMAGE' },
                { type: 'BODY', text: `Card ${n} for {{1}}` },
                {
                  type: 'BUTTONS',
                  buttons: [
                    {
                      type: 'URL',
                      text: 'Buy',
                      url: 'https://shop.example.com/{{1}}',
                      example: ['https://shop.example.com/a'],
                    },
                  ],
                },
              ],
            })),
          },
        ],
      },
      { name: 'plain', components: [{ type: 'BODY', text: 'Hello' }] },
    )
    const media_url = 'https://files.example.com/a.png'
    const language = 'en_US'
    for (const template of [
      {
        name: 'pictured',
        header: { media_url },
        body: ['Monday'],
        buttons: [
          { index: 1, text: 'a' },
          { index: 2, coupon_code: 'CODE' },
          { index: 0, payload: 'STOP' },
        ],
      },
      { name: 'titled', header: { text: 'Ada' } },
      { name: 'placed', header: { latitude: 1, longitude: 2, name: 'Shop' } },
      { name: 'coded', body: ['123456'] },
      {
        name: 'offered',
        offer_expires_at: '2099-01-01T00:00:00Z',
        buttons: [{ index: 0, coupon_code: 'CODE' }],
      },
      {
        name: 'carded',
        cards: [1, 2].map((n) => ({
          header: { media_url },
          body: ['Ada'],
          buttons: [{ index: 0, text: `${n}` }],
        })),
      },
      { name: 'plain' },
    ]) {
      const reply = await send({ template: { language, ...template } })
      assert.equal(reply.status, 201, `${template.name}: ${reply.text}`)
      assert.equal(reply.body.message.has_media, template.name === 'pictured')
    }
    assert.equal((await sandbox.sent(phone)).length, 7)
  })

  it('of marketing do not go to those who want none', async () => {
    const { run, call, sandbox, phone, send } = await scene({}, { name: 'sale', category: 'MARKETING' })
    const { id } = await run('crm_upsert_contact', { phone: `+${phone}` })
    const sale = { template: { ...update, name: 'sale' } }
    await sandbox.fault({ to: `+${phone}`, code: 131050 })
    assert.deepEqual(
      refusal(await send(sale)),
      [409, 'conflict', 'do_not_disturb'],
      'the provider knows it first',
    )
    assert.equal((await run('crm_get_contact', { contact_id: id })).dnd, true)
    assert.deepEqual(refusal(await send(sale)), [409, 'conflict', 'do_not_disturb'])
    assert.equal((await send({ dry_run: true })).status, 201, 'what is no marketing does')
    await run('crm_update_contact', { contact_id: id, dnd: false })
    const sent = (await call('messaging_send_template', { contact_id: id, ...sale }, confirm)).body.message
    await sandbox.status(sent.id, 'failed', 131050)
    assert.equal((await run('crm_get_contact', { contact_id: id })).dnd, true)
  })

  it('with codes go to phone numbers alone', async () => {
    const { workspace, sandbox, run, call } = await scene(
      {},
      {
        name: 'coded',
        category: 'AUTHENTICATION',
        components: [
          { type: 'BODY', add_security_recommendation: true },
          { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }] },
        ],
      },
    )
    await sandbox.say({ user_id: 'US.13491208655302741918', name: 'Grace', text: 'Hi' })
    const { id } = (await run('crm_search_contacts', { query: 'Grace' })).data[0]
    assert.deepEqual(
      refusal(
        await call(
          'messaging_send_template',
          { contact_id: id, template: { name: 'coded', language: 'en_US', body: ['123456'] } },
          confirm,
        ),
      ),
      [409, 'conflict', 'phone_required'],
    )
    assert.equal(
      (await call('messaging_send_template', { contact_id: id, template: update }, confirm)).status,
      201,
    )
    assert.equal((await sandbox.sent()).filter((m) => m['recipient'] === 'US.13491208655302741918').length, 1)
    assert.ok(workspace.id)
  })
})
