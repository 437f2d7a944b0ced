import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TemplateDraft } from '../../catalog/templates/schemas.ts'
import { lintDraft } from '../../server/domains/templates/lint.ts'
import { exampleDrafts } from '../../server/domains/templates/lint/examples.ts'
import { fillSamples, parseVariables } from '../../server/domains/templates/variables.ts'
import { type JsonFields, lint, lintBody, lintButtons, listIssues } from './lint-fixture.ts'

describe('Template lint: checks', () => {
  it('lengths are counted in code points', () => {
    for (const [max, buildDraft] of [
      [1024, (text: string) => ({ body: { text } })],
      [60, (text: string) => ({ header: { format: 'TEXT', text } })],
      [60, (text: string) => ({ footer: { text } })],
      [25, (text: string) => ({ buttons: [{ type: 'QUICK_REPLY', text }] })],
    ] as const) {
      for (const char of ['x', '字', '𝒳']) {
        assert.deepEqual(listIssues(buildDraft(char.repeat(max))), [], `${max} of ${char}`)
        assert.equal(listIssues(buildDraft(char.repeat(max + 1))).length, 1, `${max + 1} of ${char}`)
      }
    }
    assert.match(lint({ body: { text: '🙂'.repeat(1030) } }).issues[0]!.message, /1030/)
  })

  it('variables: syntax and numbering', () => {
    const syntaxIssue = 'body.variables_form body.text'
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
      assert.deepEqual(lintBody(text), [syntaxIssue], text)
    assert.deepEqual(lintBody('Hi {1} and } there {.'), [])
    assert.deepEqual(
      lintBody('Hi {{2}} and welcome to our shop, {{1}}, it is good to see you here.', 'a', 'b'),
      [],
    )
    assert.deepEqual(
      lintBody('Hi {{1}} and welcome to our shop, {{3}}, it is good to see you here.', 'a', 'b'),
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
    // Numbers beyond the precision of a double stay distinct.
    assert.deepEqual(parseVariables('{{99999999999999999999}}{{99999999999999999998}}').names, [
      '99999999999999999998',
      '99999999999999999999',
    ])
  })

  it('variables: not at the start or end, and not adjacent', () => {
    const edgeIssue = 'body.variable_edge body.text'
    assert.deepEqual(lintBody(' {{1}}, your order is now on its way.', 'a'), [edgeIssue])
    assert.deepEqual(lintBody('Your order is now on its way, {{1}}\n', 'a'), [edgeIssue])
    assert.deepEqual(lintBody('{{1}}', 'a'), [edgeIssue, 'body.variables_ratio body.text'])
    for (const gap of ['', ' ', '\n', '\u00a0'])
      assert.deepEqual(lintBody(`Your order {{1}}${gap}{{2}} is now on its way to your house.`, 'a', 'b'), [
        'body.variables_adjacent body.text',
      ])
    assert.deepEqual(lintBody('Your order {{1}}-{{2}} is now on its way to your house.', 'a', 'b'), [])
  })

  it('variables: enough words around them, in any script', () => {
    assert.deepEqual(lintBody('Hi {{1}}!', 'a'), ['body.variables_ratio body.text'])
    assert.deepEqual(lintBody('Hi {{1}}, hello!', 'a'), ['body.variables_many body.text'])
    assert.deepEqual(lintBody('Hi {{1}}, hello to you!', 'a'), [])
    assert.deepEqual(lintBody('A {{1}} b {{2}}.', 'a', 'b'), ['body.variables_ratio body.text'])
    assert.deepEqual(lintBody('您的订单{{1}}已经发货，请注意查收。', 'a'), [])
    assert.deepEqual(lintBody('คำสั่งซื้อ {{1}} ของคุณถูกจัดส่งแล้ว', 'a'), [])
    // A repeated variable counts once as a variable and twice as a word.
    assert.deepEqual(lintBody('Hi {{1}}, {{1}}!', 'a'), ['body.variables_many body.text'])
  })

  it('preview: samples replace variables', () => {
    const preview = (text: string, ...examples: string[]) => lint({ body: { text, examples } }).preview
    assert.equal(preview('Hi {{1}}, {{2}} and {{1}}.', 'Ada'), 'Hi Ada, {{2}} and Ada.')
    assert.equal(preview('Hi {{1}}, {{3}}.', 'Ada', '$& $1'), 'Hi Ada, $& $1.')
    assert.equal(preview('Hi {{1}}.', '{{1}}'), 'Hi {{1}}.')
    assert.equal(preview('Hi {{1}}.', ' '), 'Hi {{1}}.')
    assert.equal(preview('  '), null)
    assert.equal(lintDraft(TemplateDraft.parse(exampleDrafts.code)).preview, null)
    assert.equal(fillSamples('{{2}} {{1}} {{3}}', ['a', undefined, 'c']), '{{2}} a c')
    // Unlimited, 800 samples of a megabyte would exceed the maximum length of a string.
    assert.ok(preview('{{1}} '.repeat(800), 'x'.repeat(1_000_000))!.length < 3_000_000)
    assert.deepEqual(
      lint({
        header: { format: 'TEXT', text: 'For {{1}}', example: 'a' },
        body: { text: 'Hi {{1}}, {{2}}, {{2}}.', examples: ['a', 'b'] },
      }).variables,
      { header: 1, body: 2 },
    )
  })

  it('headers: fields and characters of each format', () => {
    const lintHeader = (header: JsonFields) => listIssues({ header })
    assert.deepEqual(lintHeader({ format: 'TEXT', text: 'a {{2}}', example: 'x' }), [
      'header.variables_count header.text',
    ])
    assert.deepEqual(lintHeader({ format: 'TEXT', text: '{{1}} {{1}}', example: 'x' }), [
      'header.variables_count header.text',
    ])
    assert.deepEqual(lintHeader({ format: 'TEXT', text: '{{1}}', example: ' ' }), [
      'header.sample_missing header.example',
    ])
    for (const invalid of ['a\nb', '❤️', '🇩🇪', '1️⃣', '*a*', '_a_', '~a~', '`a`'])
      assert.deepEqual(
        lintHeader({ format: 'TEXT', text: invalid }),
        ['header.text_characters header.text'],
        invalid,
      )
    for (const valid of ['1 # ? ! ©®™', 'Größe „10“', '電話', 'مرحبا'])
      assert.deepEqual(lintHeader({ format: 'TEXT', text: valid }), [], valid)
    for (const format of ['IMAGE', 'VIDEO', 'DOCUMENT'])
      assert.deepEqual(lintHeader({ format, text: 'a', media_handle: ' ' }), [
        'header.media_required header.media_handle',
        'header.unused header.text',
      ])
    assert.deepEqual(lintHeader({ format: 'LOCATION', text: '', media_handle: 'x' }), [
      'header.unused header.media_handle',
    ])
    assert.deepEqual(lintHeader({ format: 'TEXT', text: 'a', example: 'x', media_handle: 'x' }), [
      'header.unused header.example',
      'header.unused header.media_handle',
    ])
  })

  it('buttons: URL, its variable and its example', () => {
    const lintUrl = (address: string, fields: JsonFields = {}) =>
      lintButtons({ type: 'URL', text: 'Go', url: address, ...fields })
    for (const invalid of [
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
      assert.deepEqual(lintUrl(invalid), ['buttons.url_form buttons[0].url'], invalid)
    for (const valid of [
      'https://a.example',
      'HTTPS://A.EXAMPLE/x?y=%20#z',
      'https://münchen.example/ä',
      'https://a.example:8443/',
    ])
      assert.deepEqual(lintUrl(valid), [], valid)
    for (const host of ['wa.me', 'WA.ME', 'api.whatsapp.com'])
      assert.deepEqual(lintUrl(`https://${host}/1`), ['buttons.url_chat_link buttons[0].url'])
    for (const invalid of [
      'https://a.example/{{2}}',
      'https://a.example/{{1}}x',
      'https://a.example/{{1}}{{1}}',
      'https://a.example/{{x}}',
      'https://a.example/{{1',
    ])
      assert.deepEqual(lintUrl(invalid), ['buttons.url_variable buttons[0].url'], invalid)
    for (const invalid of [
      'https://b.example/1',
      'https://a.example/',
      'http://a.example/1',
      '1 2',
      'https://a.example/1 2',
    ])
      assert.deepEqual(
        lintUrl('https://a.example/{{1}}', { url_example: invalid }),
        ['buttons.url_example_form buttons[0].url_example'],
        invalid,
      )
    assert.deepEqual(lintUrl('https://a.example/{{1}}', { url_example: '1' }), [
      'buttons.url_example_whole buttons[0].url_example',
    ])
  })

  it('buttons: phone number', () => {
    const lintPhone = (number: string) =>
      lintButtons({ type: 'PHONE_NUMBER', text: 'Go', phone_number: number })
    for (const invalid of [
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
      assert.deepEqual(lintPhone(invalid), ['buttons.phone_form buttons[0].phone_number'], invalid)
    for (const valid of ['+15550100001', '15550100001', '+1 (555) 010-0001'])
      assert.deepEqual(lintPhone(valid), [], valid)
  })

  it('buttons: copy code, flow and OTP', () => {
    assert.deepEqual(lintButtons({ type: 'COPY_CODE', text: 'x'.repeat(30), coupon_code: 'A' }), [
      'buttons.unused buttons[0].text',
      'buttons.coupon_category buttons[0].type',
    ])
    assert.deepEqual(
      lintButtons({
        type: 'FLOW',
        text: 'Go',
        flow_id: '1',
        flow_action: 'DATA_EXCHANGE',
        navigate_screen: 'X',
      }),
      ['buttons.unused buttons[0].navigate_screen'],
    )
    const lintOtp = (otpFields: JsonFields) =>
      listIssues({ category: 'AUTHENTICATION', body: {}, buttons: [{ type: 'OTP', ...otpFields }] })
    assert.deepEqual(lintOtp({ supported_apps: [{ package_name: '', signature_hash: '' }] }), [
      'buttons.unused buttons[0].supported_apps',
    ])
    assert.deepEqual(
      lintOtp({
        otp_type: 'ZERO_TAP',
        supported_apps: [
          { package_name: 'a.b', signature_hash: 'x'.repeat(11) },
          { package_name: 'a.1b', signature_hash: 'x'.repeat(12) },
        ],
      }),
      [
        'otp.zero_tap_terms buttons[0].zero_tap_terms_accepted',
        'otp.package_name buttons[0].supported_apps[1].package_name',
        'otp.signature_hash buttons[0].supported_apps[1].signature_hash',
      ],
    )
  })

  it('warnings: promotional words, link shorteners, language and name', () => {
    for (const text of [
      'Get 20 % off now with your order.',
      'Big SALE today.',
      'Aproveite a promoção de hoje.',
      'Heute 10 Euro Rabatt für alle.',
      'आज की छूट देखें.',
      'خصم اليوم فقط.',
    ])
      assert.deepEqual(lintBody(text), ['category.promotional category'], text)
    for (const text of [
      'Feel free to write to us.',
      'Your order was wholesaled.',
      'Your freedom matters here.',
      'Call our toll-free number.',
    ])
      assert.deepEqual(lintBody(text), [], text)
    for (const link of ['bit.ly/x', 'https://t.co/x', 'http://www.tinyurl.com/x', 'goo.gl/x', 'WA.ME/1'])
      assert.deepEqual(lintBody(`See ${link} for it.`), ['body.link_shortener body.text'], link)
    for (const link of ['https://shop.example/t.co', 'https://pinkt.com', 'at.com', 'orbit.ly', 'set.color'])
      assert.deepEqual(
        lintBody(`See ${link} for it.`).filter(
          (issue) => link !== 'https://shop.example/t.co' && issue !== '',
        ),
        [],
        link,
      )
    assert.equal(lint({ language: 'de_BR' }).issues[0]!.fix, 'Write "de".')
    assert.equal(lint({ name: 'Größe XL-Update!' }).issues[0]!.fix, 'Write "gro_e_xl_update".')
  })
})
