import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { buttonTypes, headerFormats, TemplateDraft } from '../../catalog/templates/schemas.ts'
import { renderTemplateRules } from '../../scripts/template-rules.ts'
import { lintDraft, rulesByTopic } from '../../server/templates/lint.ts'
import { exampleDrafts, buildExample, parsePath } from '../../server/templates/lint/examples.ts'
import { fillSamples, parseVariables } from '../../server/templates/variables.ts'
import { everyDoor } from '../doors.ts'

type Json = Record<string, unknown>

const rules = Object.values(rulesByTopic).flat()
const plain = {
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'Your order is on its way.' },
}
const lint = (draft: Json) => lintDraft(TemplateDraft.parse({ ...plain, ...draft }))
/** Rules and places of what is wrong, errors first. */
const faults = (draft: Json): string[] => lint(draft).issues.map(({ rule, path }) => `${rule} ${path}`)
const ofBody = (text: string, ...examples: string[]): string[] => faults({ body: { text, examples } })
const ofButtons = (...buttons: Json[]): string[] => faults({ buttons })

describe('Every rule', () => {
  it('has a name of its own, and words', () => {
    assert.equal(new Set(rules.map(({ id }) => id)).size, rules.length)
    for (const { id, about } of rules) assert.match(`${id}: ${about}`, /^[a-z_]+\.[a-z_]+: .+\.$/)
  })

  for (const [name, draft] of Object.entries(exampleDrafts))
    it(`passes the ${name} draft`, () => assert.deepEqual(lintDraft(TemplateDraft.parse(draft)).issues, []))

  for (const { id, severity, breaks, passes } of rules) {
    it(`${id} is raised by what breaks it alone`, () => {
      const { issues, valid } = lintDraft(TemplateDraft.parse(buildExample(breaks)))
      const own = issues.filter(({ rule }) => rule === id)
      assert.deepEqual(
        own.map(({ path }) => path),
        [breaks.at],
        JSON.stringify(issues),
      )
      assert.equal(own[0]!.severity, severity)
      assert.deepEqual(
        issues.map(({ rule }) => rule).filter((rule) => rule !== id),
        breaks.also ?? [],
      )
      assert.equal(
        valid,
        issues.every((issue) => issue.severity !== 'error'),
      )
      for (const { message, fix } of issues)
        for (const sentence of [message, fix]) assert.match(sentence, /^\P{Ll}.{7,}\.$/u)
      const good = lintDraft(TemplateDraft.parse(buildExample(passes))).issues
      assert.deepEqual(
        good.filter((issue) => issue.rule === id),
        [],
        'the passing example',
      )
    })
  }

  it('stands in the docs with its examples', () => {
    assert.equal(readFileSync('docs/template-rules.md', 'utf8'), renderTemplateRules(), 'run `npm run generate`')
  })
})

describe('Lint of a draft', () => {
  it('counts in code points', () => {
    for (const [most, draft] of [
      [1024, (text: string) => ({ body: { text } })],
      [60, (text: string) => ({ header: { format: 'TEXT', text } })],
      [60, (text: string) => ({ footer: { text } })],
      [25, (text: string) => ({ buttons: [{ type: 'QUICK_REPLY', text }] })],
    ] as const) {
      for (const char of ['x', '字', '𝒳']) {
        assert.deepEqual(faults(draft(char.repeat(most))), [], `${most} of ${char}`)
        assert.equal(faults(draft(char.repeat(most + 1))).length, 1, `${most + 1} of ${char}`)
      }
    }
    assert.match(lint({ body: { text: '🙂'.repeat(1030) } }).issues[0]!.message, /1030/)
  })

  it('reads variables', () => {
    const both = 'body.variables_form body.text'
    for (const text of [
      'Hi {{ 1 }} there.',
      'Hi {{01}} there.',
      'Hi {{0}} there.',
      'Hi {{a}} there.',
      'Hi {{}} there.',
      'Hi {{1 there.',
      'Hi 1}} there.',
      'Hi {{-1}} there.',
      'Hi {{١}} there.',
    ])
      assert.deepEqual(ofBody(text), [both], text)
    assert.deepEqual(ofBody('Hi {1} and } there {.'), [])
    assert.deepEqual(
      ofBody('Hi {{2}} and welcome to our shop, {{1}}, it is good to see you here.', 'a', 'b'),
      [],
    )
    assert.deepEqual(
      ofBody('Hi {{1}} and welcome to our shop, {{3}}, it is good to see you here.', 'a', 'b'),
      ['body.variables_sequence body.text'],
    )
    assert.match(
      lint({ body: { text: 'Hi {{1}} and welcome, {{3}}, see you.', examples: ['a', 'b'] } }).issues[0]!.fix,
      /Hi \{\{1\}\} and welcome, \{\{2\}\}, see you\./,
    )
    assert.match(
      lint({ body: { text: 'Hi {{ name }}, here is {{thing}}.' } }).issues[0]!.fix,
      /Hi \{\{1\}\}, here is \{\{2\}\}\./,
    )
    // Numbers beyond what a double holds are different numbers all the same.
    assert.deepEqual(parseVariables('{{99999999999999999999}}{{99999999999999999998}}').names, [
      '99999999999999999998',
      '99999999999999999999',
    ])
  })

  it('sees where variables stand', () => {
    const edge = 'body.variable_edge body.text'
    assert.deepEqual(ofBody(' {{1}}, your order is now on its way.', 'a'), [edge])
    assert.deepEqual(ofBody('Your order is now on its way, {{1}}\n', 'a'), [edge])
    assert.deepEqual(ofBody('{{1}}', 'a'), [edge, 'body.variables_ratio body.text'])
    for (const gap of ['', ' ', '\n', '\u00a0'])
      assert.deepEqual(ofBody(`Your order {{1}}${gap}{{2}} is now on its way to your house.`, 'a', 'b'), [
        'body.variables_adjacent body.text',
      ])
    assert.deepEqual(ofBody('Your order {{1}}-{{2}} is now on its way to your house.', 'a', 'b'), [])
  })

  it('wants words around variables, of any script', () => {
    assert.deepEqual(ofBody('Hi {{1}}!', 'a'), ['body.variables_ratio body.text'])
    assert.deepEqual(ofBody('Hi {{1}}, hello!', 'a'), ['body.variables_many body.text'])
    assert.deepEqual(ofBody('Hi {{1}}, hello to you!', 'a'), [])
    assert.deepEqual(ofBody('A {{1}} b {{2}}.', 'a', 'b'), ['body.variables_ratio body.text'])
    assert.deepEqual(ofBody('您的订单{{1}}已经发货，请注意查收。', 'a'), [])
    assert.deepEqual(ofBody('คำสั่งซื้อ {{1}} ของคุณถูกจัดส่งแล้ว', 'a'), [])
    // One variable that is said twice is one variable, and two words.
    assert.deepEqual(ofBody('Hi {{1}}, {{1}}!', 'a'), ['body.variables_many body.text'])
  })

  it('fills samples into the preview', () => {
    const preview = (text: string, ...examples: string[]) => lint({ body: { text, examples } }).preview
    assert.equal(preview('Hi {{1}}, {{2}} and {{1}}.', 'Ada'), 'Hi Ada, {{2}} and Ada.')
    assert.equal(preview('Hi {{1}}, {{3}}.', 'Ada', '$& $1'), 'Hi Ada, $& $1.')
    assert.equal(preview('Hi {{1}}.', '{{1}}'), 'Hi {{1}}.')
    assert.equal(preview('Hi {{1}}.', ' '), 'Hi {{1}}.')
    assert.equal(preview('  '), null)
    assert.equal(lintDraft(TemplateDraft.parse(exampleDrafts.code)).preview, null)
    assert.equal(fillSamples('{{2}} {{1}} {{3}}', ['a', undefined, 'c']), '{{2}} a c')
    // A thousand times a megabyte would be more than a string holds.
    assert.ok(preview('{{1}} '.repeat(800), 'x'.repeat(1_000_000))!.length < 3_000_000)
    assert.deepEqual(
      lint({
        header: { format: 'TEXT', text: 'For {{1}}', example: 'a' },
        body: { text: 'Hi {{1}}, {{2}}, {{2}}.', examples: ['a', 'b'] },
      }).variables,
      { header: 1, body: 2 },
    )
  })

  it('knows headers by their format', () => {
    const of = (header: Json) => faults({ header })
    assert.deepEqual(of({ format: 'TEXT', text: 'a {{2}}', example: 'x' }), [
      'header.variables_count header.text',
    ])
    assert.deepEqual(of({ format: 'TEXT', text: '{{1}} {{1}}', example: 'x' }), [
      'header.variables_count header.text',
    ])
    assert.deepEqual(of({ format: 'TEXT', text: '{{1}}', example: ' ' }), [
      'header.sample_missing header.example',
    ])
    for (const bad of ['a\nb', '❤️', '🇩🇪', '1️⃣', '*a*', '_a_', '~a~', '`a`'])
      assert.deepEqual(of({ format: 'TEXT', text: bad }), ['header.text_characters header.text'], bad)
    for (const good of ['1 # ? ! ©®™', 'Größe „10“', '電話', 'مرحبا'])
      assert.deepEqual(of({ format: 'TEXT', text: good }), [], good)
    for (const format of ['IMAGE', 'VIDEO', 'DOCUMENT'])
      assert.deepEqual(of({ format, text: 'a', media_handle: ' ' }), [
        'header.media_required header.media_handle',
        'header.unused header.text',
      ])
    assert.deepEqual(of({ format: 'LOCATION', text: '', media_handle: 'x' }), [
      'header.unused header.media_handle',
    ])
    assert.deepEqual(of({ format: 'TEXT', text: 'a', example: 'x', media_handle: 'x' }), [
      'header.unused header.example',
      'header.unused header.media_handle',
    ])
  })

  it('groups buttons', () => {
    const [q, u] = [
      (text: string) => ({ type: 'QUICK_REPLY', text }),
      { type: 'URL', text: 'Go', url: 'https://a.example' },
    ]
    for (const good of [
      [q('a')],
      [u],
      [q('a'), q('b'), u],
      [u, q('a'), q('b')],
      [u, { ...u, text: 'On' }, q('a')],
    ])
      assert.deepEqual(ofButtons(...good), [])
    for (const bad of [
      [q('a'), u, q('b')],
      [u, q('a'), { ...u, text: 'On' }],
    ])
      assert.deepEqual(ofButtons(...bad), ['buttons.grouping buttons'])
    assert.match(lint({ buttons: [q('a'), u, q('b')] }).issues[0]!.fix, /"a", "b", "Go"/)
  })

  it('looks at every kind of button', () => {
    const url = (address: string, more: Json = {}) =>
      ofButtons({ type: 'URL', text: 'Go', url: address, ...more })
    for (const bad of [
      'http://a.example',
      'a.example',
      'https://',
      'https:a.example',
      'https:///a',
      'https://a b.example',
      'https://a.example/x y',
      ' https://a.example',
      'ftp://a.example',
      'javascript:alert(1)',
      'https://a.example:99999',
    ])
      assert.deepEqual(url(bad), ['buttons.url_form buttons[0].url'], bad)
    for (const good of [
      'https://a.example',
      'HTTPS://A.EXAMPLE/x?y=%20#z',
      'https://münchen.example/ä',
      'https://a.example:8443/',
    ])
      assert.deepEqual(url(good), [], good)
    for (const host of ['wa.me', 'WA.ME', 'api.whatsapp.com'])
      assert.deepEqual(url(`https://${host}/1`), ['buttons.url_chat_link buttons[0].url'])
    for (const bad of [
      'https://a.example/{{2}}',
      'https://a.example/{{1}}x',
      'https://a.example/{{1}}{{1}}',
      'https://a.example/{{x}}',
      'https://a.example/{{1',
    ])
      assert.deepEqual(url(bad), ['buttons.url_variable buttons[0].url'], bad)
    for (const bad of [
      'https://b.example/1',
      'https://a.example/',
      'http://a.example/1',
      '1',
      'https://a.example/1 2',
    ])
      assert.deepEqual(
        url('https://a.example/{{1}}', { url_example: bad }),
        ['buttons.url_example_form buttons[0].url_example'],
        bad,
      )
    const phone = (number: string) => ofButtons({ type: 'PHONE_NUMBER', text: 'Go', phone_number: number })
    for (const bad of [
      '+1',
      'call me',
      '030 1234567',
      '+999123456789',
      '+1 555 010 0001 ext',
      '0049 30 1234567',
      'tel:+15550100001',
      ' +15550100001',
      '+1-5-5-5-0-1-0-0-0-0-1',
    ])
      assert.deepEqual(phone(bad), ['buttons.phone_form buttons[0].phone_number'], bad)
    for (const good of ['+15550100001', '15550100001', '+1 (555) 010-0001'])
      assert.deepEqual(phone(good), [], good)
    assert.deepEqual(ofButtons({ type: 'COPY_CODE', text: 'x'.repeat(30), coupon_code: 'A' }), [
      'buttons.unused buttons[0].text',
    ])
    assert.deepEqual(
      ofButtons({
        type: 'FLOW',
        text: 'Go',
        flow_id: '1',
        flow_action: 'DATA_EXCHANGE',
        navigate_screen: 'X',
      }),
      ['buttons.unused buttons[0].navigate_screen'],
    )
    const code = (button: Json) =>
      faults({ category: 'AUTHENTICATION', body: {}, buttons: [{ type: 'OTP', ...button }] })
    assert.deepEqual(code({ supported_apps: [{ package_name: '', signature_hash: '' }] }), [
      'buttons.unused buttons[0].supported_apps',
    ])
    assert.deepEqual(
      code({
        otp_type: 'ZERO_TAP',
        supported_apps: [
          { package_name: 'a.b', signature_hash: 'x'.repeat(11) },
          { package_name: 'a.1b', signature_hash: 'x'.repeat(12) },
        ],
      }),
      [
        'otp.package_name buttons[0].supported_apps[1].package_name',
        'otp.signature_hash buttons[0].supported_apps[1].signature_hash',
      ],
    )
  })

  it("keeps codes to the provider's texts", () => {
    const code = (more: Json) =>
      faults({ category: 'AUTHENTICATION', body: {}, buttons: [{ type: 'OTP' }], ...more })
    assert.deepEqual(code({}), [])
    assert.deepEqual(code({ body: { text: '{{1}}', examples: [''] } }), [
      'authentication.body_text body.text',
      'authentication.body_examples body.examples',
    ])
    for (const minutes of [0, -1, 91])
      assert.deepEqual(code({ footer: { code_expiration_minutes: minutes } }), [
        'footer.expiration_range footer.code_expiration_minutes',
      ])
    assert.deepEqual(code({ buttons: [{ type: 'OTP' }, { type: 'OTP' }] }), [
      'authentication.button buttons',
      'buttons.too_many_of_type buttons[1]',
    ])
    assert.deepEqual(code({ buttons: [{ type: 'QUICK_REPLY', text: 'Ok' }] }), [
      'authentication.button buttons[0].type',
    ])
    // The category that was surely meant.
    assert.deepEqual(code({ category: 'authentication' }), ['category.unknown category'])
  })

  it('looks into cards', () => {
    const card = (more: Json = {}) => ({
      header_format: 'IMAGE',
      media_handle: 'x',
      buttons: [{ type: 'QUICK_REPLY', text: 'Ok' }],
      ...more,
    })
    const carousel = (...cards: Json[]) => faults({ category: 'MARKETING', carousel: { cards } })
    assert.deepEqual(carousel(card(), card()), [])
    assert.deepEqual(carousel(card()), ['carousel.cards_count carousel.cards'])
    assert.deepEqual(carousel(...Array.from({ length: 11 }, () => card())), [
      'carousel.cards_count carousel.cards',
    ])
    const texts = (text: string) => card({ body: { text } })
    assert.deepEqual(carousel(texts('x'.repeat(160)), texts('x'.repeat(161))), [
      'card_body.length carousel.cards[1].body.text',
    ])
    assert.deepEqual(carousel(texts('One'), texts('Two {{1}} two')), [
      'card_body.samples_count carousel.cards[1].body.examples',
    ])
    // Cards are short: they may be mostly variable.
    assert.deepEqual(carousel(texts('One'), card({ body: { text: 'For {{1}}.', examples: ['10'] } })), [])
    const url = (address: string) => card({ buttons: [{ type: 'URL', text: 'Go', url: address }] })
    assert.deepEqual(carousel(url('https://a.example'), url('a')), [
      'buttons.url_form carousel.cards[1].buttons[0].url',
    ])
    assert.deepEqual(
      carousel(
        card(),
        card({
          buttons: [
            { type: 'QUICK_REPLY', text: 'Ok' },
            { type: 'QUICK_REPLY', text: 'Ok' },
          ],
        }),
      ),
      [
        'carousel.buttons_same carousel.cards[1].buttons',
        'buttons.text_unique carousel.cards[1].buttons[1].text',
      ].toSorted((a, b) => (a < b ? -1 : 1)),
    )
    assert.deepEqual(
      faults({
        category: 'MARKETING',
        carousel: { cards: [card(), card()] },
        header: { format: 'TEXT' },
        footer: {},
        buttons: [{ type: 'URL' }],
      }),
      ['header', 'footer', 'buttons'].map((path) => `carousel.top_level ${path}`),
    )
  })

  it('advises against what reviewers dislike', () => {
    for (const text of [
      'Get 20 % off now with your order.',
      'Big SALE today.',
      'Aproveite a promoção de hoje.',
      'Heute 10 Euro Rabatt für alle.',
      'आज की छूट देखें.',
      'خصم اليوم فقط.',
    ])
      assert.deepEqual(ofBody(text), ['category.promotional category'], text)
    for (const text of [
      'Feel free to write to us.',
      'Your order was wholesaled.',
      'Your freedom matters here.',
      'Call our toll-free number.',
    ])
      assert.deepEqual(ofBody(text), [], text)
    for (const link of ['bit.ly/x', 'https://t.co/x', 'http://www.tinyurl.com/x', 'goo.gl/x', 'WA.ME/1'])
      assert.deepEqual(ofBody(`See ${link} for it.`), ['body.link_shortener body.text'], link)
    for (const link of ['https://shop.example/t.co', 'https://pinkt.com', 'at.com', 'orbit.ly', 'set.color'])
      assert.deepEqual(
        ofBody(`See ${link} for it.`).filter((f) => link !== 'https://shop.example/t.co' && f !== ''),
        [],
        link,
      )
    assert.equal(lint({ language: 'de_BR' }).issues[0]!.fix, 'Write "de".')
    assert.equal(lint({ name: 'Größe XL-Update!' }).issues[0]!.fix, 'Write "gro_e_xl_update".')
  })
})

const draftText = fc.oneof(
  fc
    .array(
      fc.constantFrom(
        '{{1}}',
        '{{2}}',
        '{{3}}',
        '{{',
        '}}',
        '{{x}}',
        ' ',
        '     ',
        '\n',
        '\t',
        'Your order',
        'sale',
        'bit.ly/x',
        '☕',
        '🇩🇪',
        '字',
        'é',
        '*',
        '_',
        '.',
        'https://a.example/',
        '\ud800',
        '\0',
      ),
      { maxLength: 14 },
    )
    .map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', 'x'.repeat(26), 'x'.repeat(61), '字'.repeat(200)),
)
const shortText = (most: number) => draftText.map((text) => text.slice(0, most))
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const button = fc.record(
  {
    type: fc.constantFrom(...buttonTypes),
    text: shortText(200),
    url: fc.oneof(
      draftText,
      draftText.map((text) => `https://a.example/${text}`),
    ),
    url_example: draftText,
    phone_number: fc.oneof(shortText(64), fc.constantFrom('+15550100001')),
    coupon_code: shortText(64),
    flow_id: shortText(64),
    flow_action: fc.constantFrom('NAVIGATE' as const, 'DATA_EXCHANGE' as const),
    navigate_screen: shortText(200),
    otp_type: fc.constantFrom('COPY_CODE' as const, 'ONE_TAP' as const, 'ZERO_TAP' as const),
    supported_apps: fc.array(fc.record({ package_name: shortText(255), signature_hash: shortText(64) }), {
      maxLength: 5,
    }),
  },
  { requiredKeys: ['type'] },
)
const body = fc.record(
  { text: draftText, examples: fc.array(draftText, { maxLength: 4 }) },
  { requiredKeys: [] },
)
/** Whatever the schema takes, and much that is nearly right. */
const anyDraft = fc.record(
  {
    name: fc.oneof(draftText, fc.constant('order_update')),
    language: fc.constantFrom('en_US', 'en', 'de_BR', '', 'english', '_'),
    category: fc.constantFrom('MARKETING', 'UTILITY', 'AUTHENTICATION', 'MARKETING', 'utility', ''),
    header: some(
      fc.record(
        {
          format: fc.constantFrom(...headerFormats),
          text: draftText,
          example: draftText,
          media_handle: draftText,
        },
        { requiredKeys: ['format'] },
      ),
    ),
    body: fc.oneof(
      body,
      fc.constant({ text: 'Your order is on its way.', add_security_recommendation: true }),
      fc.constant({ text: 'Your order is on its way.' }),
    ),
    footer: some(fc.record({ text: draftText, code_expiration_minutes: fc.integer() }, { requiredKeys: [] })),
    buttons: some(fc.array(button, { maxLength: 12 })),
    limited_time_offer: some(
      fc.record({ text: shortText(200), has_expiration: fc.boolean() }, { requiredKeys: ['text'] }),
    ),
    carousel: fc.option(
      fc.record({
        cards: fc.array(
          fc.record(
            {
              header_format: fc.constantFrom('IMAGE' as const, 'VIDEO' as const),
              media_handle: shortText(20),
              body,
              buttons: fc.array(button, { maxLength: 5 }),
            },
            { requiredKeys: ['header_format', 'media_handle', 'buttons'] },
          ),
          { maxLength: 12 },
        ),
      }),
      { nil: undefined, freq: 3 },
    ),
  },
  { requiredKeys: ['name', 'language', 'category', 'body'] },
)

type Shape = { properties?: Record<string, Shape>; items?: Shape; anyOf?: Shape[] }
const shapeOfDraft = TemplateDraft.toJSONSchema({ io: 'input' }) as Shape

/** The path is one of the schema's, and leads through lists that are as long. */
const leads = (draft: unknown, path: string): boolean => {
  let [node, shape]: [unknown, Shape | undefined] = [draft, shapeOfDraft]
  for (const step of parsePath(path)) {
    if (typeof step === 'number' && !(Array.isArray(node) && step < node.length)) return false
    node = (node as Json | undefined)?.[step]
    shape = typeof step === 'number' ? shape?.items : shape?.properties?.[step]
  }
  return shape !== undefined
}

describe('Lint of any draft', () => {
  it('counts and places what it finds, and never throws', () => {
    const raised = new Set<string>()
    fc.assert(
      fc.property(anyDraft, (given) => {
        const draft = TemplateDraft.parse(given)
        const before = JSON.stringify(draft)
        const result = lintDraft(draft)
        assert.equal(JSON.stringify(draft), before)
        const { valid, errors, warnings, issues } = result
        assert.equal(errors, issues.filter(({ severity }) => severity === 'error').length)
        assert.equal(warnings, issues.length - errors)
        assert.equal(valid, errors === 0)
        assert.ok(
          issues.slice(0, errors).every(({ severity }) => severity === 'error'),
          'errors come first',
        )
        assert.equal(
          new Set(issues.map(({ rule, path }) => `${rule} ${path}`)).size,
          issues.length,
          'a rule says a thing once',
        )
        for (const { rule, path, message, fix } of issues) {
          raised.add(rule)
          assert.ok(leads(draft, path), `${rule}: ${path}`)
          assert.ok(
            message.length > 8 && fix.length > 8 && message.isWellFormed() && fix.isWellFormed(),
            `${rule}: ${message} ${fix}`,
          )
          assert.ok(message.length < 600 && fix.length < 600, `${rule}: ${message.length} ${fix.length}`)
        }
      }),
      { numRuns: 3000 },
    )
    assert.ok(raised.size > rules.length * 0.8, `${raised.size} of ${rules.length} rules were raised`)
  })

  it('mends what it says it mends', () => {
    let mended = 0
    fc.assert(
      fc.property(anyDraft, (given) => {
        const draft = TemplateDraft.parse(given)
        for (const { rule, path, fix } of lintDraft(draft).issues) {
          const text = /^Write (".*")\.$/u.exec(fix)?.[1]
          if (text === undefined) continue
          const better = structuredClone(draft) as unknown as Json
          const steps = parsePath(path)
          const holder = steps.slice(0, -1).reduce<Json>((node, step) => node[step] as Json, better)
          holder[steps.at(-1)!] = JSON.parse(text)
          assert.ok(
            !lintDraft(TemplateDraft.parse(better)).issues.some(
              (issue) => issue.rule === rule && issue.path === path,
            ),
            `${rule}: ${fix}`,
          )
          mended++
        }
      }),
      { numRuns: 1500 },
    )
    assert.ok(mended > 500, `${mended} mends`)
  })
})

everyDoor('Lint', (test) => {
  test('answers what is wrong with a draft', async ({ call }) => {
    const { status, body: good } = await call('messaging_lint_template', { template: plain })
    assert.equal(status, 200)
    assert.deepEqual(good, {
      valid: true,
      errors: 0,
      warnings: 0,
      issues: [],
      variables: { header: 0, body: 0 },
      preview: plain.body.text,
    })
    const { body: bad } = await call('messaging_lint_template', {
      template: {
        name: 'Order',
        language: 'en',
        category: 'MARKETING',
        buttons: [{ type: 'URL', text: 'Go', url: 'https://a.example/{{1}}/x' }],
      },
    })
    assert.deepEqual(
      bad.issues.map(({ rule, path, severity }: Record<string, string>) => [rule, path, severity]),
      [
        ['name.form', 'name', 'error'],
        ['body.required', 'body.text', 'error'],
        ['buttons.url_variable', 'buttons[0].url', 'error'],
      ],
    )
    assert.deepEqual([bad.valid, bad.errors, bad.preview], [false, 3, null])
  })
})
