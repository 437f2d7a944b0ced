import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { everyDatabase, everyDoor } from '../doors.ts'
import { runs } from '../level.ts'
import { postWebhook } from '../provider/webhook-fixture.ts'
import { validDrafts } from './draft-arbitraries.ts'
import { acceptedDrafts, createTemplateDriver } from './drafts.ts'
import { plantSamples, sampleHandles } from './samples.ts'
import { createTemplateFixture, submit } from './template-fixture.ts'

type Json = Record<string, any>

/** Returns what two templates of the same draft have in common. */
const withoutIdentity = ({ id, name, status, created_at, updated_at, ...rest }: Json): Json => ({
  ...rest,
  draft: { ...rest.draft, name: '' },
  send_schema: { ...rest.send_schema, properties: { ...rest.send_schema.properties, name: null } },
  send_example: {
    ...rest.send_example,
    name: '',
    ...(rest.send_example.offer_expires_at === undefined ? {} : { offer_expires_at: '' }),
  },
})

const codeDraft = {
  name: 'zero_tap_code',
  language: 'en_US',
  category: 'AUTHENTICATION',
  body: { add_security_recommendation: true },
  footer: { code_expiration_minutes: 15 },
  buttons: [
    {
      type: 'OTP',
      otp_type: 'ZERO_TAP',
      text: 'Copy it',
      supported_apps: [
        { package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' },
        { package_name: 'com.example.till', signature_hash: 'abcdefghij=' },
      ],
      zero_tap_terms_accepted: true,
    },
  ],
}

everyDatabase('Templates: read back', (server) => {
  const setUp = () => createTemplateFixture(server())

  it('what was submitted reads back whole, and makes the same template under another name', async () => {
    const { create, run } = await setUp()
    let count = 0
    await fc.assert(
      fc.asyncProperty(validDrafts, async (random) => {
        const submitAs = async (draft: object): Promise<Json> => {
          const reply = await create({ ...draft, name: `t${count++}` })
          assert.equal(reply.status, 201, reply.text)
          const template = await run('messaging_get_template', { template_id: reply.body.id })
          return { ...template, payload: reply.body.payload_preview }
        }
        const first = await submitAs(random)
        assert.ok(first['draft'], JSON.stringify(random))
        const second = await submitAs(first['draft'])
        assert.deepEqual(withoutIdentity(second), withoutIdentity(first))
      }),
      { numRuns: runs(25, 300) },
    )
  })

  it('the draft has every given member, and none that was not given', async () => {
    const { create, run } = await setUp()
    for (const given of [...acceptedDrafts, codeDraft] as Json[]) {
      const { id } = (await create(given)).body
      const { draft } = await run('messaging_get_template', { template_id: id })
      // Defaults are written out.
      const { limited_time_offer: offer, buttons, body } = given
      assert.deepEqual(draft, {
        ...given,
        ...(given['category'] === 'AUTHENTICATION'
          ? { body: { add_security_recommendation: body.add_security_recommendation ?? false } }
          : {}),
        ...(offer ? { limited_time_offer: { has_expiration: false, ...offer } } : {}),
        ...(buttons
          ? {
              buttons: buttons.map((button: Json) =>
                button['type'] === 'FLOW' ? { flow_action: 'NAVIGATE', ...button } : button,
              ),
            }
          : {}),
      })
    }
  })

  it('a review, a change of category and an edit keep what was submitted', async () => {
    const { create, run, sandbox } = await setUp()
    for (const given of acceptedDrafts.filter(({ category }) => category !== 'AUTHENTICATION')) {
      const { id } = (await create(given)).body
      const get = (): Promise<Json> => run('messaging_get_template', { template_id: id })
      const before = await get()
      await sandbox.review(id, 'reject', 'Say which shop writes.')
      await sandbox.review(id, 'category', undefined, 'MARKETING')
      await sandbox.review(id, 'pause', 'Customers reported it often.')
      const { draft, cards, buttons, header, body } = await get()
      assert.deepEqual(
        { draft, cards, buttons, header, body },
        {
          draft: { ...before['draft'], category: 'MARKETING' },
          cards: before['cards'],
          buttons: before['buttons'],
          header: before['header'],
          body: before['body'],
        },
      )
      // The draft as it was read can be edited and submitted.
      const edited = {
        ...draft,
        body: { ...draft.body, text: `${draft.body.text as string} Thank you very much.` },
      }
      await run('messaging_update_template', { template_id: id, template: edited })
      assert.deepEqual((await get())['draft'], edited)
      await sandbox.review(id, 'approve')
      assert.deepEqual((await get())['draft'], edited)
    }
  })

  it('a pause keeps the reason of the reviewer: in get, in the list and in the event', async () => {
    const { create, run, events, sandbox } = await setUp()
    const { id } = (await create(acceptedDrafts[0]!)).body
    await sandbox.review(id, 'approve')
    await sandbox.review(id, 'pause', 'Customers reported it often.')
    const details: Json = await run('messaging_get_template', { template_id: id })
    const [row] = (await run('messaging_list_templates', { status: 'paused' })).data
    for (const { status, rejection_reason: reason } of [details, row, (await events()).at(-1)] as Json[])
      assert.deepEqual([status, reason], ['PAUSED', 'Customers reported it often.'])
    assert.equal(details['meta_errors'].other_info.description, 'Customers reported it often.')
    await sandbox.review(id, 'pause')
    assert.equal((await run('messaging_get_template', { template_id: id })).rejection_reason, null)
  })

  it('texts that were edited at the provider are shown; samples, media and the rest are kept', async () => {
    const { create, run, workspace, sandbox } = await setUp()
    const update = async (name: string, change: Json): Promise<void> => {
      const [template] = (await sandbox.templates()).filter((one) => one.name === name)
      const value = {
        message_template_id: Number(template!.id),
        message_template_name: name,
        message_template_language: 'en_US',
        ...change,
      }
      const changes = [{ field: 'message_template_components_update', value }]
      const body = {
        object: 'whatsapp_business_account',
        entry: [{ id: `77${workspace.id}`, time: 1, changes }],
      }
      assert.equal((await postWebhook(server(), JSON.stringify(body))).status, 200)
      await server().app.jobs.job('provider-updates').runOnce()
    }
    const drafts = Object.fromEntries(acceptedDrafts.map((draft) => [draft.name, draft])) as Record<
      string,
      Json
    >
    const get = async (name: string): Promise<Json> => {
      const [row] = (await run('messaging_list_templates', { search: name })).data
      return (await run('messaging_get_template', { template_id: row.id }))['draft']
    }
    const rich: Json = { ...drafts['titled'], language: 'en_US' }
    for (const draft of [drafts['spring_offer']!, drafts['cards']!, drafts['login_code']!, rich])
      assert.equal((await create(draft)).status, 201)

    const [offer, cards, code] = [await get('spring_offer'), await get('cards'), await get('login_code')]
    await update('spring_offer', {
      message_template_element: 'Everything for less until Monday.',
      message_template_buttons: [
        {
          message_template_button_type: 'URL',
          message_template_button_text: 'Shop now',
          message_template_button_url: 'https://shop.example.com/{{1}}',
        },
      ],
    })
    assert.deepEqual(await get('spring_offer'), {
      ...offer,
      body: { text: 'Everything for less until Monday.' },
      buttons: [offer['buttons'][0], { ...offer['buttons'][1], text: 'Shop now' }],
    })
    await update('cards', { message_template_element: 'Our newest coffees are here.' })
    assert.deepEqual(await get('cards'), { ...cards, body: { text: 'Our newest coffees are here.' } })
    await update('login_code', { message_template_element: '*{{1}}* is your verification code.' })
    assert.deepEqual(await get('login_code'), code)
    await update('titled', {
      message_template_title: 'News for {{1}}',
      message_template_element: 'Everything is ready.',
      message_template_footer: 'Thank you',
      message_template_buttons: [],
    })
    assert.deepEqual(await get('titled'), {
      ...rich,
      header: { format: 'TEXT', text: 'News for {{1}}', example: 'Ada' },
      body: { text: 'Everything is ready.' },
      footer: { text: 'Thank you' },
      buttons: rich['buttons'].map((button: Json) =>
        button['type'] === 'FLOW' ? { flow_action: 'NAVIGATE', ...button } : button,
      ),
    })
  })

  it("templates that no draft can express have none, and the provider's own form of codes has one", async () => {
    const { insert, run } = await setUp()
    const body = { type: 'BODY', text: 'Look at this.' }
    const read = async (name: string, components: unknown[], category = 'MARKETING'): Promise<Json> =>
      run('messaging_get_template', { template_id: await insert({ name, category, components }) })
    for (const [name, components] of [
      ['named', [{ type: 'BODY', text: 'Hello {{first_name}} of ours.' }]],
      ['catalog', [body, { type: 'BUTTONS', buttons: [{ type: 'CATALOG', text: 'See all' }] }]],
      ['calls', [body, { type: 'CALL_PERMISSION_REQUEST' }]],
      ['moving', [body, { type: 'HEADER', format: 'GIF', example: { header_handle: ['4::a'] } }]],
    ] as const)
      assert.equal((await read(name, [...components]))['draft'], null, name)
    const named = await read('named_too', [{ type: 'BODY', text: 'Hello {{first_name}} of ours.' }])
    assert.equal(named['parameter_format'], 'NAMED')
    const code = await read(
      'code',
      [
        { type: 'BODY', text: '*{{1}}* is your verification code.', add_security_recommendation: true },
        { type: 'FOOTER', text: 'This code expires in 10 minutes.', code_expiration_minutes: 10 },
        {
          type: 'BUTTONS',
          buttons: [
            {
              type: 'URL',
              text: 'Copy code',
              url: 'https://www.example.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}',
              example: ['https://www.example.com/otp/code/?otp_type=COPY_CODE&code=otp123456'],
            },
          ],
        },
      ],
      'AUTHENTICATION',
    )
    assert.deepEqual(code['draft'], {
      name: 'code',
      language: 'en_US',
      category: 'AUTHENTICATION',
      body: { add_security_recommendation: true },
      footer: { code_expiration_minutes: 10 },
      buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy code' }],
    })
    assert.equal(code['code_expiration_minutes'], 10)
  })
})

everyDoor('Templates: read back', (test) => {
  test('cards, code expiry, codes and apps are returned', async ({ server, workspace, call, door }) => {
    if (!door.confirms) return
    await plantSamples(server.db)
    const get = async (template: Json): Promise<Json> => {
      const created = await call(
        'messaging_create_template',
        { template },
        { ...submit, idempotencyKey: `read-back-${workspace.id}-${template['name']}` },
      )
      assert.equal(created.status, 201, created.text)
      return (await call('messaging_get_template', { template_id: created.body.id })).body
    }
    const code = await get(codeDraft)
    assert.deepEqual(
      [code['code_expiration_minutes'], code['body'].add_security_recommendation, code['draft']],
      [15, true, codeDraft],
    )
    const [otp] = code['buttons']
    assert.deepEqual(
      [otp.otp_type, otp.supported_apps, otp.zero_tap_terms_accepted],
      ['ZERO_TAP', codeDraft.buttons[0]!.supported_apps, true],
    )
    const cards = await get(acceptedDrafts.find(({ name }) => name === 'cards')!)
    assert.equal(cards['carousel_cards'], 2)
    assert.deepEqual(
      cards['cards'].map((card: Json) => [
        card['header'].format,
        card['header'].variables[0].media_sample,
        card['body'].text,
        card['body'].variables,
        card['buttons'].map((button: Json) => [button['type'], button['text'], button['url_example']]),
      ]),
      [1, 2].map((n) => [
        'IMAGE',
        sampleHandles.IMAGE,
        `Coffee for {{1}} in size ${n}.`,
        [{ index: 1, sample: 'Ada' }],
        [
          ['URL', 'Buy', `https://shop.example.com/${n}`],
          ['QUICK_REPLY', 'Not now', null],
        ],
      ]),
    )
    const sandbox = createTemplateDriver(server, workspace)
    await sandbox.review(cards['id'], 'approve')
    const row = (await call('messaging_list_templates', { search: 'cards' })).body.data[0]
    assert.deepEqual([row.status, row.cards], ['APPROVED', cards['cards']])
  })
})
