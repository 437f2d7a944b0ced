import assert from 'node:assert/strict'
import { it } from 'node:test'
import { plantSamples, sampleFiles, sampleHandles } from '../templates/samples.ts'
import { everySandbox, type SandboxFixture } from './sandbox-fixture.ts'

const bodyComponent = { type: 'BODY', text: 'Your order is on its way.' }
const withButtons = (...buttons: object[]) => [bodyComponent, { type: 'BUTTONS', buttons }]
const buildCard = (format: 'IMAGE' | 'VIDEO', ...buttons: object[]) => ({
  components: [
    { type: 'HEADER', format, example: { header_handle: [sampleHandles[format]] } },
    { type: 'BUTTONS', buttons },
  ],
})
const quickReply = { type: 'QUICK_REPLY', text: 'Yes' }
const otpButton = { type: 'OTP', otp_type: 'COPY_CODE' }

const invalidTemplates: [
  category: string,
  components: object[],
  subcode: number | undefined,
  message: RegExp,
][] = [
  ['UTILITY', [bodyComponent, bodyComponent], undefined, /only one component of type BODY/],
  [
    'UTILITY',
    [{ ...bodyComponent, text: '😀'.repeat(1025) }],
    2388040,
    /at most 1024 characters, and has 1025/,
  ],
  [
    'UTILITY',
    [{ ...bodyComponent, text: 'Hello {{1}}, {{2}} x.', example: { body_text: [['Ada', 'B']] } }],
    2388293,
    /number of variables/,
  ],
  [
    'UTILITY',
    [{ ...bodyComponent, text: 'Hello {{01}} there.', example: { body_text: [['Ada']] } }],
    2388072,
    /written \{\{1\}\}/,
  ],
  ['UTILITY', [{ ...bodyComponent, example: { body_text: [['Ada']] } }], 2388043, /0 needed/],
  [
    'UTILITY',
    [{ ...bodyComponent, text: 'Hello {{1}} there.', example: { body_text: [['Ada\nLovelace']] } }],
    2388072,
    /new lines/,
  ],
  ['UTILITY', [bodyComponent, { type: 'HEADER', format: 'TEXT', text: 'Big 🎉' }], 2388047, /emojis/],
  ['UTILITY', [bodyComponent, { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' }], 2388043, /example/],
  ['UTILITY', [bodyComponent, { type: 'FOOTER', code_expiration_minutes: 5 }], 2388073, /expiration/],
  [
    'UTILITY',
    withButtons({ type: 'URL', text: 'Shop', url: 'https://wa.me/1555' }),
    undefined,
    /Direct links/,
  ],
  [
    'UTILITY',
    withButtons({ type: 'PHONE_NUMBER', text: 'Call', phone_number: '0301234' }),
    undefined,
    /international/,
  ],
  [
    'UTILITY',
    withButtons(quickReply, { type: 'VOICE_CALL', text: 'Call' }, { ...quickReply, text: 'No' }),
    undefined,
    /together/,
  ],
  ['UTILITY', withButtons(quickReply, quickReply), undefined, /same text/],
  ['UTILITY', withButtons(otpButton), undefined, /Only authentication/],
  [
    'MARKETING',
    [
      bodyComponent,
      { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Ends soon', has_expiration: true } },
    ],
    undefined,
    /COPY_CODE/,
  ],
  [
    'MARKETING',
    [bodyComponent, { type: 'CAROUSEL', cards: [buildCard('IMAGE', quickReply)] }],
    undefined,
    /2 to 10 cards/,
  ],
  [
    'MARKETING',
    [
      bodyComponent,
      { type: 'CAROUSEL', cards: [buildCard('IMAGE', quickReply), buildCard('VIDEO', quickReply)] },
    ],
    undefined,
    /same header format/,
  ],
  [
    'AUTHENTICATION',
    [
      { type: 'BODY', text: 'Your code' },
      { type: 'BUTTONS', buttons: [otpButton] },
    ],
    2388072,
    /text of its own/,
  ],
  ['AUTHENTICATION', [{ type: 'BODY' }], undefined, /one button, of type OTP/],
  [
    'AUTHENTICATION',
    [{ type: 'BODY' }, { type: 'HEADER', format: 'LOCATION' }, { type: 'BUTTONS', buttons: [otpButton] }],
    undefined,
    /can't have a component of type HEADER/,
  ],
]

everySandbox('Sandbox: template checks', (withSandbox) => {
  it('create: each invalid component is rejected with its subcode and message', async () => {
    await withSandbox(async (fixture) => {
      for (const [n, [category, components, subcode, message]] of invalidTemplates.entries()) {
        const { status, body: answer } = await fixture.call(
          'POST',
          `v23.0/${fixture.account}/message_templates`,
          {
            name: `bad_${n}`,
            language: 'en',
            category,
            components,
          },
        )
        assert.deepEqual(
          [status, answer.error?.code, answer.error?.error_subcode],
          [400, 100, subcode],
          JSON.stringify([components, answer]),
        )
        assert.match(answer.error.error_user_msg, message)
        assert.ok(answer.error.error_user_title)
      }
    })
  })

  it('update: changed components are checked like new ones', async () => {
    await withSandbox(async (fixture) => {
      const { body: created } = await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
        name: 'a',
        language: 'en',
        category: 'UTILITY',
        components: [bodyComponent],
      })
      await fixture.control('POST', 'review', { template_id: created.id, decision: 'approve' })
      const edit = (components: object[]) => fixture.call('POST', `v23.0/${created.id}`, { components })
      assert.equal((await edit(withButtons({ type: 'VOICE_CALL' }))).status, 400)
      assert.deepEqual((await edit(withButtons({ type: 'VOICE_CALL', text: 'Call' }))).body, {
        success: true,
      })
    })
  })

  it('review: adjacent variables are accepted on creation and rejected in review with a reason', async () => {
    await withSandbox(async (fixture) => {
      await plantSamples(fixture.db)
      const create = async (name: string, components: object[]) =>
        (
          await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
            name,
            language: 'en',
            category: 'MARKETING',
            components,
          })
        ).body
      const adjacent = {
        type: 'BODY',
        text: 'Gift boxes for {{1}} \n{{2}} are ready in the shop.',
        example: { body_text: [['Ada', 'Grace']] },
      }
      const cards = [1, 2].map(() => ({
        components: [
          buildCard('IMAGE', quickReply).components[0],
          adjacent,
          { type: 'BUTTONS', buttons: [quickReply] },
        ],
      }))
      const separated = { ...adjacent, text: 'Gift boxes for {{1}} & {{2}} are ready in the shop.' }
      for (const [name, components] of [
        ['adjacent', [adjacent]],
        ['in_cards', [bodyComponent, { type: 'CAROUSEL', cards }]],
        ['separated', [separated]],
      ] as const)
        assert.equal((await create(name, [...components])).status, 'PENDING')
      fixture.clock.offsetMs += 2000
      await fixture.sandbox.drain()
      const statusUpdates = fixture.changes
        .filter(({ field }) => field === 'message_template_status_update')
        .map(({ value }) => [
          value.message_template_name,
          value.event,
          value.reason,
          value.rejection_info?.recommendation,
        ])
      const recommendation =
        'Separate parameters with descriptive text and ensure each parameter is clearly contextualized.'
      assert.deepEqual(statusUpdates.toSorted(), [
        ['adjacent', 'REJECTED', 'INVALID_FORMAT', recommendation],
        ['in_cards', 'REJECTED', 'INVALID_FORMAT', recommendation],
        ['separated', 'APPROVED', 'NONE', undefined],
      ])
      assert.match(
        fixture.changes.find(({ value }) => value.event === 'REJECTED')!.value.rejection_info.reason,
        /placed next to each other/,
      )
    })
  })

  it('media headers: the sample must be uploaded, and be of the type of the header', async () => {
    await withSandbox(async (fixture) => {
      const handles = {
        IMAGE: await upload(fixture, 'IMAGE'),
        VIDEO: await upload(fixture, 'VIDEO'),
        DOCUMENT: await upload(fixture, 'DOCUMENT'),
      }
      let count = 0
      const create = async (components: object[]) => {
        const { status, body } = await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
          name: `sample_${count++}`,
          language: 'en',
          category: 'MARKETING',
          components,
        })
        return status === 200
          ? 'accepted'
          : [status, body.error.code, body.error.error_subcode, body.error.error_user_msg]
      }
      const header = (format: string, handle: string) => ({
        type: 'HEADER',
        format,
        example: { header_handle: [handle] },
      })
      const carousel = (format: string, ...cardHandles: string[]) => [
        bodyComponent,
        {
          type: 'CAROUSEL',
          cards: cardHandles.map((handle) => ({
            components: [header(format, handle), { type: 'BUTTONS', buttons: [quickReply] }],
          })),
        },
      ]
      for (const [format, own] of Object.entries(handles))
        for (const handle of Object.values(handles)) {
          const outcome = await create([header(format, handle), bodyComponent])
          if (handle === own) assert.equal(outcome, 'accepted')
          else {
            assert.deepEqual(outcome.slice(0, 3), [400, 131009, 2494102])
            assert.match(outcome[3], new RegExp(`header of format ${format} must be of type`))
          }
        }
      for (const unknown of [
        `${handles.IMAGE}x`,
        '4::aW1hZ2UvanBlZw==:ARinvented',
        'https://a.example/a.png',
        'é',
      ])
        assert.match(
          String(await create([header('IMAGE', unknown), bodyComponent])),
          /not of an uploaded file/,
        )
      assert.equal(await create(carousel('IMAGE', handles.IMAGE, handles.IMAGE)), 'accepted')
      assert.match(
        String(await create(carousel('IMAGE', handles.IMAGE, handles.VIDEO))),
        /is of type video\/mp4/,
      )
      assert.match(String(await create(carousel('VIDEO', handles.VIDEO, '4::a'))), /not of an uploaded file/)
    })
  })

  it('media headers: an unfinished upload has no handle, and an edit needs samples too', async () => {
    await withSandbox(async (fixture) => {
      const handle = await upload(fixture, 'IMAGE')
      const components = (own: string) => [
        { type: 'HEADER', format: 'IMAGE', example: { header_handle: [own] } },
        bodyComponent,
      ]
      const { body: created } = await fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
        name: 'edited',
        language: 'en',
        category: 'UTILITY',
        components: components(handle),
      })
      await fixture.control('POST', 'review', { template_id: created.id, decision: 'approve' })
      const edit = (own: string) =>
        fixture.call('POST', `v23.0/${created.id}`, { components: components(own) })
      assert.equal((await edit('4::a')).body.error.error_subcode, 2494102)
      assert.deepEqual((await edit(handle)).body, { success: true })
    })
  })

  it('media headers: templates that were made elsewhere bring their samples', async () => {
    await withSandbox(async (fixture) => {
      const components = [
        { type: 'HEADER', format: 'VIDEO', example: { header_handle: [`4::${fixture.account}`] } },
        bodyComponent,
      ]
      await fixture.control('PUT', 'templates', {
        templates: [{ account_id: fixture.account, name: 'here', language: 'en', components }],
      })
      const create = (name: string, format: string) =>
        fixture.call('POST', `v23.0/${fixture.account}/message_templates`, {
          name,
          language: 'en',
          category: 'UTILITY',
          components: [{ ...components[0], format }, bodyComponent],
        })
      assert.equal((await create('again', 'VIDEO')).status, 200)
      assert.equal((await create('other', 'IMAGE')).body.error.error_subcode, 2494102)
    })
  })
})

/** Uploads a sample in the two steps of the provider; returns its handle. */
const upload = async ({ call }: SandboxFixture, format: keyof typeof sampleFiles): Promise<string> => {
  const { content_type: type, data } = sampleFiles[format]
  const bytes = Buffer.from(data, 'base64')
  const { body: session } = await call(
    'POST',
    `v23.0/1/uploads?file_type=${encodeURIComponent(type)}&file_length=${bytes.byteLength}`,
  )
  const { body } = await call('POST', `v23.0/${session.id}`, bytes, {
    file_offset: '0',
    'Content-Type': 'application/octet-stream',
  })
  return body.h as string
}
