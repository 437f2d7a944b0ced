import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everySandbox } from './sandbox-fixture.ts'

const bodyComponent = { type: 'BODY', text: 'Your order is on its way.' }
const withButtons = (...buttons: object[]) => [bodyComponent, { type: 'BUTTONS', buttons }]
const buildCard = (format: string, ...buttons: object[]) => ({
  components: [
    { type: 'HEADER', format, example: { header_handle: ['4::a'] } },
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
})
