import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { SendTemplate } from '../../catalog/send-template.ts'
import { fillTemplate } from '../../server/domains/messaging/template-fill.ts'
import type { TemplateValues } from '../../server/domains/messaging/template-values.ts'
import { describeParts } from '../../server/domains/messaging/template-parts.ts'

/** The business time at which templates are filled. */
const FILL_TIME = '2026-10-01T09:30:00.000Z'

type TemplatePart = Record<string, unknown>

const fill = (components: TemplatePart[], values: Partial<TemplateValues>, category = 'UTILITY') =>
  fillTemplate(
    { category, components },
    SendTemplate.parse({ name: 'x', language: 'en', ...values }),
    FILL_TIME,
  )

/** Fills a template with valid values. */
const fillValid = (components: TemplatePart[], values: Partial<TemplateValues>, category?: string) => {
  const filled = fill(components, values, category)
  assert.ok('components' in filled, JSON.stringify(filled))
  return filled
}

/** Fills a template with invalid values, and returns the pointer and code of each error. */
const fillInvalid = (
  components: TemplatePart[],
  values: Partial<TemplateValues>,
  category?: string,
): [pointer: string, code: string][] => {
  const filled = fill(components, values, category)
  assert.ok('errors' in filled, JSON.stringify(filled))
  for (const { detail, fix } of filled.errors) assert.ok(detail && fix && !detail.endsWith('.'))
  return filled.errors.map(({ pointer, code }) => [pointer!.replace('#/template', ''), code])
}

const textBody = (text: string) => ({ type: 'BODY', text })

const later = '2026-10-02T09:30:00Z'

describe('What a customer gets beside the text', () => {
  it('is named whole: offer, cards, where buttons lead, and what the provider may add', () => {
    const components = [
      textBody('Hi {{1}}'),
      { type: 'FOOTER', text: 'Bye', code_expiration_minutes: 5 },
      { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Now', has_expiration: true } },
      {
        type: 'CAROUSEL',
        cards: [
          {
            components: [
              { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['4::x'] } },
              textBody('Only {{1}}'),
              { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Buy', url: 'https://a.example/{{1}}' }] },
            ],
          },
        ],
      },
      {
        type: 'BUTTONS',
        buttons: [
          { type: 'COPY_CODE', text: 'Copy' },
          { type: 'QUICK_REPLY', text: 'Stop' },
          { type: 'FLOW', flow_id: '1' },
        ],
      },
    ]
    const values = {
      name: 'sale',
      language: 'en_US',
      body: ['Ada'],
      offer_expires_at: later,
      buttons: [
        { index: 0, coupon_code: '25OFF' },
        { index: 1, payload: 'STOP' },
      ],
      cards: [
        {
          header: { media_url: 'https://img.example/a.png' },
          body: ['two'],
          buttons: [{ index: 0, text: 'tea' }],
        },
      ],
    }
    assert.deepEqual(
      describeParts(components, values).map(({ part, text }) => `${part}: ${text}`),
      [
        'Footer: Bye, code_expiration_minutes 5',
        'Limited time offer: 2026-10-02T09:30:00Z, limited_time_offer {"text":"Now","has_expiration":true}',
        'Card 1, header (IMAGE): https://img.example/a.png',
        'Card 1, body: Only two',
        'Card 1, button 1 (URL): Buy',
        'Card 1, button 1 (URL) leads to: https://a.example/tea',
        'Button 1 (COPY_CODE): Copy',
        'Button 1 (COPY_CODE) leads to: code 25OFF',
        'Button 2 (QUICK_REPLY): Stop',
        'Button 2 (QUICK_REPLY) leads to: payload STOP',
        'Button 3 (FLOW): ',
        'Button 3 (FLOW) leads to: flow_id 1',
      ],
    )
  })
})

describe('Filling a template', () => {
  it('returns the components for the provider and a preview', () => {
    const components = [
      { type: 'HEADER', format: 'IMAGE' },
      textBody('Hi {{1}}, use {{2}}. {{1}}!'),
      { type: 'FOOTER', text: 'Bye' },
      {
        type: 'BUTTONS',
        buttons: [
          { type: 'QUICK_REPLY', text: 'Stop' },
          { type: 'URL', text: 'Shop', url: 'https://shop.example/{{1}}' },
          { type: 'URL', text: 'Home', url: 'https://shop.example/' },
          { type: 'COPY_CODE', text: 'Copy' },
          { type: 'PHONE_NUMBER', text: 'Call', phone_number: '15550100001' },
          { type: 'FLOW', text: 'Go', flow_id: '1' },
        ],
      },
      { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Now', has_expiration: true } },
    ]
    const filled = fillValid(components, {
      header: { media_url: 'https://img.example/a.png' },
      body: ['Ada', '25OFF'],
      offer_expires_at: later,
      buttons: [
        { index: 3, coupon_code: '25OFF' },
        { index: 1, text: 'spring' },
        { index: 0, payload: 'STOP' },
      ],
    })
    assert.equal(filled.preview, 'Hi Ada, use 25OFF. Ada!')
    assert.deepEqual(filled.components, [
      { type: 'header', parameters: [{ type: 'image', image: { link: 'https://img.example/a.png' } }] },
      {
        type: 'body',
        parameters: [
          { type: 'text', text: 'Ada' },
          { type: 'text', text: '25OFF' },
        ],
      },
      {
        type: 'button',
        sub_type: 'quick_reply',
        index: '0',
        parameters: [{ type: 'payload', payload: 'STOP' }],
      },
      { type: 'button', sub_type: 'url', index: '1', parameters: [{ type: 'text', text: 'spring' }] },
      {
        type: 'button',
        sub_type: 'copy_code',
        index: '3',
        parameters: [{ type: 'coupon_code', coupon_code: '25OFF' }],
      },
      {
        type: 'button',
        sub_type: 'flow',
        index: '5',
        parameters: [{ type: 'action', action: { flow_token: 'unused' } }],
      },
      {
        type: 'limited_time_offer',
        parameters: [
          { type: 'limited_time_offer', limited_time_offer: { expiration_time_ms: Date.parse(later) } },
        ],
      },
    ])
    assert.deepEqual(fillInvalid(components, {}), [
      ['/header/media_url', 'required'],
      ['/body/0', 'required'],
      ['/body/1', 'required'],
      ['/buttons/0/text', 'required'],
      ['/buttons/0/coupon_code', 'required'],
      ['/offer_expires_at', 'required'],
    ])
  })

  it('a template without variables needs no values', () => {
    const plain = [
      { type: 'HEADER', format: 'TEXT', text: 'News' },
      textBody('Hello'),
      { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: 'Ok' }] },
    ]
    assert.deepEqual(fillValid(plain, {}), { components: [], preview: 'Hello' })
    assert.deepEqual(fillValid(plain, { header: {}, body: [], buttons: [{ index: 0 }], cards: [] }), {
      components: [],
      preview: 'Hello',
    })
    assert.deepEqual(
      fillInvalid(plain, {
        header: { text: 'x' },
        body: ['a'],
        buttons: [{ index: 0, text: 'x' }, { index: 0 }, { index: 1 }],
        offer_expires_at: later,
        cards: [{}],
      }),
      [
        ['/header/text', 'not_in_template'],
        ['/body/0', 'too_many'],
        ['/buttons/1/index', 'duplicate'],
        ['/buttons/2/index', 'not_in_template'],
        ['/buttons/0/text', 'not_in_template'],
        ['/offer_expires_at', 'not_in_template'],
        ['/cards/0', 'too_many'],
      ],
    )
  })

  it('named variables get their name, in the order of the text', () => {
    const filled = fillValid(
      [
        { type: 'HEADER', format: 'TEXT', text: 'For {{first_name}}' },
        textBody('{{first_name}}, order {{order}} of {{first_name}}'),
      ],
      { header: { text: 'Ada' }, body: ['Ada', '17'] },
    )
    assert.deepEqual(filled, {
      preview: 'Ada, order 17 of Ada',
      components: [
        { type: 'header', parameters: [{ type: 'text', parameter_name: 'first_name', text: 'Ada' }] },
        {
          type: 'body',
          parameters: [
            { type: 'text', parameter_name: 'first_name', text: 'Ada' },
            { type: 'text', parameter_name: 'order', text: '17' },
          ],
        },
      ],
    })
    assert.equal(fillValid([textBody('{{2}} then {{1}}')], { body: ['one', 'two'] }).preview, 'two then one')
    assert.equal(
      fillValid([textBody('{{1}} and {{2}}')], { body: ['{{2}}', '$& $1'] }).preview,
      '{{2}} and $& $1',
      'placeholders in values are not replaced',
    )
  })

  it('values that the provider rejects are errors', () => {
    for (const [value, code] of [
      ['a\nb', 'line_break'],
      ['a\tb', 'line_break'],
      ['a\r', 'line_break'],
      ['   ', 'blank'],
      ['\u00a0', 'blank'],
      ['a     b', 'too_many_spaces'],
    ] as const)
      assert.deepEqual(
        fillInvalid([textBody('Hi {{1}}, {{2}}')], { body: ['ok', value] }),
        [['/body/1', code]],
        JSON.stringify(value),
      )
    assert.equal(fillValid([textBody('Hi {{1}}')], { body: ['a    b'] }).preview, 'Hi a    b')
    assert.deepEqual(fillInvalid([textBody(`${'x'.repeat(1000)} {{1}}`)], { body: ['y'.repeat(24)] }), [
      ['/body', 'too_long'],
    ])
    assert.equal(
      fillValid([textBody(`${'x'.repeat(1000)} {{1}}`)], { body: ['y'.repeat(23)] }).preview.length,
      1024,
    )
    const header = [{ type: 'HEADER', format: 'TEXT', text: 'Our {{1}} is on!' }, textBody('Hi')]
    assert.deepEqual(fillInvalid(header, { header: { text: 'y'.repeat(50) } }), [
      ['/header/text', 'too_long'],
    ])
    assert.deepEqual(fillInvalid(header, { header: { media_url: 'https://img.example/a.png' } }), [
      ['/header/media_url', 'not_in_template'],
      ['/header/text', 'required'],
    ])
    const linkAndCode = [
      textBody('Hi'),
      {
        type: 'BUTTONS',
        buttons: [{ type: 'URL', text: 'Shop', url: 'https://shop.example/{{1}}' }, { type: 'COPY_CODE' }],
      },
    ]
    assert.deepEqual(
      fillInvalid(linkAndCode, {
        buttons: [
          { index: 0, text: 'a b' },
          { index: 1, coupon_code: '1234567890123456' },
        ],
      }),
      [
        ['/buttons/0/text', 'not_in_url'],
        ['/buttons/1/coupon_code', 'too_long'],
      ],
    )
    assert.deepEqual(fillInvalid(linkAndCode, { buttons: [{ index: 1, text: 'a', coupon_code: 'A' }] }), [
      ['/buttons/1/text', 'required'],
      ['/buttons/0/text', 'not_in_template'],
    ])
  })

  it('header: one file of its format, or a location', () => {
    const document = [{ type: 'HEADER', format: 'DOCUMENT' }, textBody('Hi')]
    assert.deepEqual(
      fillValid(document, { header: { media_handle: '77', file_name: 'bill.pdf' } }).components[0],
      { type: 'header', parameters: [{ type: 'document', document: { id: '77', filename: 'bill.pdf' } }] },
    )
    assert.deepEqual(
      fillInvalid(document, { header: { media_handle: '77', media_url: 'https://a.example/' } }),
      [['/header/media_handle', 'ambiguous']],
    )
    assert.deepEqual(
      fillInvalid([{ type: 'HEADER', format: 'VIDEO' }, textBody('Hi')], {
        header: { media_handle: '77', file_name: 'a.mp4' },
      }),
      [['/header/file_name', 'not_in_template']],
    )
    const location = [{ type: 'HEADER', format: 'LOCATION' }, textBody('Hi')]
    assert.deepEqual(
      fillValid(location, { header: { latitude: 1.5, longitude: -2, name: 'Shop' } }).components[0],
      {
        type: 'header',
        parameters: [{ type: 'location', location: { latitude: 1.5, longitude: -2, name: 'Shop' } }],
      },
    )
    assert.deepEqual(fillInvalid(location, { header: { latitude: 0, text: 'x' } }), [
      ['/header/text', 'not_in_template'],
      ['/header/longitude', 'required'],
    ])
  })

  it('authentication: the code fills the body and the button', () => {
    const components = [
      { type: 'BODY', add_security_recommendation: true },
      { type: 'FOOTER', code_expiration_minutes: 5 },
      { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }] },
    ]
    assert.deepEqual(fillValid(components, { body: ['J$FpnYnP'] }, 'AUTHENTICATION'), {
      preview: 'J$FpnYnP is your verification code. For your security, do not share this code.',
      components: [
        { type: 'body', parameters: [{ type: 'text', text: 'J$FpnYnP' }] },
        { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: 'J$FpnYnP' }] },
      ],
    })
    assert.deepEqual(fillInvalid(components, {}, 'AUTHENTICATION'), [['/body/0', 'required']])
    for (const [value, code] of [
      ['1234567890123456', 'too_long'],
      ['12😀', 'not_a_code'],
      ['http://a.io', 'not_a_code'],
    ] as const)
      assert.deepEqual(fillInvalid(components, { body: [value] }, 'AUTHENTICATION'), [['/body/0', code]])
    assert.deepEqual(
      fillInvalid(components, { body: ['1'], buttons: [{ index: 0, text: '1' }] }, 'AUTHENTICATION'),
      [['/buttons/0/text', 'not_in_template']],
    )
  })

  it('an offer has to expire in the future', () => {
    const offer = (has_expiration: boolean) => [
      textBody('Hi'),
      { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Now', has_expiration } },
    ]
    assert.deepEqual(fillInvalid(offer(true), { offer_expires_at: FILL_TIME }), [
      ['/offer_expires_at', 'in_the_past'],
    ])
    assert.deepEqual(fillInvalid(offer(false), { offer_expires_at: later }), [
      ['/offer_expires_at', 'not_in_template'],
    ])
    assert.deepEqual(fillValid(offer(false), {}).components, [])
  })

  it('carousel: every card is filled', () => {
    const card = (text: string) => ({
      components: [
        { type: 'HEADER', format: 'IMAGE' },
        textBody(text),
        { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Buy', url: 'https://a.example/{{1}}' }] },
      ],
    })
    const components = [
      textBody('For {{1}}'),
      { type: 'CAROUSEL', cards: [card('First {{1}}'), card('Second')] },
    ]
    const values = (n: number) => ({
      header: { media_handle: `h${n}` },
      buttons: [{ index: 0, text: `p${n}` }],
    })
    const filled = fillValid(components, {
      body: ['Ada'],
      cards: [{ ...values(0), body: ['one'] }, values(1)],
    })
    assert.deepEqual(filled.components.at(-1), {
      type: 'carousel',
      cards: [0, 1].map((n) => ({
        card_index: n,
        components: [
          { type: 'header', parameters: [{ type: 'image', image: { id: `h${n}` } }] },
          ...(n === 0 ? [{ type: 'body', parameters: [{ type: 'text', text: 'one' }] }] : []),
          { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: `p${n}` }] },
        ],
      })),
    })
    assert.deepEqual(fillInvalid(components, { body: ['Ada'], cards: [values(0)] }), [
      ['/cards/0/body/0', 'required'],
      ['/cards/1', 'required'],
    ])
    assert.deepEqual(
      fillInvalid(components, {
        body: ['Ada'],
        cards: [{ ...values(0), body: ['a\nb'] }, { ...values(1), header: { text: 'x' } }, {}],
      }),
      [
        ['/cards/2', 'too_many'],
        ['/cards/0/body/0', 'line_break'],
        ['/cards/1/header/text', 'not_in_template'],
        ['/cards/1/header/media_url', 'required'],
      ],
    )
  })

  it('product buttons are not supported', () => {
    assert.deepEqual(
      fill([textBody('Hi'), { type: 'BUTTONS', buttons: [{ type: 'MPM', text: 'View' }] }], {}),
      {
        unsupported: 'MPM',
      },
    )
  })
})

type GeneratedButton = { type: string; url?: string }

const MEDIA_URL = 'https://a.example/x'
const value = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[a-z0-9]{1,8}$/) },
  fc.constantFrom('a\nb', ' ', '     x', '{{1}}'),
)
const bodyText = fc
  .array(fc.oneof(fc.constantFrom('a', 'b, ', ' {{1}}', ' {{2}}', ' {{3}}'), fc.constant(' {{name}}')), {
    maxLength: 6,
  })
  .map((parts) => `Hi${parts.join('')}`)
const button = fc.constantFrom<GeneratedButton>(
  { type: 'QUICK_REPLY' },
  { type: 'URL', url: 'https://a.example/{{1}}' },
  { type: 'URL', url: 'https://a.example/' },
  { type: 'COPY_CODE' },
  { type: 'PHONE_NUMBER' },
)
const header = fc.constantFrom<TemplatePart | undefined>(
  undefined,
  { type: 'HEADER', format: 'TEXT', text: 'Plain' },
  { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' },
  { type: 'HEADER', format: 'IMAGE' },
  { type: 'HEADER', format: 'LOCATION' },
)
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Values of any shape, which fit a template by chance only. */
const anyValues = fc.record(
  {
    header: optional(
      fc.record(
        {
          text: value,
          media_url: fc.constant(MEDIA_URL),
          latitude: fc.constant(1),
          longitude: fc.constant(2),
        },
        { requiredKeys: [] },
      ),
    ),
    body: optional(fc.array(value, { maxLength: 4 })),
    buttons: optional(
      fc.array(
        fc.record(
          { index: fc.integer({ min: 0, max: 3 }), text: value, payload: value, coupon_code: value },
          { requiredKeys: ['index'] },
        ),
        { maxLength: 3 },
      ),
    ),
  },
  { requiredKeys: [] },
)

const countVariables = (text: string): number => new Set(text.match(/\{\{\w+\}\}/g) ?? []).size
const needsValue = ({ type, url }: GeneratedButton): boolean =>
  type === 'COPY_CODE' || url?.includes('{{') === true

const validHeader = (part: TemplatePart | undefined) => {
  if (part?.['format'] === 'IMAGE') return { media_url: MEDIA_URL }
  if (part?.['format'] === 'LOCATION') return { latitude: 1, longitude: 2 }
  return part?.['text'] === 'For {{1}}' ? { text: 'x' } : undefined
}

/** Returns values that the template accepts. */
const validValues = (text: string, head: TemplatePart | undefined, buttons: readonly GeneratedButton[]) => ({
  header: validHeader(head),
  body: Array.from({ length: countVariables(text) }, () => 'x'),
  buttons: buttons.flatMap((b, index): object[] => {
    if (!needsValue(b)) return []
    return b.type === 'COPY_CODE' ? [{ index, coupon_code: 'X' }] : [{ index, text: 'x' }]
  }),
})

/** A template and its values, which are valid but for one part, which may be anything. */
const input = fc.tuple(bodyText, header, fc.array(button, { maxLength: 3 })).chain(([text, head, buttons]) =>
  fc.tuple(fc.constantFrom('none', 'header', 'body', 'buttons'), anyValues).map(([part, values]) => {
    const valid = validValues(text, head, buttons)
    const mixed = part === 'none' ? valid : { ...valid, [part]: (values as Record<string, unknown>)[part] }
    return { text, head, buttons, values: JSON.parse(JSON.stringify(mixed)) as Partial<TemplateValues> }
  }),
)
type Input = typeof input extends fc.Arbitrary<infer T> ? T : never

/** Asserts that a filled template has a parameter for each variable. */
const assertFilled = (components: readonly unknown[], { text, head, buttons, values }: Input): void => {
  const filled = components as { type: string; parameters: { text?: string }[]; index?: string }[]
  const count = countVariables(text)
  assert.equal(filled.find((c) => c.type === 'body')?.parameters.length ?? 0, count)
  assert.equal(values.body?.length ?? 0, count)
  assert.equal(
    filled.some((c) => c.type === 'header'),
    head !== undefined && head['text'] !== 'Plain',
  )
  for (const [i, b] of buttons.entries())
    if (needsValue(b))
      assert.ok(
        filled.some((c) => c.index === String(i)),
        `button ${i}`,
      )
}

/** Asserts that the pointer of an error leads to a value that was sent, or to one that is missing. */
const assertPointer = (pointer: string, { text, values }: Input): void => {
  const [part, index] = pointer.slice('#/template/'.length).split('/')
  assert.ok(['header', 'body', 'buttons'].includes(part!), pointer)
  if (part === 'body' && index !== undefined)
    assert.ok(Number(index) < Math.max(values.body?.length ?? 0, countVariables(text)), pointer)
  if (part === 'buttons') assert.ok(Number(index) <= (values.buttons?.length ?? 0), pointer)
}

describe('Filling a template: generated values', () => {
  it('a filled template has a parameter for each variable, and errors point to the values', () => {
    const counts = { accepted: 0, rejected: 0 }
    fc.assert(
      fc.property(input, (generated) => {
        const { text, head, buttons, values } = generated
        const components: TemplatePart[] = [
          ...(head ? [head] : []),
          textBody(text),
          ...(buttons.length > 0 ? [{ type: 'BUTTONS', buttons }] : []),
        ]
        const filled = fill(components, values)
        if ('components' in filled) {
          counts.accepted++
          assertFilled(filled.components, generated)
        } else {
          counts.rejected++
          assert.ok('errors' in filled && filled.errors.length > 0)
          for (const { pointer } of filled.errors) assertPointer(pointer!, generated)
        }
      }),
      { numRuns: 1000 },
    )
    assert.ok(counts.accepted > 100 && counts.rejected > 100, JSON.stringify(counts))
  })
})
