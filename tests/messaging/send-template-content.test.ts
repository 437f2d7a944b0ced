import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { NewTemplate } from '../templates/insert-template.ts'
import { everyDatabase } from '../doors.ts'
import { generatePhone, summarizeReply } from './fixtures.ts'
import { createTemplateScene, ORDER_UPDATE } from './send-template.ts'

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

everyDatabase('Sending templates: content', (server) => {
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
