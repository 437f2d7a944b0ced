import fc from 'fast-check'
import { TemplateDraft } from '../../catalog/templates/schemas.ts'
import { sampleHandles } from './samples.ts'

/** Template drafts of every kind that break no rule. `draft-edits.ts` makes them invalid. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export const oneOf = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
export const mostly = <T>(common: fc.Arbitrary<T>, ...rare: fc.Arbitrary<T>[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 6, arbitrary: common }, ...rare)
export const optional = (value: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> =>
  fc.oneof(value, fc.constant({}))
export const mergeFields = (...parts: fc.Arbitrary<JsonObject>[]): fc.Arbitrary<JsonObject> =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as JsonObject)
export const field = (name: string, value: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> =>
  value.map((v) => ({ [name]: v }))

/** Words with letters of one or two UTF-16 units or two code points; of scripts with and without spaces. */
export const words = oneOf(
  'order',
  'Your',
  'is',
  'on',
  'its',
  'way',
  'großes',
  'Café',
  'e\u0301te\u0301',
  'заказ',
  'готов',
  'طلبك',
  'جاهز',
  'आपका',
  'ऑर्डर',
  '您的订单',
  '準備中',
  '주문이',
  'พร้อมแล้ว',
  '𝒳𝒴',
  '42',
  "don't",
  'x-ray',
  '№5',
  'PIN',
  '50',
  'ready™',
  '©2026',
)
const decoratedWords = mostly(words, oneOf('🎉', '👩‍👩‍👧', '🇩🇪', '1️⃣', '*bold*', '_soft_', '~old~'))
export const joinWords = (word: fc.Arbitrary<string>, min: number, max: number) =>
  fc.array(word, { minLength: min, maxLength: max }).map((list) => list.join(' '))

export const formatVariable = (n: number) => `{{${n}}}`
export const sample = mostly(
  joinWords(words, 1, 2),
  oneOf('Ada', '2026-10-01', '25 %', '🎁', 'https://www.example.com/a?b=c', 'a    b'),
)

/** Texts with `count` variables among their words, in random order. */
const textWithVariables = (count: number): fc.Arbitrary<{ text: string; examples: string[] }> =>
  fc
    .tuple(
      joinWords(decoratedWords, 2, 5),
      fc.array(fc.tuple(joinWords(decoratedWords, 2, 5), oneOf(' ', ': ', '\n', ' (')), {
        minLength: count,
        maxLength: count,
      }),
      fc.array(sample, { minLength: count, maxLength: count }),
      fc.shuffledSubarray(
        Array.from({ length: count }, (_, n) => n + 1),
        { minLength: count, maxLength: count },
      ),
      oneOf('.', '!', '。', ' ☕', ' end'),
    )
    .map(([start, parts, examples, order, end]) => {
      const middle = parts.map(([words, gap], n) => `${gap}${formatVariable(order[n]!)} ${words}`)
      return { text: `${start}${middle.join('')}${end}`, examples }
    })

export const bodyWithVariables = (counts: fc.Arbitrary<number>): fc.Arbitrary<JsonObject> =>
  counts
    .chain(textWithVariables)
    .map(({ text, examples }) => ({ text, ...(examples.length > 0 ? { examples } : {}) }))

const shortText = (maxLength: number) =>
  joinWords(words, 1, 4).map((text) => [...text].slice(0, maxLength).join('').trim())
const mediaFields = (...formats: (keyof typeof sampleHandles)[]): fc.Arbitrary<JsonObject> =>
  oneOf(...formats).map((format) => ({ format, media_handle: sampleHandles[format] }))

export const header = fc.oneof(
  mergeFields(fc.constant({ format: 'TEXT' }), field('text', shortText(60))),
  mergeFields(
    fc.constant({ format: 'TEXT' }),
    field(
      'text',
      shortText(50).map((text) => `${text} {{1}}`),
    ),
    field('example', sample),
  ),
  mediaFields('IMAGE', 'VIDEO', 'DOCUMENT'),
  fc.constant({ format: 'LOCATION' }),
)
export const footer = field('text', shortText(60))

/** Labels are unique, since each ends with the index of its button. */
const buttonLabel = (index: number) =>
  field(
    'text',
    shortText(22).map((text) => `${text} ${index}`),
  )
const staticUrls = oneOf(
  'https://www.example.com',
  'https://example.com/shop?q=1#top',
  'https://münchen.example/straße',
  'https://user@example.com:8443/a',
  'HTTPS://EXAMPLE.COM/x',
  'https://127.0.0.1/x',
)
const urlFields = fc.oneof(
  field('url', staticUrls),
  fc
    .tuple(
      oneOf('https://www.example.com/', 'https://example.com/t?id='),
      oneOf('a', 'order/17', '%C3%A4', 'é'),
    )
    .map(([url, suffix]): JsonObject => ({ url: `${url}{{1}}`, url_example: `${url}${suffix}` })),
)
const phoneNumber = oneOf(
  '+15550100042',
  '+49 30 901820',
  '+442079460000',
  '+972 3-608-4000',
  '15550051310',
  '+81312345678',
)
const flowFields = fc.oneof(
  fc.constant({ flow_id: '881', navigate_screen: 'WELCOME' }),
  fc.constant({ flow_id: '881', flow_action: 'NAVIGATE', navigate_screen: 'A' }),
  fc.constant({ flow_id: '881', flow_action: 'DATA_EXCHANGE' }),
)
export const apps = fc.array(
  fc.record({
    package_name: oneOf('com.example.shop', 'a.b', 'Com.Exa_mple.s2'),
    signature_hash: oneOf('K8a/AINcGX7', 'abcdefghij=', '+++++++++++'),
  }),
  { minLength: 1, maxLength: 5 },
)

const buttonOfType = (type: string, index: number): fc.Arbitrary<JsonObject> => {
  const start = [
    field('type', fc.constant(type)),
    ...(type === 'COPY_CODE' || type === 'OTP' ? [] : [buttonLabel(index)]),
  ]
  switch (type) {
    case 'URL':
      return mergeFields(...start, urlFields)
    case 'PHONE_NUMBER':
      return mergeFields(...start, field('phone_number', phoneNumber))
    case 'COPY_CODE':
      return mergeFields(
        ...start,
        field('coupon_code', oneOf('25OFF', 'CARIBE25CARIBE25', '割引コード', '12345678901234567890')),
      )
    case 'FLOW':
      return mergeFields(...start, flowFields)
    default:
      return mergeFields(...start)
  }
}
const buttonList = (types: readonly string[]): fc.Arbitrary<Json> => fc.tuple(...types.map(buttonOfType))

const nonReplyTypes = fc.shuffledSubarray(['URL', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL'])
export const buttonLayout = fc
  .tuple(fc.nat({ max: 4 }), nonReplyTypes, fc.boolean())
  .map(([replyCount, otherTypes, repliesFirst]) => {
    const replies = Array.from({ length: replyCount }, () => 'QUICK_REPLY')
    return repliesFirst ? [...replies, ...otherTypes] : [...otherTypes, ...replies]
  })
export const buttons = (types: fc.Arbitrary<readonly string[]>): fc.Arbitrary<JsonObject> =>
  field('buttons', types.chain(buttonList))

const baseFields = (categories: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> =>
  fc.record({
    name: oneOf('order_update', 'a', 'x'.repeat(512), '2026_sale', '_'),
    language: oneOf('en_US', 'de', 'fil', 'zh_CN', 'pt_BR', 'ar', 'xx'),
    category: categories,
  })
const variableCounts = mostly(fc.nat({ max: 3 }), fc.integer({ min: 4, max: 12 }))

const messageDraft = mergeFields(
  baseFields(oneOf('MARKETING', 'UTILITY')),
  field('body', bodyWithVariables(variableCounts)),
  optional(field('header', header)),
  optional(field('footer', footer)),
  optional(buttons(buttonLayout)),
)

const mediaHeader = mediaFields('IMAGE', 'VIDEO')
const offerCode = mergeFields(
  fc.constant({ type: 'COPY_CODE' }),
  field('coupon_code', oneOf('25OFF', 'CARIBE25CARIBE2', '割引コード')),
)
const offerButtons = oneOf<string[]>(['URL'], ['URL', 'URL', 'PHONE_NUMBER'], ['PHONE_NUMBER', 'URL']).chain(
  (types) => fc.tuple(offerCode, ...types.map(buttonOfType)),
)

const offerDraft = mergeFields(
  baseFields(fc.constant('MARKETING')),
  field('body', bodyWithVariables(fc.nat({ max: 3 }))),
  optional(field('header', mediaHeader)),
  field('buttons', offerButtons),
  field(
    'limited_time_offer',
    mergeFields(field('text', shortText(16)), optional(field('has_expiration', fc.boolean()))),
  ),
)

const cardList = (
  format: 'IMAGE' | 'VIDEO',
  types: readonly string[],
  texts: boolean,
  count: number,
): fc.Arbitrary<Json> =>
  fc.array(
    mergeFields(
      fc.constant({ header_format: format }),
      fc.constant({ media_handle: sampleHandles[format] }),
      ...(texts ? [field('body', bodyWithVariables(fc.nat({ max: 2 })))] : []),
      field('buttons', buttonList(types)),
    ),
    { minLength: count, maxLength: count },
  )
const cardButtonLayouts = oneOf(
  ['QUICK_REPLY'],
  ['URL'],
  ['PHONE_NUMBER'],
  ['QUICK_REPLY', 'URL'],
  ['URL', 'QUICK_REPLY'],
  ['URL', 'URL'],
  ['QUICK_REPLY', 'QUICK_REPLY'],
  ['PHONE_NUMBER', 'PHONE_NUMBER'],
)
const carouselDraft = mergeFields(
  baseFields(fc.constant('MARKETING')),
  field('body', bodyWithVariables(variableCounts)),
  field(
    'carousel',
    field(
      'cards',
      fc
        .tuple(
          oneOf<'IMAGE' | 'VIDEO'>('IMAGE', 'VIDEO'),
          cardButtonLayouts,
          fc.boolean(),
          mostly(fc.integer({ min: 2, max: 4 }), fc.constant(10)),
        )
        .chain((options) => cardList(...options)),
    ),
  ),
)

const otp = fc.oneof(
  fc.constant({}),
  fc.constant({ otp_type: 'COPY_CODE' }),
  mergeFields(fc.constant({ otp_type: 'ONE_TAP' }), field('supported_apps', apps)),
  mergeFields(
    fc.constant({ otp_type: 'ZERO_TAP', zero_tap_terms_accepted: true }),
    field('supported_apps', apps),
  ),
)
const authenticationDraft = mergeFields(
  baseFields(fc.constant('AUTHENTICATION')),
  optional(field('body', optional(field('add_security_recommendation', fc.boolean())))),
  optional(field('footer', field('code_expiration_minutes', fc.integer({ min: 1, max: 90 })))),
  field(
    'buttons',
    mergeFields(fc.constant({ type: 'OTP' }), optional(field('text', shortText(25))), otp).map((one) => [
      one,
    ]),
  ),
)

export const parseDraft = (value: Json): TemplateDraft[] => {
  const { data } = TemplateDraft.safeParse(value)
  return data ? [data] : []
}
export const parseable = (value: fc.Arbitrary<Json>): fc.Arbitrary<TemplateDraft> =>
  value
    .map(parseDraft)
    .filter((all) => all.length > 0)
    .map(([one]) => one!)

export const validDraftJson: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 4, arbitrary: messageDraft },
  { weight: 2, arbitrary: offerDraft },
  { weight: 3, arbitrary: carouselDraft },
  { weight: 2, arbitrary: authenticationDraft },
)
export const validDrafts = parseable(validDraftJson)
