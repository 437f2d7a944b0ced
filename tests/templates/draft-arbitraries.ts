import fc from 'fast-check'
import { TemplateDraft } from '../../catalog/templates/schemas.ts'

/** Drafts of templates of every kind that break no rule. `draft-edits.ts` spoils them. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export const oneOf = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
export const often = <T>(usual: fc.Arbitrary<T>, ...rare: fc.Arbitrary<T>[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 6, arbitrary: usual }, ...rare)
export const maybe = (value: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> =>
  fc.oneof(value, fc.constant({}))
export const merged = (...parts: fc.Arbitrary<JsonObject>[]): fc.Arbitrary<JsonObject> =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as JsonObject)
export const field = (name: string, value: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> =>
  value.map((v) => ({ [name]: v }))

/**
 * Letters of one code point and one unit, of one and two, of two code points, and a picture; some languages
 * write no spaces.
 */
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
const decorated = often(words, oneOf('🎉', '👩‍👩‍👧', '🇩🇪', '1️⃣', '*bold*', '_soft_', '~old~'))
export const joined = (word: fc.Arbitrary<string>, least: number, most: number) =>
  fc.array(word, { minLength: least, maxLength: most }).map((list) => list.join(' '))

export const variable = (n: number) => `{{${n}}}`
export const sample = often(
  joined(words, 1, 2),
  oneOf('Ada', '2026-10-01', '25 %', '🎁', 'https://www.example.com/a?b=c', 'a    b'),
)

/** Text with each of `count` variables among its words, the order and repetitions left to chance. */
const textWith = (count: number): fc.Arbitrary<{ text: string; examples: string[] }> =>
  fc
    .tuple(
      joined(decorated, 2, 5),
      fc.array(fc.tuple(joined(decorated, 2, 5), oneOf(' ', ': ', '\n', ' (')), {
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
    .map(([start, between, examples, order, end]) => ({
      text: `${start}${between.map(([after, gap], n) => `${gap}${variable(order[n]!)} ${after}`).join('')}${end}`,
      examples,
    }))

export const bodyOf = (counts: fc.Arbitrary<number>): fc.Arbitrary<JsonObject> =>
  counts.chain(textWith).map(({ text, examples }) => ({ text, ...(examples.length > 0 ? { examples } : {}) }))

const short = (most: number) => joined(words, 1, 4).map((text) => [...text].slice(0, most).join('').trim())
const handle = oneOf('4::aW1hZ2UvanBlZw==:ARZVv4zu', '4::dmlkZW8vbXA0:ARa')

export const header = fc.oneof(
  merged(fc.constant({ format: 'TEXT' }), field('text', short(60))),
  merged(
    fc.constant({ format: 'TEXT' }),
    field(
      'text',
      short(50).map((text) => `${text} {{1}}`),
    ),
    field('example', sample),
  ),
  merged(field('format', oneOf('IMAGE', 'VIDEO', 'DOCUMENT')), field('media_handle', handle)),
  fc.constant({ format: 'LOCATION' }),
)
export const footer = field('text', short(60))

/** Labels differ, since each ends with its place. */
const label = (place: number) =>
  field(
    'text',
    short(22).map((text) => `${text} ${place}`),
  )
const pages = oneOf(
  'https://www.example.com',
  'https://example.com/shop?q=1#top',
  'https://münchen.example/straße',
  'https://user@example.com:8443/a',
  'HTTPS://EXAMPLE.COM/x',
  'https://127.0.0.1/x',
)
const url = fc.oneof(
  field('url', pages),
  fc
    .tuple(
      oneOf('https://www.example.com/', 'https://example.com/t?id='),
      oneOf('a', 'order/17', '%C3%A4', 'é'),
    )
    .map(([url, end]): JsonObject => ({ url: `${url}{{1}}`, url_example: `${url}${end}` })),
)
const phone = oneOf(
  '+15550100042',
  '+49 30 901820',
  '+442079460000',
  '+972 3-608-4000',
  '15550051310',
  '+81312345678',
)
const flow = fc.oneof(
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

const button = (type: string, place: number): fc.Arbitrary<JsonObject> => {
  const start = [
    field('type', fc.constant(type)),
    ...(type === 'COPY_CODE' || type === 'OTP' ? [] : [label(place)]),
  ]
  switch (type) {
    case 'URL':
      return merged(...start, url)
    case 'PHONE_NUMBER':
      return merged(...start, field('phone_number', phone))
    case 'COPY_CODE':
      return merged(
        ...start,
        field('coupon_code', oneOf('25OFF', 'CARIBE25CARIBE25', '割引コード', '12345678901234567890')),
      )
    case 'FLOW':
      return merged(...start, flow)
    default:
      return merged(...start)
  }
}
const buttonsOf = (types: readonly string[]): fc.Arbitrary<Json> => fc.tuple(...types.map(button))

const actions = fc.shuffledSubarray(['URL', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL'])
export const layout = fc.tuple(fc.nat({ max: 4 }), actions, fc.boolean()).map(([replies, others, first]) => {
  const quick = Array.from({ length: replies }, () => 'QUICK_REPLY')
  return first ? [...quick, ...others] : [...others, ...quick]
})
export const buttons = (types: fc.Arbitrary<readonly string[]>): fc.Arbitrary<JsonObject> =>
  field('buttons', types.chain(buttonsOf))

const start = (categories: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> =>
  fc.record({
    name: oneOf('order_update', 'a', 'x'.repeat(512), '2026_sale', '_'),
    language: oneOf('en_US', 'de', 'fil', 'zh_CN', 'pt_BR', 'ar', 'xx'),
    category: categories,
  })
const counts = often(fc.nat({ max: 3 }), fc.integer({ min: 4, max: 12 }))

const message = merged(
  start(oneOf('MARKETING', 'UTILITY')),
  field('body', bodyOf(counts)),
  maybe(field('header', header)),
  maybe(field('footer', footer)),
  maybe(buttons(layout)),
)

const offer = merged(
  start(fc.constant('MARKETING')),
  field('body', bodyOf(counts)),
  maybe(field('header', header)),
  maybe(field('footer', footer)),
  buttons(
    oneOf(
      ['COPY_CODE'],
      ['COPY_CODE', 'URL'],
      ['QUICK_REPLY', 'COPY_CODE'],
      ['URL', 'COPY_CODE', 'PHONE_NUMBER'],
    ),
  ),
  field('limited_time_offer', merged(field('text', short(16)), maybe(field('has_expiration', fc.boolean())))),
)

const cardsOf = (
  format: string,
  types: readonly string[],
  texts: boolean,
  count: number,
): fc.Arbitrary<Json> =>
  fc.array(
    merged(
      fc.constant({ header_format: format }),
      field('media_handle', handle),
      ...(texts ? [field('body', bodyOf(fc.nat({ max: 2 })))] : []),
      field('buttons', buttonsOf(types)),
    ),
    { minLength: count, maxLength: count },
  )
const layouts = oneOf(
  ['QUICK_REPLY'],
  ['URL'],
  ['PHONE_NUMBER'],
  ['QUICK_REPLY', 'URL'],
  ['URL', 'QUICK_REPLY'],
  ['URL', 'URL'],
  ['QUICK_REPLY', 'QUICK_REPLY'],
  ['PHONE_NUMBER', 'PHONE_NUMBER'],
)
const carousel = merged(
  start(fc.constant('MARKETING')),
  field('body', bodyOf(counts)),
  field(
    'carousel',
    field(
      'cards',
      fc
        .tuple(
          oneOf('IMAGE', 'VIDEO'),
          layouts,
          fc.boolean(),
          often(fc.integer({ min: 2, max: 4 }), fc.constant(10)),
        )
        .chain((of) => cardsOf(...of)),
    ),
  ),
)

const otp = fc.oneof(
  fc.constant({}),
  fc.constant({ otp_type: 'COPY_CODE' }),
  merged(field('otp_type', oneOf('ONE_TAP', 'ZERO_TAP')), field('supported_apps', apps)),
)
const authentication = merged(
  start(fc.constant('AUTHENTICATION')),
  maybe(field('body', maybe(field('add_security_recommendation', fc.boolean())))),
  maybe(field('footer', field('code_expiration_minutes', fc.integer({ min: 1, max: 90 })))),
  field(
    'buttons',
    merged(fc.constant({ type: 'OTP' }), maybe(field('text', short(25))), otp).map((one) => [one]),
  ),
)

export const asDraft = (value: Json): TemplateDraft[] => {
  const { data } = TemplateDraft.safeParse(value)
  return data ? [data] : []
}
export const taken = (value: fc.Arbitrary<Json>): fc.Arbitrary<TemplateDraft> =>
  value
    .map(asDraft)
    .filter((all) => all.length > 0)
    .map(([one]) => one!)

export const good: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 4, arbitrary: message },
  { weight: 2, arbitrary: offer },
  { weight: 3, arbitrary: carousel },
  { weight: 2, arbitrary: authentication },
)
export const validDrafts = taken(good)
