import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { SendTemplate } from '../../catalog/messages.ts'
import { fillTemplate } from '../../server/messaging/template-fill.ts'
import type { TemplateValues } from '../../server/messaging/template-values.ts'

const now = '2026-10-01T09:30:00.000Z'
const later = '2026-10-02T09:30:00Z'
type Part = Record<string, unknown>

const fill = (components: Part[], values: Partial<TemplateValues>, category = 'UTILITY') =>
  fillTemplate({ category, components }, SendTemplate.parse({ name: 'x', language: 'en', ...values }), now)
const built = (components: Part[], values: Partial<TemplateValues>, category?: string) => {
  const filled = fill(components, values, category)
  assert.ok('components' in filled, JSON.stringify(filled))
  return filled
}
/** Pointers and codes of what is wrong. */
const faults = (components: Part[], values: Partial<TemplateValues>, category?: string): [string, string][] => {
  const filled = fill(components, values, category)
  assert.ok('errors' in filled, JSON.stringify(filled))
  for (const { detail, fix } of filled.errors) assert.ok(detail && fix && !detail.endsWith('.'))
  return filled.errors.map(({ pointer, code }) => [pointer!.replace('#/template', ''), code])
}
const body = (text: string) => ({ type: 'BODY', text })

describe('What fills a template', () => {
  it("becomes the provider's components and a preview", () => {
    const components = [
      { type: 'HEADER', format: 'IMAGE' },
      body('Hi {{1}}, use {{2}}. {{1}}!'),
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
    const filled = built(components, {
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
    assert.deepEqual(faults(components, {}), [
      ['/header/media_url', 'required'],
      ['/body/0', 'required'],
      ['/body/1', 'required'],
      ['/buttons/0/text', 'required'],
      ['/buttons/0/coupon_code', 'required'],
      ['/offer_expires_at', 'required'],
    ])
  })

  it('needs nothing where nothing varies', () => {
    const plain = [
      { type: 'HEADER', format: 'TEXT', text: 'News' },
      body('Hello'),
      { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: 'Ok' }] },
    ]
    assert.deepEqual(built(plain, {}), { components: [], preview: 'Hello' })
    assert.deepEqual(built(plain, { header: {}, body: [], buttons: [{ index: 0 }], cards: [] }), {
      components: [],
      preview: 'Hello',
    })
    assert.deepEqual(
      faults(plain, {
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

  it('takes names for named variables, in the order of the text', () => {
    const filled = built(
      [
        { type: 'HEADER', format: 'TEXT', text: 'For {{first_name}}' },
        body('{{first_name}}, order {{order}} of {{first_name}}'),
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
    assert.equal(built([body('{{2}} then {{1}}')], { body: ['one', 'two'] }).preview, 'two then one')
    assert.equal(
      built([body('{{1}} and {{2}}')], { body: ['{{2}}', '$& $1'] }).preview,
      '{{2}} and $& $1',
      'a value is no template',
    )
  })

  it('has values that the provider takes', () => {
    for (const [value, code] of [
      ['a\nb', 'line_break'],
      ['a\tb', 'line_break'],
      ['a\r', 'line_break'],
      ['   ', 'blank'],
      ['\u00a0', 'blank'],
      ['a     b', 'too_many_spaces'],
    ] as const)
      assert.deepEqual(
        faults([body('Hi {{1}}, {{2}}')], { body: ['ok', value] }),
        [['/body/1', code]],
        JSON.stringify(value),
      )
    assert.equal(built([body('Hi {{1}}')], { body: ['a    b'] }).preview, 'Hi a    b')
    assert.deepEqual(faults([body(`${'x'.repeat(1000)} {{1}}`)], { body: ['y'.repeat(24)] }), [
      ['/body', 'too_long'],
    ])
    assert.equal(built([body(`${'x'.repeat(1000)} {{1}}`)], { body: ['y'.repeat(23)] }).preview.length, 1024)
    const header = [{ type: 'HEADER', format: 'TEXT', text: 'Our {{1}} is on!' }, body('Hi')]
    assert.deepEqual(faults(header, { header: { text: 'y'.repeat(50) } }), [['/header/text', 'too_long']])
    assert.deepEqual(faults(header, { header: { media_url: 'https://img.example/a.png' } }), [
      ['/header/media_url', 'not_in_template'],
      ['/header/text', 'required'],
    ])
    const link = [
      body('Hi'),
      {
        type: 'BUTTONS',
        buttons: [{ type: 'URL', text: 'Shop', url: 'https://shop.example/{{1}}' }, { type: 'COPY_CODE' }],
      },
    ]
    assert.deepEqual(
      faults(link, {
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
    assert.deepEqual(faults(link, { buttons: [{ index: 1, text: 'a', coupon_code: 'A' }] }), [
      ['/buttons/1/text', 'required'],
      ['/buttons/0/text', 'not_in_template'],
    ])
  })

  it('has one file for a header of that kind, and a place for a place', () => {
    const document = [{ type: 'HEADER', format: 'DOCUMENT' }, body('Hi')]
    assert.deepEqual(
      built(document, { header: { media_handle: '77', file_name: 'bill.pdf' } }).components[0],
      { type: 'header', parameters: [{ type: 'document', document: { id: '77', filename: 'bill.pdf' } }] },
    )
    assert.deepEqual(faults(document, { header: { media_handle: '77', media_url: 'https://a.example/' } }), [
      ['/header/media_handle', 'ambiguous'],
    ])
    assert.deepEqual(
      faults([{ type: 'HEADER', format: 'VIDEO' }, body('Hi')], {
        header: { media_handle: '77', file_name: 'a.mp4' },
      }),
      [['/header/file_name', 'not_in_template']],
    )
    const place = [{ type: 'HEADER', format: 'LOCATION' }, body('Hi')]
    assert.deepEqual(built(place, { header: { latitude: 1.5, longitude: -2, name: 'Shop' } }).components[0], {
      type: 'header',
      parameters: [{ type: 'location', location: { latitude: 1.5, longitude: -2, name: 'Shop' } }],
    })
    assert.deepEqual(faults(place, { header: { latitude: 0, text: 'x' } }), [
      ['/header/text', 'not_in_template'],
      ['/header/longitude', 'required'],
    ])
  })

  it('is a code where the template is for codes', () => {
    const components = [
      { type: 'BODY', add_security_recommendation: true },
      { type: 'FOOTER', code_expiration_minutes: 5 },
      { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }] },
    ]
    assert.deepEqual(built(components, { body: ['J$FpnYnP'] }, 'AUTHENTICATION'), {
      preview: 'J$FpnYnP is your verification code. For your security, do not share this code.',
      components: [
        { type: 'body', parameters: [{ type: 'text', text: 'J$FpnYnP' }] },
        { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: 'J$FpnYnP' }] },
      ],
    })
    assert.deepEqual(faults(components, {}, 'AUTHENTICATION'), [['/body/0', 'required']])
    for (const [code, fault] of [
      ['1234567890123456', 'too_long'],
      ['12😀', 'not_a_code'],
      ['http://a.io', 'not_a_code'],
    ] as const)
      assert.deepEqual(faults(components, { body: [code] }, 'AUTHENTICATION'), [['/body/0', fault]])
    assert.deepEqual(
      faults(components, { body: ['1'], buttons: [{ index: 0, text: '1' }] }, 'AUTHENTICATION'),
      [['/buttons/0/text', 'not_in_template']],
    )
  })

  it('ends an offer in the future', () => {
    const offer = (has_expiration: boolean) => [
      body('Hi'),
      { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Now', has_expiration } },
    ]
    assert.deepEqual(faults(offer(true), { offer_expires_at: now }), [['/offer_expires_at', 'in_the_past']])
    assert.deepEqual(faults(offer(false), { offer_expires_at: later }), [
      ['/offer_expires_at', 'not_in_template'],
    ])
    assert.deepEqual(built(offer(false), {}).components, [])
  })

  it('fills every card of a carousel', () => {
    const card = (text: string) => ({
      components: [
        { type: 'HEADER', format: 'IMAGE' },
        body(text),
        { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Buy', url: 'https://a.example/{{1}}' }] },
      ],
    })
    const components = [body('For {{1}}'), { type: 'CAROUSEL', cards: [card('First {{1}}'), card('Second')] }]
    const values = (n: number) => ({
      header: { media_handle: `h${n}` },
      buttons: [{ index: 0, text: `p${n}` }],
    })
    const filled = built(components, { body: ['Ada'], cards: [{ ...values(0), body: ['one'] }, values(1)] })
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
    assert.deepEqual(faults(components, { body: ['Ada'], cards: [values(0)] }), [
      ['/cards/0/body/0', 'required'],
      ['/cards/1', 'required'],
    ])
    assert.deepEqual(
      faults(components, {
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

  it('cannot be given for buttons that show products', () => {
    assert.deepEqual(fill([body('Hi'), { type: 'BUTTONS', buttons: [{ type: 'MPM', text: 'View' }] }], {}), {
      unsupported: 'MPM',
    })
  })

  it('is refused by what is wrong, and has as many values as there are variables otherwise', () => {
    const value = fc.oneof(
      { weight: 6, arbitrary: fc.stringMatching(/^[a-z0-9]{1,8}$/) },
      fc.constantFrom('a\nb', ' ', '     x', '{{1}}'),
    )
    const text = fc
      .array(fc.oneof(fc.constantFrom('a', 'b, ', ' {{1}}', ' {{2}}', ' {{3}}'), fc.constant(' {{name}}')), {
        maxLength: 6,
      })
      .map((parts) => `Hi${parts.join('')}`)
    const button = fc.constantFrom<{ type: string; url?: string }>(
      { type: 'QUICK_REPLY' },
      { type: 'URL', url: 'https://a.example/{{1}}' },
      { type: 'URL', url: 'https://a.example/' },
      { type: 'COPY_CODE' },
      { type: 'PHONE_NUMBER' },
    )
    const header = fc.constantFrom<Part | undefined>(
      undefined,
      { type: 'HEADER', format: 'TEXT', text: 'Plain' },
      { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' },
      { type: 'HEADER', format: 'IMAGE' },
      { type: 'HEADER', format: 'LOCATION' },
    )
    const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
    const anything = fc.record(
      {
        header: optional(
          fc.record(
            {
              text: value,
              media_url: fc.constant('https://a.example/x'),
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
    /** What fits, mostly: one part of it may be anything. */
    const filling = fc
      .tuple(text, header, fc.array(button, { maxLength: 3 }))
      .chain(([bodyText, head, buttons]) => {
        const fits = {
          header:
            head?.format === 'IMAGE'
              ? { media_url: 'https://a.example/x' }
              : head?.format === 'LOCATION'
                ? { latitude: 1, longitude: 2 }
                : head?.text === 'For {{1}}'
                  ? { text: 'x' }
                  : undefined,
          body: [...new Set(bodyText.match(/\{\{\w+\}\}/g) ?? [])].map(() => 'x'),
          buttons: buttons.flatMap((b, index): object[] =>
            b.type === 'COPY_CODE'
              ? [{ index, coupon_code: 'X' }]
              : b.url?.includes('{{')
                ? [{ index, text: 'x' }]
                : [],
          ),
        }
        return fc
          .tuple(fc.constantFrom('none', 'header', 'body', 'buttons'), anything)
          .map(([part, other]) => ({
            bodyText,
            head,
            buttons,
            values: part === 'none' ? fits : { ...fits, [part]: (other as Record<string, unknown>)[part] },
          }))
      })
    let [accepted, refused] = [0, 0]
    fc.assert(
      fc.property(filling, ({ bodyText, head, buttons, values }) => {
        const components: Part[] = [
          ...(head ? [head] : []),
          body(bodyText),
          ...(buttons.length > 0 ? [{ type: 'BUTTONS', buttons }] : []),
        ]
        const clean = JSON.parse(JSON.stringify(values)) as Partial<TemplateValues>
        const filled = fill(components, clean)
        if ('components' in filled) {
          accepted++
          const wanted = new Set(bodyText.match(/\{\{\w+\}\}/g) ?? []).size
          const sent = filled.components as {
            type: string
            parameters: { text?: string }[]
            index?: string
          }[]
          assert.equal(sent.find((c) => c.type === 'body')?.parameters.length ?? 0, wanted)
          assert.equal(clean.body?.length ?? 0, wanted)
          assert.equal(
            sent.some((c) => c.type === 'header'),
            head !== undefined && head.text !== 'Plain',
          )
          assert.deepEqual(
            buttons.flatMap((b, i) =>
              (b.url?.includes('{{') || b.type === 'COPY_CODE') && !sent.some((c) => c.index === String(i))
                ? [i]
                : [],
            ),
            [],
          )
        } else {
          refused++
          assert.ok('errors' in filled && filled.errors.length > 0)
          for (const { pointer } of filled.errors) {
            // The way to the field is there, but for its last steps, which should be.
            const path = pointer!.slice('#/template/'.length).split('/')
            assert.ok(['header', 'body', 'buttons'].includes(path[0]!), pointer!)
            if (path[0] === 'body' && path[1] !== undefined)
              assert.ok(
                Number(path[1]) <
                  Math.max(clean.body?.length ?? 0, new Set(bodyText.match(/\{\{\w+\}\}/g) ?? []).size),
                pointer!,
              )
            if (path[0] === 'buttons') assert.ok(Number(path[1]) <= (clean.buttons?.length ?? 0), pointer!)
          }
        }
      }),
      { numRuns: 1000 },
    )
    assert.ok(accepted > 100 && refused > 100, `${accepted} accepted, ${refused} refused`)
  })
})
