import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace } from '../servers.ts'
import { createSandboxDriver, generatePhone, listEmittedEventTypes, summarizeReply } from './fixtures.ts'
import { createTemplateScene, insertSandboxTemplates, ORDER_UPDATE } from './send-template.ts'
import type { NewTemplate } from '../templates/insert-template.ts'

const confirm = { confirm: 'send' }

const FILE_URL = 'https://files.example.com/a.png'

/** A template of every kind. */
const TEMPLATES: Partial<NewTemplate>[] = [
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
]

/** Values for each of these templates. */
const TEMPLATE_VALUES = [
  {
    name: 'pictured',
    header: { media_url: FILE_URL },
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
      header: { media_url: FILE_URL },
      body: ['Ada'],
      buttons: [{ index: 0, text: `${n}` }],
    })),
  },
  { name: 'plain' },
]

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

  it('only approved templates, by name and language, can be sent', async () => {
    const { send } = await createTemplateScene(server(), [
      {},
      { name: 'waiting', status: 'PENDING' },
      { name: 'paused', status: 'PAUSED' },
      { name: 'any_account', account_id: null },
      { name: 'other_account', account_id: '1' },
    ])
    for (const [name, status] of [
      ['waiting', 'PENDING'],
      ['paused', 'PAUSED'],
    ] as const) {
      const reply = await send({ template: { ...ORDER_UPDATE, name } })
      assert.deepEqual(
        [...summarizeReply(reply), reply.body.status],
        [409, 'conflict', 'template_not_approved', 409],
      )
      assert.ok(reply.body.detail.includes(status))
    }
    assert.equal(
      (await send({ template: { ...ORDER_UPDATE, name: 'any_account' }, dry_run: true })).status,
      201,
    )
    for (const template of [
      { ...ORDER_UPDATE, name: 'other_account' },
      { ...ORDER_UPDATE, name: 'none' },
      { ...ORDER_UPDATE, language: 'en' },
    ])
      assert.deepEqual(summarizeReply(await send({ template })), [404, 'not_found'])
  })

  it('values: those that the template requires, and no others', async () => {
    const { send, sandbox, phone } = await createTemplateScene(server())
    for (const [template, errors] of [
      [{ ...ORDER_UPDATE, body: ['Ada'] }, ['#/template/body/1 required']],
      [{ ...ORDER_UPDATE, body: ['a', 'b', 'c'] }, ['#/template/body/2 too_many']],
      [{ ...ORDER_UPDATE, body: ['a', 'b\nc'] }, ['#/template/body/1 line_break']],
      [
        { ...ORDER_UPDATE, header: { text: 'x' }, buttons: [{ index: 0 }] },
        ['#/template/header/text not_in_template', '#/template/buttons/0/index not_in_template'],
      ],
    ] as const) {
      const reply = await send({ template })
      assert.deepEqual(
        summarizeReply(reply),
        [400, 'invalid_input', 'template_values', ...errors],
        JSON.stringify(template),
      )
      assert.ok(reply.body.errors.every((e: { fix: string }) => e.fix.endsWith('.')))
    }
    assert.match(
      (await send({ template: { ...ORDER_UPDATE, body: ['a', 'b\nc'] } })).body.detail,
      /^template\.body\[1\] has a line break/,
    )
    assert.deepEqual(await sandbox.sent(phone), [])
  })

  it('values of the text can be given by name', async () => {
    const named = 'Hello {{first_name}}, your code {{code}} is here.'
    const { send, sandbox, phone } = await createTemplateScene(server(), [
      {},
      { name: 'named', components: [{ type: 'BODY', text: named }] },
    ])
    const { body: _, ...positional } = ORDER_UPDATE
    const template = { name: 'named', language: 'en_US' }
    const variables = { code: '17', first_name: 'Ada' }
    const sent = await send({ template: { ...template, variables } })
    assert.deepEqual([sent.status, sent.body.preview], [201, 'Hello Ada, your code 17 is here.'])
    const second = await send({ template: { ...positional, variables: { 2: '18', 1: 'Bo' } } })
    assert.deepEqual([second.status, second.body.preview], [201, 'Hello Bo, your order 18 is on its way.'])
    for (const [given, errors] of [
      [{ variables: { code: '17' } }, ['#/template/variables/first_name required']],
      [{ variables: { ...variables, last_name: 'x' } }, ['#/template/variables/last_name unknown_field']],
      [{ variables: { ...variables, code: 'a\nb' } }, ['#/template/variables/code line_break']],
      [{ variables, body: ['Ada', '17'] }, ['#/template/variables ambiguous']],
    ] as const)
      assert.deepEqual(summarizeReply(await send({ template: { ...template, ...given } })), [
        400,
        'invalid_input',
        'template_values',
        ...errors,
      ])
    assert.equal((await sandbox.sent(phone)).length, 2)
  })

  it('the provider accepts the components of every kind of template', async () => {
    const { send, sandbox, phone } = await createTemplateScene(server(), TEMPLATES)
    for (const values of TEMPLATE_VALUES) {
      const reply = await send({ template: { language: 'en_US', ...values } })
      assert.equal(reply.status, 201, `${values.name}: ${reply.text}`)
      assert.equal(reply.body.message.has_media, values.name === 'pictured')
    }
    assert.equal((await sandbox.sent(phone)).length, 7)
  })

  it('marketing templates are not sent to contacts with do not disturb', async () => {
    const { run, call, sandbox, phone, send } = await createTemplateScene(server(), [
      {},
      { name: 'sale', category: 'MARKETING' },
    ])
    const { id } = await run('crm_upsert_contact', { phone: `+${phone}` })
    const sale = { template: { ...ORDER_UPDATE, name: 'sale' } }
    await sandbox.fault({ to: `+${phone}`, code: 131050 })
    assert.deepEqual(
      summarizeReply(await send(sale)),
      [409, 'conflict', 'do_not_disturb'],
      'the provider reports the opt-out',
    )
    assert.equal((await run('crm_get_contact', { contact_id: id })).dnd, true)
    assert.deepEqual(summarizeReply(await send(sale)), [409, 'conflict', 'do_not_disturb'])
    assert.equal((await send({ dry_run: true })).status, 201, 'other categories are sent')
    await run('crm_update_contact', { contact_id: id, dnd: false })
    const sent = (await call('messaging_send_template', { contact_id: id, ...sale }, confirm)).body.message
    await sandbox.status(sent.id, 'failed', 131050)
    assert.equal((await run('crm_get_contact', { contact_id: id })).dnd, true)
  })

  it('a customer who declined marketing before anybody knew of them is kept with that', async () => {
    const { run, call, sandbox } = await createTemplateScene(server(), [
      {},
      { name: 'sale', category: 'MARKETING' },
    ])
    const sale = { template: { ...ORDER_UPDATE, name: 'sale' } }
    const [declined, unreachable] = [generatePhone(), generatePhone()]
    await sandbox.fault({ to: `+${declined}`, code: 131050 })
    await sandbox.fault({ to: `+${unreachable}`, code: 131026 })
    for (const phone of [declined, unreachable])
      assert.ok(
        (await call('messaging_send_template', { phone: `+${phone}`, ...sale }, confirm)).status >= 400,
      )
    const find = async (phone: string) => (await run('crm_search_contacts', { query: phone })).data
    assert.deepEqual(await find(unreachable), [])
    const [kept] = await find(declined)
    assert.equal((await run('crm_get_contact', { contact_id: kept.id })).dnd, true)
  })

  it('no window is told of for a template, which needs none', async () => {
    const { sandbox, phone, send } = await createTemplateScene(server())
    await sandbox.fault({ to: `+${phone}`, code: 131047 })
    const refused = await send({})
    assert.deepEqual(summarizeReply(refused).slice(0, 2), [502, 'upstream_error'])
    assert.equal(refused.body.window, undefined)
  })

  it('authentication templates require a phone number', async () => {
    const { sandbox, run, call } = await createTemplateScene(server(), [
      {},
      {
        name: 'coded',
        category: 'AUTHENTICATION',
        components: [
          { type: 'BODY', add_security_recommendation: true },
          { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }] },
        ],
      },
    ])
    await sandbox.say({ user_id: 'US.13491208655302741918', name: 'Grace', text: 'Hi' })
    const { id } = (await run('crm_search_contacts', { query: 'Grace' })).data[0]
    assert.deepEqual(
      summarizeReply(
        await call(
          'messaging_send_template',
          { contact_id: id, template: { name: 'coded', language: 'en_US', body: ['123456'] } },
          confirm,
        ),
      ),
      [409, 'conflict', 'phone_required'],
    )
    assert.equal(
      (await call('messaging_send_template', { contact_id: id, template: ORDER_UPDATE }, confirm)).status,
      201,
    )
    assert.equal((await sandbox.sent()).filter((m) => m['recipient'] === 'US.13491208655302741918').length, 1)
  })
})
