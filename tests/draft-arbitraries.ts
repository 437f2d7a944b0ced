import fc from 'fast-check'
import { TemplateDraft } from '../catalog/templates.ts'

/**
 * Drafts of templates of every kind. Most of `validDrafts` break no rule and none breaks one on purpose; `drafts` are the same after up to three edits,
 * each of which may break a rule, mend one, or neither.
 */

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type JsonObject = { [key: string]: Json }

const oneOf = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
const often = <T>(usual: fc.Arbitrary<T>, ...rare: fc.Arbitrary<T>[]): fc.Arbitrary<T> => fc.oneof({ weight: 6, arbitrary: usual }, ...rare)
const maybe = (value: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> => fc.oneof(value, fc.constant({}))
const merged = (...parts: fc.Arbitrary<JsonObject>[]): fc.Arbitrary<JsonObject> => fc.tuple(...parts).map((all) => Object.assign({}, ...all) as JsonObject)
const field = (name: string, value: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> => value.map((v) => ({ [name]: v }))

/** Letters of one code point and one unit, of one and two, of two code points, and a picture; some languages write no spaces. */
const words = oneOf(
  'order', 'Your', 'is', 'on', 'its', 'way', 'großes', 'Café', 'e\u0301te\u0301', 'заказ', 'готов', 'طلبك', 'جاهز', 'आपका', 'ऑर्डर', '您的订单', '準備中', '주문이', 'พร้อมแล้ว',
  '𝒳𝒴', '42', 'don\'t', 'x-ray', '№5', 'PIN', '50', 'ready™', '©2026',
)
const decorated = often(words, oneOf('🎉', '👩‍👩‍👧', '🇩🇪', '1️⃣', '*bold*', '_soft_', '~old~'))
const joined = (word: fc.Arbitrary<string>, least: number, most: number) => fc.array(word, { minLength: least, maxLength: most }).map((list) => list.join(' '))

const variable = (n: number) => `{{${n}}}`
const sample = often(joined(words, 1, 2), oneOf('Ada', '2026-10-01', '25 %', '🎁', 'https://www.example.com/a?b=c', 'a    b'))

/** Text with each of `count` variables among its words, the order and repetitions left to chance. */
const textWith = (count: number): fc.Arbitrary<{ text: string; examples: string[] }> => fc.tuple(
  joined(decorated, 2, 5), fc.array(fc.tuple(joined(decorated, 2, 5), oneOf(' ', ': ', '\n', ' (')), { minLength: count, maxLength: count }), fc.array(sample, { minLength: count, maxLength: count }),
  fc.shuffledSubarray(Array.from({ length: count }, (_, n) => n + 1), { minLength: count, maxLength: count }), oneOf('.', '!', '。', ' ☕', ' end'),
).map(([start, between, examples, order, end]) => ({ text: `${start}${between.map(([after, gap], n) => `${gap}${variable(order[n]!)} ${after}`).join('')}${end}`, examples }))

const bodyOf = (counts: fc.Arbitrary<number>): fc.Arbitrary<JsonObject> => counts.chain(textWith).map(({ text, examples }) => ({ text, ...(examples.length > 0 ? { examples } : {}) }))

const short = (most: number) => joined(words, 1, 4).map((text) => [...text].slice(0, most).join('').trim())
const handle = oneOf('4::aW1hZ2UvanBlZw==:ARZVv4zu', '4::dmlkZW8vbXA0:ARa')

const header = fc.oneof(
  merged(fc.constant({ format: 'TEXT' }), field('text', short(60))),
  merged(fc.constant({ format: 'TEXT' }), field('text', short(50).map((text) => `${text} {{1}}`)), field('example', sample)),
  merged(field('format', oneOf('IMAGE', 'VIDEO', 'DOCUMENT')), field('media_handle', handle)), fc.constant({ format: 'LOCATION' }),
)
const footer = field('text', short(60))

/** Labels differ, since each ends with its place. */
const label = (place: number) => field('text', short(22).map((text) => `${text} ${place}`))
const pages = oneOf('https://www.example.com', 'https://example.com/shop?q=1#top', 'https://münchen.example/straße', 'https://user@example.com:8443/a', 'HTTPS://EXAMPLE.COM/x', 'https://127.0.0.1/x')
const url = fc.oneof(
  field('url', pages),
  fc.tuple(oneOf('https://www.example.com/', 'https://example.com/t?id='), oneOf('a', 'order/17', '%C3%A4', 'é')).map(([url, end]): JsonObject => ({ url: `${url}{{1}}`, url_example: `${url}${end}` })),
)
const phone = oneOf('+15550100042', '+49 30 901820', '+442079460000', '+972 3-608-4000', '15550051310', '+81312345678')
const flow = fc.oneof(
  fc.constant({ flow_id: '881', navigate_screen: 'WELCOME' }), fc.constant({ flow_id: '881', flow_action: 'NAVIGATE', navigate_screen: 'A' }), fc.constant({ flow_id: '881', flow_action: 'DATA_EXCHANGE' }),
)
const apps = fc.array(fc.record({ package_name: oneOf('com.example.shop', 'a.b', 'Com.Exa_mple.s2'), signature_hash: oneOf('K8a/AINcGX7', 'abcdefghij=', '+++++++++++') }), { minLength: 1, maxLength: 5 })

const button = (type: string, place: number): fc.Arbitrary<JsonObject> => {
  const start = [field('type', fc.constant(type)), ...(type === 'COPY_CODE' || type === 'OTP' ? [] : [label(place)])]
  switch (type) {
    case 'URL': return merged(...start, url)
    case 'PHONE_NUMBER': return merged(...start, field('phone_number', phone))
    case 'COPY_CODE': return merged(...start, field('coupon_code', oneOf('25OFF', 'CARIBE25CARIBE25', '割引コード', '12345678901234567890')))
    case 'FLOW': return merged(...start, flow)
    default: return merged(...start)
  }
}
const buttonsOf = (types: readonly string[]): fc.Arbitrary<Json> => fc.tuple(...types.map(button))

const actions = fc.shuffledSubarray(['URL', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL'])
const layout = fc.tuple(fc.nat({ max: 4 }), actions, fc.boolean()).map(([replies, others, first]) => {
  const quick = Array.from({ length: replies }, () => 'QUICK_REPLY')
  return first ? [...quick, ...others] : [...others, ...quick]
})
const buttons = (types: fc.Arbitrary<readonly string[]>): fc.Arbitrary<JsonObject> => field('buttons', types.chain(buttonsOf))

const start = (categories: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> => fc.record({
  name: oneOf('order_update', 'a', 'x'.repeat(512), '2026_sale', '_'), language: oneOf('en_US', 'de', 'fil', 'zh_CN', 'pt_BR', 'ar', 'xx'), category: categories,
})
const counts = often(fc.nat({ max: 3 }), fc.integer({ min: 4, max: 12 }))

const message = merged(start(oneOf('MARKETING', 'UTILITY')), field('body', bodyOf(counts)), maybe(field('header', header)), maybe(field('footer', footer)), maybe(buttons(layout)))

const offer = merged(
  start(fc.constant('MARKETING')), field('body', bodyOf(counts)), maybe(field('header', header)), maybe(field('footer', footer)),
  buttons(oneOf(['COPY_CODE'], ['COPY_CODE', 'URL'], ['QUICK_REPLY', 'COPY_CODE'], ['URL', 'COPY_CODE', 'PHONE_NUMBER'])),
  field('limited_time_offer', merged(field('text', short(16)), maybe(field('has_expiration', fc.boolean())))),
)

const cardsOf = (format: string, types: readonly string[], texts: boolean, count: number): fc.Arbitrary<Json> => fc.array(
  merged(fc.constant({ header_format: format }), field('media_handle', handle), ...(texts ? [field('body', bodyOf(fc.nat({ max: 2 })))] : []), field('buttons', buttonsOf(types))),
  { minLength: count, maxLength: count },
)
const layouts = oneOf(['QUICK_REPLY'], ['URL'], ['PHONE_NUMBER'], ['QUICK_REPLY', 'URL'], ['URL', 'QUICK_REPLY'], ['URL', 'URL'], ['QUICK_REPLY', 'QUICK_REPLY'], ['PHONE_NUMBER', 'PHONE_NUMBER'])
const carousel = merged(
  start(fc.constant('MARKETING')), field('body', bodyOf(counts)),
  field('carousel', field('cards', fc.tuple(oneOf('IMAGE', 'VIDEO'), layouts, fc.boolean(), often(fc.integer({ min: 2, max: 4 }), fc.constant(10))).chain((of) => cardsOf(...of)))),
)

const otp = fc.oneof(fc.constant({}), fc.constant({ otp_type: 'COPY_CODE' }), merged(field('otp_type', oneOf('ONE_TAP', 'ZERO_TAP')), field('supported_apps', apps)))
const authentication = merged(
  start(fc.constant('AUTHENTICATION')), maybe(field('body', maybe(field('add_security_recommendation', fc.boolean())))),
  maybe(field('footer', field('code_expiration_minutes', fc.integer({ min: 1, max: 90 })))),
  field('buttons', merged(fc.constant({ type: 'OTP' }), maybe(field('text', short(25))), otp).map((one) => [one])),
)

const asDraft = (value: Json): TemplateDraft[] => {
  const { data } = TemplateDraft.safeParse(value)
  return data ? [data] : []
}
const taken = (value: fc.Arbitrary<Json>): fc.Arbitrary<TemplateDraft> => value.map(asDraft).filter((all) => all.length > 0).map(([one]) => one!)

const good: fc.Arbitrary<JsonObject> = fc.oneof({ weight: 4, arbitrary: message }, { weight: 2, arbitrary: offer }, { weight: 3, arbitrary: carousel }, { weight: 2, arbitrary: authentication })
export const validDrafts = taken(good)

/** Bodies with hardly more than variables, some next to each other, some numbered with gaps or twice. */
const tight: fc.Arbitrary<JsonObject> = fc.tuple(
  oneOf('', 'Hi ', 'Hi, your order: '), fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), oneOf('', ' ', '\n', ', ', '. ', '-', ' or ', ' and so on ')), { minLength: 1, maxLength: 5 }), oneOf('', '.', ' ', 'end', ' 🎉'),
  fc.array(often(sample, oneOf('', ' ', 'a\tb', 'a     b', 'a\n')), { maxLength: 4 }), fc.boolean(),
).map(([first, list, last, samples, fits]) => {
  const distinct = new Set(list.map(([n]) => n)).size
  return { text: `${first}${list.map(([n, gap]) => `${variable(n)}${gap}`).join('')}${last}`, examples: fits ? Array.from({ length: distinct }, (_, n) => samples[n] ?? 'Ada') : samples }
})

/** What is put into texts, or in their place: the forms that rules are about, and those that only look like them. */
const snippets = oneOf(
  '{{1}}', '{{2}}', '{{3}}', '{{1}}{{2}}', '{{1}} {{2}}', '{{1}}\n{{2}}', '{{01}}', '{{0}}', '{{ 1 }}', '{{name}}', '{{{1}}}', '{{', '}}', '{', '}', '{{1}', '{1}}', '{{-1}}', '{{１}}', '{{99999999999999999999}}', '{{}}', '{{1}}x',
  '\n', '\r', '\r\n', '\t', '    ', '     ', '\u00A0\u00A0\u00A0\u00A0\u00A0', '\u2028', '\u200B', '\u0301', '\n\n\n', ' ', '',
  '🎉', '❤️', '☎', '1️⃣', '#⃣', '🇫', '🇫🇷', '👩🏽‍💻', '🏻', '©', '®️', '™', '‼', '\uFE0F', '5', '#', '*', '_', '~', '`', '.', '/', '#x', '?q={{1}}', 'https://', 'http://',
  '漢字', 'שלום', 'ก', 'x',
)
const addresses = [
  'https://wa.me/15550100', 'https://api.whatsapp.com/send?phone=1', 'https://WA.ME/x', 'https://www.wa.me/x', 'https://wa.me.example.com', 'https://wa.me:443/{{1}}', 'https://user@wa.me/x', 'https://example.com/wa.me', 'http://example.com', 'https://', 'https:example.com',
  'https:/example.com', 'https:///example.com', 'https:\\\\example.com', '//example.com', 'example.com', 'ftp://example.com', 'https://exa mple.com', 'https://[::1]/', 'https://[x', 'https://example.com:99999', 'https://example.com/{{1}}', 'https://{{1}}', 'https://example.com{{1}}',
  'https://example.com/{{1}}/x', 'https://example.com/{{2}}', 'https://example.com/{{1}}{{1}}', 'https://example.com/{{1}}{{2}}', 'https://example.com/{{', 'https://example.com/}}', 'https://example.com/{{1}}}}', ' https://example.com', 'https://example.com ', 'https://example.com/a b', 'https://?x',
  'https://#x', 'https://.', 'https://a..b', 'https://%zz', 'https://:80', 'https://@', 'https://例え.jp/漢字', 'https://localhost', 'https://1.2.3', 'javascript:alert(1)', 'https://example.com/\n', 'https://example.com/order/{{1}}?x', 'https://www.example.com/', 'https://example.com/t?id=', 'https://www.example.com/{{1}}',
]
/** What is set in place of a text, by the field that holds it. */
const wholes: Readonly<Record<string, readonly string[]>> = {
  url: addresses, url_example: addresses,
  phone_number: ['+1', '+15550100042x5', '0301234567', '+0301234567', '0049 30 901820', '+49 (0)30 901820', '++15550100042', 'tel:+15550100042', '+999123456', '12', '+1 555 010 0042 00000000', '+１５５５０１０００４２', '+1-800-FLOWERS', '+4930901820901820901', '(+1) 5550100042', '+1 (555) 010-0042', '+49 006675', '-', '+'],
  package_name: ['com.example', 'com', '1com.example', 'com.1example', 'com.exam-ple', 'com.example.', '.com', 'com..x', 'com.éa', 'a.b.c_9'], signature_hash: ['K8a/AINcGX', 'K8a/AINcGX77', 'K8a%2FAINcG', 'K8a/AINcGX ', 'K8a_AINcGX7', '==========='],
  coupon_code: ['a b', 'SAVE 10', ' SAVE', 'SAVE\n', 'SAVE\u00A010', '🎁🎁', 'A'], language: ['en-US', 'EN', 'en_us', 'zh_Hant', 'e', 'engl', 'en_USA', 'deu', 'en_', 'fil_PH', 'en_US '],
  name: ['Order', 'order-update', 'ordér', 'order update', '٣', 'a\n'], category: ['OTHER', 'marketing', 'UTILITY', 'MARKETING', 'AUTHENTICATION'],
}
const plainWholes = ['', ' ', '\u00A0', '\uFEFF', '\u200B', '{{1}}', 'x', '🎉', 'Ends', '0']
const whole = oneOf(...plainWholes, 'https://example.com/{{1}}', 'https://example.com/17', '+15550100042', 'SAVE 10', 'com.example')
/** The most characters of each field, wherever it stands; one more is too many. */
const limits: Readonly<Record<string, readonly number[]>> = { name: [512], text: [16, 25, 60, 160, 1024], url: [2000], coupon_code: [15, 20], phone_number: [20], signature_hash: [10, 11] }

const spoiledHeader = merged(
  fc.constant({ format: 'TEXT' }), field('text', oneOf('Hi {{1}}', '{{1}}', 'Hi {{2}}', '{{1}} and {{1}}', '{{1}}{{2}}', 'Hi {{x}}')), maybe(field('example', oneOf('Ada', '', ' ', 'a\nb', 'a\tb', 'a     b'))),
)
/** What is set where nothing stood; the next place of a list, too. */
const donors = fc.oneof(
  field('header', header), field('header', spoiledHeader), field('footer', footer), field('footer', field('code_expiration_minutes', oneOf(-1, 0, 1, 90, 91))), field('footer', fc.constant({})), buttons(layout),
  field('limited_time_offer', fc.constant({ text: 'Ends soon' })), field('carousel', fc.constant({ cards: [] })), field('body', fc.constant({ text: 'Thank you for the order.' })), field('body', fc.constant({})),
  field('body', bodyOf(fc.integer({ min: 1, max: 8 }))), field('body', tight), tight, field('body', fc.constant({ add_security_recommendation: true })), field('text', snippets), field('example', sample), field('examples', fc.array(sample, { maxLength: 3 })), field('media_handle', whole), field('url', whole),
  field('url_example', whole), field('phone_number', whole), field('coupon_code', whole), field('flow_id', whole), field('flow_action', oneOf('NAVIGATE', 'DATA_EXCHANGE')), field('navigate_screen', whole),
  field('otp_type', oneOf('COPY_CODE', 'ONE_TAP', 'ZERO_TAP')), field('supported_apps', apps), field('supported_apps', fc.constant([])), field('has_expiration', fc.boolean()), field('add_security_recommendation', fc.boolean()),
  field('header_format', oneOf('IMAGE', 'VIDEO')), field('format', oneOf('TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION')), field('type', oneOf('QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL', 'OTP')),
  field('category', oneOf('MARKETING', 'UTILITY', 'AUTHENTICATION')),
)

/** Every value in a draft with its holder. */
type Place = { holder: JsonObject | Json[]; key: string | number; value: Json }
const placesIn = (holder: JsonObject | Json[]): Place[] => (Array.isArray(holder) ? holder.map((value, key): Place => ({ holder, key, value })) : Object.entries(holder).map(([key, value]): Place => ({ holder, key, value })))
  .flatMap((place) => [place, ...(place.value !== null && typeof place.value === 'object' ? placesIn(place.value) : [])])
const put = ({ holder, key }: Place, value: Json): void => { (holder as Record<string | number, Json>)[key] = value }
const at = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length]

type Edit = (draft: JsonObject) => void
const toPlace = (fits: (value: Json) => boolean, change: (place: Place) => void, n: number): Edit => (draft) => {
  const place = at(placesIn(draft).filter((p) => fits(p.value)), n)
  if (place) change(place)
}
const isText = (value: Json): value is string => typeof value === 'string'
const isObject = (value: Json): value is JsonObject => value !== null && typeof value === 'object' && !Array.isArray(value)

const lengthened = (text: string, filler: string, length: number): string => {
  const points = [...text]
  const missing = length - points.length
  return missing <= 0 ? points.slice(0, length).join('') : `${points.slice(0, 1).join('')}${filler.repeat(missing)}${points.slice(1).join('')}`
}
const inserted = (text: string, snippet: string, where: number): string => {
  const points = [...text]
  const place = where % 3 === 0 ? 0 : where % 3 === 1 ? points.length : where % (points.length + 1)
  return [...points.slice(0, place), snippet, ...points.slice(place)].join('')
}
const relisted = (list: Json[], how: string, n: number, m: number): Json[] => {
  const [one, other] = [n % (list.length + 1), m % (list.length + 1)]
  switch (how) {
    case 'drop': return list.toSpliced(one, 1)
    case 'double': return list.toSpliced(other, 0, ...list.slice(one, one + 1).map((v) => structuredClone(v)))
    case 'many': return Array.from({ length: 3 }, () => list).flat().map((v) => structuredClone(v))
    default: return [...list.slice(one), ...list.slice(0, one)]
  }
}

const places = fc.nat({ max: 999 })
const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(places, snippets, places).map(([n, snippet, where]) => toPlace(isText, (p) => put(p, inserted(p.value as string, snippet, where)), n)) },
  { weight: 5, arbitrary: fc.tuple(places, places, fc.nat({ max: 3 })).map(([n, which, blank]) => toPlace(isText, (p) => put(p, at((blank > 0 && wholes[p.key]) || plainWholes, which)!), n)) },
  { weight: 3, arbitrary: fc.tuple(places, oneOf('a', 'é', '界', '𝒳', '🎉', '1'), places, fc.nat({ max: 1 })).map(([n, filler, which, more]) => toPlace(isText, (p) => {
    put(p, lengthened(p.value as string, filler, (at(limits[p.key] ?? [30], which) ?? 0) + more))
  }, n)) },
  { weight: 2, arbitrary: places.map((n) => toPlace(() => true, ({ holder, key }) => { if (!Array.isArray(holder)) delete holder[key] }, n)) },
  { weight: 4, arbitrary: fc.tuple(places, oneOf('drop', 'double', 'many', 'turn'), places, places).map(([n, how, one, other]) => toPlace(Array.isArray, (p) => put(p, relisted(p.value as Json[], how, one, other)), n)) },
  { weight: 4, arbitrary: fc.tuple(places, donors).map(([n, donor]) => toPlace(isObject, (p) => Object.assign(p.value as JsonObject, structuredClone(donor)), n)) },
  { weight: 4, arbitrary: donors.map((donor): Edit => (draft) => { Object.assign(draft, structuredClone(donor)) }) },
  { weight: 1, arbitrary: fc.tuple(places, oneOf(-1, 0, 1, 90, 91)).map(([n, value]) => toPlace((v) => typeof v === 'number', (p) => put(p, value), n)) },
)

const edited = (draft: JsonObject, edits: readonly Edit[]): Json => {
  const copy = structuredClone(draft)
  // An edit that the schema does not take is left out, so that the others count.
  return edits.reduce((now, change) => {
    const next = structuredClone(now)
    change(next)
    return asDraft(next).length > 0 ? next : now
  }, copy)
}

const few = fc.oneof(fc.constant(0), { weight: 2, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.constant(2) }, { weight: 2, arbitrary: fc.constant(3) })
export const drafts: fc.Arbitrary<TemplateDraft> = taken(fc.tuple(good, few.chain((count) => fc.array(edit, { minLength: count, maxLength: count }))).map(([draft, edits]) => edited(draft, edits)))
