import fc from 'fast-check'
import type { TemplateDraft } from '../../catalog/templates/schemas.ts'
import {
  apps,
  asDraft,
  bodyOf,
  buttons,
  field,
  footer,
  good,
  header,
  joined,
  type Json,
  type JsonObject,
  layout,
  maybe,
  merged,
  often,
  oneOf,
  sample,
  taken,
  variable,
  words,
} from './draft-arbitraries.ts'

/** `drafts` are good ones after up to three edits, each of which may break a rule, mend one, or neither. */

/** Bodies with hardly more than variables, some next to each other, some numbered with gaps or twice. */
const tight: fc.Arbitrary<JsonObject> = fc
  .tuple(
    oneOf('', 'Hi ', 'Hi, your order: '),
    fc.array(
      fc.tuple(fc.integer({ min: 1, max: 4 }), oneOf('', ' ', '\n', ', ', '. ', '-', ' or ', ' and so on ')),
      { minLength: 1, maxLength: 5 },
    ),
    oneOf('', '.', ' ', 'end', ' 🎉'),
    fc.array(often(sample, oneOf('', ' ', 'a\tb', 'a     b', 'a\n')), { maxLength: 4 }),
    fc.boolean(),
  )
  .map(([first, list, last, samples, fits]) => {
    const distinct = new Set(list.map(([n]) => n)).size
    return {
      text: `${first}${list.map(([n, gap]) => `${variable(n)}${gap}`).join('')}${last}`,
      examples: fits ? Array.from({ length: distinct }, (_, n) => samples[n] ?? 'Ada') : samples,
    }
  })

/** As many words beside the variables as there must be, one less or one more. */
const wordy: fc.Arbitrary<JsonObject> = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.nat({ max: 2 }))
  .map(([count, more]) => {
    const inner = Math.max(0, count - 2 + more)
    const gap = (n: number) => (n < inner ? ` w${n} ` : ', ')
    return {
      text: `Hi ${Array.from({ length: count }, (_, n) => `${variable(n + 1)}${n < count - 1 ? gap(n) : ''}`).join('')}${' x'.repeat(Math.max(0, inner - count + 1))} end`,
      examples: Array.from({ length: count }, () => 'Ada'),
    }
  })

/** Two variables side by side, or nearly, among words enough. */
const beside: fc.Arbitrary<JsonObject> = fc
  .tuple(
    joined(words, 4, 5),
    oneOf('', ' ', '  ', '\n', '\t', '\u00A0', '\u3000', '\u200B', ',', '-', ' & '),
    joined(words, 4, 5),
  )
  .map(([before, gap, after]) => ({
    text: `${before} {{1}}${gap}{{2}} ${after} end`,
    examples: ['Ada', 'Grace'],
  }))

/**
 * What is put into texts, or in their place: the forms that rules are about, and those that only look like
 * them.
 */
const snippets = oneOf(
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
const addresses = [
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
/** What is set in place of a text, by the field that holds it. */
const wholes: Readonly<Record<string, readonly string[]>> = {
  url: addresses,
  url_example: addresses,
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
const plainWholes = ['', ' ', '\u00A0', '\uFEFF', '\u200B', '{{1}}', 'x', '🎉', 'Ends', '0']
const whole = oneOf(
  ...plainWholes,
  'https://example.com/{{1}}',
  'https://example.com/17',
  '+15550100042',
  'SAVE 10',
  'com.example',
)
/**
 * The most characters of a field; one more is too many. Fields by their paths without the places in lists.
 */
const limits: Readonly<Record<string, number>> = {
  name: 512,
  'body.text': 1024,
  'header.text': 60,
  'footer.text': 60,
  'limited_time_offer.text': 16,
  'carousel.cards.body.text': 160,
  'buttons.supported_apps.signature_hash': 11,
  ...Object.fromEntries(
    ['buttons', 'carousel.cards.buttons'].flatMap((list) =>
      Object.entries({ text: 25, url: 2000, coupon_code: 20, phone_number: 20 }).map(([key, most]) => [
        `${list}.${key}`,
        most,
      ]),
    ),
  ),
}
/** Forms that only look like a variable. */
const lookalikes = oneOf(
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
const pairs = fc
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

const spoiledHeader = merged(
  fc.constant({ format: 'TEXT' }),
  field('text', oneOf('Hi {{1}}', '{{1}}', 'Hi {{2}}', '{{1}} and {{1}}', '{{1}}{{2}}', 'Hi {{x}}')),
  maybe(field('example', oneOf('Ada', '', ' ', 'a\nb', 'a\tb', 'a     b'))),
)
/** What is set where nothing stood; the next place of a list, too. */
const donors = fc.oneof(
  field('header', header),
  field('header', spoiledHeader),
  field('footer', footer),
  field('footer', field('code_expiration_minutes', oneOf(-1, 0, 1, 90, 91))),
  field('footer', fc.constant({})),
  buttons(layout),
  buttons(oneOf(9, 10, 11).map((count) => Array.from({ length: count }, () => 'QUICK_REPLY'))),
  field('limited_time_offer', fc.constant({ text: 'Ends soon' })),
  field('carousel', fc.constant({ cards: [] })),
  field('body', fc.constant({ text: 'Thank you for the order.' })),
  field('body', fc.constant({})),
  field('body', bodyOf(fc.integer({ min: 1, max: 8 }))),
  field('body', tight),
  tight,
  field('body', wordy),
  field('body', beside),
  beside,
  field('body', fc.constant({ add_security_recommendation: true })),
  field('text', snippets),
  field('example', sample),
  field('examples', fc.array(sample, { maxLength: 3 })),
  field('media_handle', whole),
  field('url', whole),
  pairs,
  pairs,
  field('url_example', whole),
  field('phone_number', whole),
  field('coupon_code', whole),
  field('flow_id', whole),
  field('flow_action', oneOf('NAVIGATE', 'DATA_EXCHANGE')),
  field('navigate_screen', whole),
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

/** Every value in a draft with its holder. `path` leaves out the places in lists. */
type Place = { holder: JsonObject | Json[]; key: string | number; value: Json; path: string }
const placesIn = (holder: JsonObject | Json[], above = ''): Place[] =>
  Object.entries(holder).flatMap(([key, value]): Place[] => {
    const path = Array.isArray(holder) ? above : `${above}${above && '.'}${key}`
    return [
      { holder, key, value, path },
      ...(value !== null && typeof value === 'object' ? placesIn(value, path) : []),
    ]
  })
const put = ({ holder, key }: Place, value: Json): void => {
  ;(holder as Record<string | number, Json>)[key] = value
}
const at = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length]

type Edit = (draft: JsonObject) => void
/** Changes one place that fits. Each path is as likely as another, however many places it has. */
const toPlace =
  (fits: (value: Json) => boolean, change: (place: Place) => void, n: number): Edit =>
  (draft) => {
    const fitting = placesIn(draft).filter((p) => fits(p.value))
    const path = at([...new Set(fitting.map((p) => p.path))], n)
    const place = at(
      fitting.filter((p) => p.path === path),
      Math.floor(n / 31),
    )
    if (place) change(place)
  }
const isText = (value: Json): value is string => typeof value === 'string'
const isObject = (value: Json): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/**
 * The text cut to a length, or filled up to it before the letter `near`, from the end where it is negative.
 */
const lengthened = (text: string, filler: string, length: number, near: number): string => {
  const points = [...text]
  const missing = length - points.length
  return missing <= 0
    ? points.slice(0, length).join('')
    : [...points.slice(0, near), filler.repeat(missing), ...points.slice(near)].join('')
}
const inserted = (text: string, snippet: string, where: number): string => {
  const points = [...text]
  const place = where % 3 === 0 ? 0 : where % 3 === 1 ? points.length : where % (points.length + 1)
  return [...points.slice(0, place), snippet, ...points.slice(place)].join('')
}
/** A list of another size; buttons that come twice are told apart. */
const resized = (list: Json[], size: number): Json[] =>
  list.length === 0
    ? []
    : Array.from({ length: size }, (_, n) => {
        const one = structuredClone(list[n % list.length]!)
        return n >= list.length && isObject(one) && isText(one['text'] ?? null)
          ? { ...one, text: [...`${n} ${one['text'] as string}`].slice(0, 25).join('').trim() }
          : one
      })
const relisted = (list: Json[], how: string, n: number, m: number): Json[] => {
  const [one, other] = [n % (list.length + 1), m % (list.length + 1)]
  switch (how) {
    case 'drop':
      return list.toSpliced(one, 1)
    case 'double':
      return list.toSpliced(other, 0, ...list.slice(one, one + 1).map((v) => structuredClone(v)))
    case 'turn':
      return [...list.slice(one), ...list.slice(0, one)]
    default:
      return resized(list, [0, 1, 2, 3, list.length + 1, 9, 10, 11][m % 8]!)
  }
}

/** One button takes the label of another, nearly. */
const relabeled =
  (n: number, m: number, how: (label: string) => string): Edit =>
  (draft) => {
    const lists = placesIn(draft)
      .filter((p) => p.key === 'buttons' && Array.isArray(p.value))
      .map((p) => p.value as JsonObject[])
    const list = at(lists, n) ?? []
    const [one, other] = [at(list, m), at(list, m + 1)]
    if (one && other && isText(one['text'] ?? null)) other['text'] = how(one['text'] as string)
  }

const places = fc.nat({ max: 999 })
const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(places, snippets, places)
      .map(([n, snippet, where]) =>
        toPlace(isText, (p) => put(p, inserted(p.value as string, snippet, where)), n),
      ),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(places, places, fc.nat({ max: 3 }))
      .map(([n, which, blank]) =>
        toPlace(isText, (p) => put(p, at((blank > 0 && wholes[p.key]) || plainWholes, which)!), n),
      ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(places, oneOf('a', 'é', '界', '𝒳', '🎉', '1', ' '), fc.nat({ max: 1 }), oneOf(1, -1, 9999))
      .map(([n, filler, more, near]) =>
        toPlace(
          isText,
          (p) => {
            put(p, lengthened(p.value as string, filler, (limits[p.path] ?? 30) + more, near))
          },
          n,
        ),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(places, lookalikes).map(([n, like]) =>
      toPlace(
        (value) => isText(value) && value.includes('{{1}}'),
        (p) =>
          put(
            p,
            (p.value as string).replace('{{1}}', () => like),
          ),
        n,
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: places.map((n) =>
      toPlace(
        () => true,
        ({ holder, key }) => {
          if (!Array.isArray(holder)) delete holder[key]
        },
        n,
      ),
    ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(places, oneOf('drop', 'double', 'size', 'size', 'turn'), places, places)
      .map(([n, how, one, other]) =>
        toPlace(Array.isArray, (p) => put(p, relisted(p.value as Json[], how, one, other)), n),
      ),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(places, donors)
      .map(([n, donor]) =>
        toPlace(isObject, (p) => Object.assign(p.value as JsonObject, structuredClone(donor)), n),
      ),
  },
  {
    weight: 4,
    arbitrary: donors.map((donor): Edit => (draft) => {
      Object.assign(draft, structuredClone(donor))
    }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        places,
        places,
        oneOf(
          (text: string) => text,
          (text: string) => ` ${text}`,
          (text: string) => `${text}\u00A0`,
          (text: string) => text.toUpperCase(),
        ),
      )
      .map(([n, m, how]) => relabeled(n, m, how)),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(places, oneOf(-1, 0, 1, 90, 91)).map(([n, value]) =>
      toPlace(
        (v) => typeof v === 'number',
        (p) => put(p, value),
        n,
      ),
    ),
  },
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

const few = fc.oneof(
  fc.constant(0),
  { weight: 2, arbitrary: fc.constant(1) },
  { weight: 2, arbitrary: fc.constant(2) },
  { weight: 2, arbitrary: fc.constant(3) },
)
export const drafts: fc.Arbitrary<TemplateDraft> = taken(
  fc
    .tuple(
      good,
      few.chain((count) => fc.array(edit, { minLength: count, maxLength: count })),
    )
    .map(([draft, edits]) => edited(draft, edits)),
)
