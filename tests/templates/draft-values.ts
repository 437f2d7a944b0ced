import fc from 'fast-check'
import {
  apps,
  bodyWithVariables,
  buttonLayout,
  buttons,
  field,
  footer,
  formatVariable,
  header,
  joinWords,
  type JsonObject,
  mergeFields,
  mostly,
  oneOf,
  optional,
  sample,
  words,
} from './draft-arbitraries.ts'
import { sampleHandles } from './samples.ts'

/** What `draft-edits.ts` puts into drafts: texts that the rules are about, and parts of drafts. */

/** Bodies of hardly more than variables: some adjacent, some with gaps in the numbering, some repeated. */
const denseBody: fc.Arbitrary<JsonObject> = fc
  .tuple(
    oneOf('', 'Hi ', 'Hi, your order: '),
    fc.array(
      fc.tuple(
        fc.integer({ min: 1, max: 4 }),
        oneOf('', ' ', '\n', ', ', '. ', '-', ' or ', ' and so on ', '\u200b', ' \u2067', '\u3164'),
      ),
      { minLength: 1, maxLength: 5 },
    ),
    oneOf('', '.', ' ', 'end', ' 🎉', '\u2800', '\u{e0020}'),
    fc.array(mostly(sample, oneOf('', ' ', 'a\tb', 'a     b', 'a\n')), { maxLength: 4 }),
    fc.boolean(),
  )
  .map(([start, variables, end, samples, hasSamplePerVariable]) => {
    const distinct = new Set(variables.map(([n]) => n)).size
    return {
      text: `${start}${variables.map(([n, gap]) => `${formatVariable(n)}${gap}`).join('')}${end}`,
      examples: hasSamplePerVariable
        ? Array.from({ length: distinct }, (_, n) => samples[n] ?? 'Ada')
        : samples,
    }
  })

/** Bodies with the required number of words beside the variables, one fewer, or one more. */
const wordRatioBody: fc.Arbitrary<JsonObject> = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.nat({ max: 2 }))
  .map(([count, extraWords]) => {
    const inner = Math.max(0, count - 2 + extraWords)
    const gap = (n: number) => (n < inner ? ` w${n} ` : ', ')
    const variables = Array.from(
      { length: count },
      (_, n) => `${formatVariable(n + 1)}${n < count - 1 ? gap(n) : ''}`,
    )
    return {
      text: `Hi ${variables.join('')}${' x'.repeat(Math.max(0, inner - count + 1))} end`,
      examples: Array.from({ length: count }, () => 'Ada'),
    }
  })

/** Bodies with enough words and two variables that are adjacent or nearly so. */
const adjacentVariablesBody: fc.Arbitrary<JsonObject> = fc
  .tuple(
    joinWords(words, 4, 5),
    oneOf('', ' ', '  ', '\n', '\t', '\u00A0', '\u3000', '\u200B', ',', '-', ' & '),
    joinWords(words, 4, 5),
  )
  .map(([before, gap, after]) => ({
    text: `${before} {{1}}${gap}{{2}} ${after} end`,
    examples: ['Ada', 'Grace'],
  }))

/** Inserted into texts: what the rules are about, and what only looks like it. */
export const snippets = oneOf(
  '{{1}}',
  '{{2}}',
  '{{3}}',
  '{{1}}{{2}}',
  '{{1}} {{2}}',
  '{{1}}\n{{2}}',
  '{{01}}',
  '{{0}}',
  '{{ 1 }}',
  '{{name}}',
  '{{{1}}}',
  '{{',
  '}}',
  '{',
  '}',
  '{{1}',
  '{1}}',
  '{{-1}}',
  '{{１}}',
  '{{99999999999999999999}}',
  '{{}}',
  '{{1}}x',
  '\n',
  '\r',
  '\r\n',
  '\t',
  '    ',
  '     ',
  '\u00A0\u00A0\u00A0\u00A0\u00A0',
  '\u2028',
  '\u200B',
  '\u0301',
  '\n\n\n',
  ' ',
  '',
  '🎉',
  '❤️',
  '☎',
  '1️⃣',
  '#⃣',
  '🇫',
  '🇫🇷',
  '👩🏽‍💻',
  '🏻',
  '©',
  '®️',
  '™',
  '‼',
  '\uFE0F',
  '5',
  '#',
  '*',
  '_',
  '~',
  '`',
  '.',
  '/',
  '#x',
  '?q={{1}}',
  'https://',
  'http://',
  '漢字',
  'שלום',
  'ก',
  'x',
)

const urls = [
  'https://wa.me/15550100',
  'https://api.whatsapp.com/send?phone=1',
  'https://WA.ME/x',
  'https://www.wa.me/x',
  'https://wa.me.example.com',
  'https://wa.me:443/{{1}}',
  'https://user@wa.me/x',
  'https://example.com/wa.me',
  'http://example.com',
  'https://',
  'https:example.com',
  'https:/example.com',
  'https:///example.com',
  'https:\\\\example.com',
  '//example.com',
  'example.com',
  'ftp://example.com',
  'https://exa mple.com',
  'https://[::1]/',
  'https://[x',
  'https://example.com:99999',
  'https://example.com/{{1}}',
  'https://{{1}}',
  'https://example.com{{1}}',
  'https://example.com/{{1}}/x',
  'https://example.com/{{2}}',
  'https://example.com/{{1}}{{1}}',
  'https://example.com/{{1}}{{2}}',
  'https://example.com/{{',
  'https://example.com/}}',
  'https://example.com/{{1}}}}',
  ' https://example.com',
  'https://example.com ',
  'https://example.com/a b',
  'https://?x',
  'https://#x',
  'https://.',
  'https://a..b',
  'https://%zz',
  'https://:80',
  'https://@',
  'https://例え.jp/漢字',
  'https://localhost',
  'https://1.2.3',
  'javascript:alert(1)',
  'https://example.com/\n',
  'https://example.com/order/{{1}}?x',
  'https://www.example.com/',
  'https://example.com/t?id=',
  'https://www.example.com/{{1}}',
]

/** Replacements of a text, by the key of its field. */
export const replacementsByField: Readonly<Record<string, readonly string[]>> = {
  url: urls,
  url_example: urls,
  phone_number: [
    '+1',
    '+15550100042x5',
    '0301234567',
    '+0301234567',
    '0049 30 901820',
    '+49 (0)30 901820',
    '++15550100042',
    'tel:+15550100042',
    '+999123456',
    '12',
    '+1 555 010 0042 00000000',
    '+１５５５０１０００４２',
    '+1-800-FLOWERS',
    '+4930901820901820901',
    '(+1) 5550100042',
    '+1 (555) 010-0042',
    '+49 006675',
    '-',
    '+',
  ],
  package_name: [
    'com.example',
    'com',
    '1com.example',
    'com.1example',
    'com.exam-ple',
    'com.example.',
    '.com',
    'com..x',
    'com.éa',
    'a.b.c_9',
  ],
  signature_hash: ['K8a/AINcGX', 'K8a/AINcGX77', 'K8a%2FAINcG', 'K8a/AINcGX ', 'K8a_AINcGX7', '==========='],
  coupon_code: ['a b', 'SAVE 10', ' SAVE', 'SAVE\n', 'SAVE\u00A010', '🎁🎁', 'A'],
  language: ['en-US', 'EN', 'en_us', 'zh_Hant', 'e', 'engl', 'en_USA', 'deu', 'en_', 'fil_PH', 'en_US '],
  format: ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION'],
  header_format: ['IMAGE', 'VIDEO'],
  type: ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL', 'OTP'],
  otp_type: ['COPY_CODE', 'ONE_TAP', 'ZERO_TAP'],
  flow_action: ['NAVIGATE', 'DATA_EXCHANGE'],
  name: ['Order', 'order-update', 'ordér', 'order update', '٣', 'a\n'],
  category: ['OTHER', 'marketing', 'UTILITY', 'MARKETING', 'AUTHENTICATION'],
}

export const plainReplacements = ['', ' ', '\u00A0', '\uFEFF', '\u200B', '{{1}}', 'x', '🎉', 'Ends', '0']

const replacementValue = oneOf(
  ...plainReplacements,
  'https://example.com/{{1}}',
  'https://example.com/17',
  '+15550100042',
  'SAVE 10',
  'com.example',
)

/** Maximum length of a field, by its path without list indexes. */
export const maxCharacters: Readonly<Record<string, number>> = {
  name: 512,
  'body.text': 1024,
  'header.text': 60,
  'footer.text': 60,
  'limited_time_offer.text': 16,
  'carousel.cards.body.text': 160,
  'buttons.supported_apps.signature_hash': 11,
  ...Object.fromEntries(
    ['buttons', 'carousel.cards.buttons'].flatMap((list) =>
      Object.entries({ text: 25, url: 2000, coupon_code: 20, phone_number: 20 }).map(([key, max]) => [
        `${list}.${key}`,
        max,
      ]),
    ),
  ),
}

/** Texts that only look like a variable. */
export const lookalikes = oneOf(
  '{{01}}',
  '{{ 1 }}',
  '{{1 }}',
  '{{{1}}}',
  '{{１}}',
  '{{x}}',
  '{{0}}',
  '{{1}',
  '{1}',
  '{{+1}}',
  '{{1.0}}',
)

const urlPairs = fc
  .tuple(
    oneOf('https://example.com/{{1}}', 'https://example.com?id={{1}}', 'https://example.com{{1}}'),
    oneOf(
      'https://example.com',
      'https://example.com/',
      'https://example.com?id=',
      'https://example.com?id=1',
      'https://example.com/ 1',
    ),
  )
  .map(([url, example]): JsonObject => ({ url, url_example: example }))

const invalidHeader = mergeFields(
  fc.constant({ format: 'TEXT' }),
  field('text', oneOf('Hi {{1}}', '{{1}}', 'Hi {{2}}', '{{1}} and {{1}}', '{{1}}{{2}}', 'Hi {{x}}')),
  optional(field('example', oneOf('Ada', '', ' ', 'a\nb', 'a\tb', 'a     b'))),
)

/** Fields that are added to an object, or replace its fields. */
export const addedFields = fc.oneof(
  field('header', header),
  field('header', invalidHeader),
  field('footer', footer),
  field('footer', field('code_expiration_minutes', oneOf(-1, 0, 1, 90, 91))),
  field('footer', fc.constant({})),
  buttons(buttonLayout),
  buttons(oneOf(9, 10, 11).map((count) => Array.from({ length: count }, () => 'QUICK_REPLY'))),
  field('limited_time_offer', fc.constant({ text: 'Ends soon' })),
  field('zero_tap_terms_accepted', fc.boolean()),
  field('carousel', fc.constant({ cards: [] })),
  field('body', fc.constant({ text: 'Thank you for the order.' })),
  field('body', fc.constant({})),
  field('body', bodyWithVariables(fc.integer({ min: 1, max: 8 }))),
  field('body', denseBody),
  denseBody,
  field('body', wordRatioBody),
  field('body', adjacentVariablesBody),
  adjacentVariablesBody,
  field('body', fc.constant({ add_security_recommendation: true })),
  field('text', snippets),
  field('example', sample),
  field('examples', fc.array(sample, { maxLength: 3 })),
  field('media_handle', replacementValue),
  field('media_handle', oneOf<string>(...Object.values(sampleHandles))),
  field('media_handle', oneOf('https://www.example.com/sale.png', '1234567890')),
  field('url', replacementValue),
  urlPairs,
  urlPairs,
  field('url_example', replacementValue),
  field('phone_number', replacementValue),
  field('coupon_code', replacementValue),
  field('flow_id', replacementValue),
  field('flow_action', oneOf('NAVIGATE', 'DATA_EXCHANGE')),
  field('navigate_screen', replacementValue),
  field('otp_type', oneOf('COPY_CODE', 'ONE_TAP', 'ZERO_TAP')),
  field('supported_apps', apps),
  field('supported_apps', fc.constant([])),
  field('has_expiration', fc.boolean()),
  field('add_security_recommendation', fc.boolean()),
  field('header_format', oneOf('IMAGE', 'VIDEO')),
  field('format', oneOf('TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION')),
  field('type', oneOf('QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL', 'OTP')),
  field('category', oneOf('MARKETING', 'UTILITY', 'AUTHENTICATION')),
)
