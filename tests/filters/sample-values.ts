import fc from 'fast-check'
import { type CustomFieldType, customFieldTypes } from '../../catalog/custom-fields.ts'
import type { Attrs } from '../../storage/contacts/values.ts'
import type { JsonObject } from './model.ts'
import { resolveDate } from './model-dates.ts'

/** The time of the server. In the time zone below, daylight saving time began two days earlier. */
export const SEEDED_NOW = '2026-03-10T12:34:56.789Z'
export const SEEDED_TIME_ZONE = 'America/New_York'
/** The context of seeded workspaces, for the model. */
export const seededContext = {
  now: SEEDED_NOW,
  timeZone: SEEDED_TIME_ZONE,
  saved: new Map<string, JsonObject>(),
}

/** The relative dates of the filter grammar. */
export const relativeDates = [
  'now',
  'today',
  'yesterday',
  '-7d',
  '-30d',
  '+3d',
  '-48h',
  '-90m',
  '-2w',
  '-1mo',
  '-13mo',
  '-1y',
  '+1y',
  ...['day', 'week', 'month', 'quarter', 'year'].flatMap((unit) => [`start_of_${unit}`, `end_of_${unit}`]),
]

/** Returns the key of the seeded custom field of a type. */
export const toFieldKey = (type: CustomFieldType): string => `f_${type}`
/** The options of the select, radio and multiselect fields. */
export const options = ['red', 'Red', 'gr%en', 'with space', 'ß', 'SS'].map((value) => ({
  value,
  label: `The ${value}`,
}))

const names = [
  'Ada',
  'ada',
  'ADA',
  'Ada Lovelace',
  'Straße',
  'STRASSE',
  'STRAẞE',
  'Ilgaz',
  'ılgaz',
  'İlgaz',
  'Σίσυφος',
  'ΣΊΣΥΦΟΣ',
  'Jos\u00e9',
  'Jose\u0301',
  'JOSE\u0301',
  'Jose',
  '😀 Smile',
  '👨‍👩‍👧 family',
  'שלום עולם',
  'مرحبا Ada',
  '100%',
  '100 percent',
  '50_50',
  '50x50',
  'C:\\temp',
  'C:/temp',
  'a\nb',
  'a\tb',
  'ab',
  "O'Brien",
  '"quoted"',
  '漢字',
  'o\ufb03ce',
  'office',
  '\u212aelvin',
  'kelvin',
  'null',
  'true',
  '[x](a|b)*$^',
  '$1',
  '{}',
  'x'.repeat(255),
  `${'x'.repeat(254)}y`,
  'Ω'.repeat(200),
  '.',
  ' lead',
  'trail ',
]
const longTexts = ['ab'.repeat(110), 'ß'.repeat(150), 'x'.repeat(9_990)].flatMap((text) =>
  ['', '1', '2', ' Pro'].map((end) => text + end),
)
const texts = [
  'Pro',
  'pro',
  'PRO',
  'Enterprise',
  '100%',
  '1_0',
  'back\\slash',
  'two\nlines',
  '',
  ' ',
  ...names.slice(0, 24),
  ...longTexts,
].filter((text) => text !== '')
const emails = [
  'ada@example.com',
  'ADA@example.com',
  'a_b@example.com',
  'a%b@example.com',
  'axb@example.org',
  'bob@example.org',
  'x+y@sub.example.net',
]
const urls = ['https://example.com/', 'https://example.com/a?b=100%25', 'http://EXAMPLE.com/A_B']
const phones = ['15550100001', '15550100002', '49301234567', '442079460958']
const integers = [0, 1, 2, 7, 8, 10, 100, -1, -12, 9007199254740991, -9007199254740991]
const floats = [...integers, 0.1, 0.2, 0.30000000000000004, 0.3, -2.5, 1e21, 1e-7, 1e308, 5e-324]
const decimals = [
  '0.00000000',
  '0.00000001',
  '-0.00000001',
  '12.50000000',
  '12345678901234567890.12345678',
  '12345678901234567890.12345679',
  '-99999999999999999999.99999999',
  '7.00000000',
]

/** Instants at and one millisecond around each date that a filter can name, to find off-by-one errors. */
const instants = [
  ...relativeDates.flatMap((date) =>
    [-1, 0, 1].map((ms) => resolveDate(seededContext, date).epochMilliseconds + ms),
  ),
  ...[
    '2026-03-08T06:59:59.999Z',
    '2026-03-08T07:00:00Z',
    '2025-11-02T05:30:00Z',
    '2025-11-02T06:30:00Z',
    '2024-02-29T12:00:00Z',
    '2026-01-01T00:00:00Z',
  ].map((toIso) => Date.parse(toIso)),
]
const days = [
  '0001-01-01',
  '2024-02-29',
  '2025-12-31',
  '2026-01-01',
  '2026-02-28',
  '2026-03-01',
  '2026-03-03',
  '2026-03-08',
  '2026-03-09',
  '2026-03-10',
  '2026-03-11',
  '2026-12-31',
  '9999-12-31',
]
const EXTREME_TIMES = ['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z']

const toIso = (ms: number): string => new Date(ms).toISOString()
const oneOf = <T>(values: readonly T[]) => fc.constantFrom(...values)
/** Generates the value, or null in `absent` of ten cases. */
const orNull = <T>(value: fc.Arbitrary<T>, absent: number) =>
  fc.oneof({ weight: 10 - absent, arbitrary: value }, { weight: absent, arbitrary: fc.constant(null) })
const someOf = <T>(values: readonly T[], max: number) => fc.uniqueArray(oneOf(values), { maxLength: max })
const instant = oneOf(instants)

const arbitraryValues: Record<CustomFieldType, fc.Arbitrary<Attrs[string]>> = {
  text: oneOf(texts),
  textarea: oneOf(texts),
  select: oneOf(options).map((o) => o.value),
  radio: oneOf(options).map((o) => o.value),
  multiselect: fc.uniqueArray(
    oneOf(options).map((o) => o.value),
    { minLength: 1, maxLength: 4 },
  ),
  checkbox: fc.boolean(),
  boolean: fc.boolean(),
  date: oneOf(days),
  datetime: oneOf([...instants.map(toIso), ...EXTREME_TIMES]),
  number: oneOf(floats),
  int: oneOf(integers),
  float: oneOf(floats),
  decimal: oneOf(decimals),
  email: oneOf(emails),
  url: oneOf(urls),
  phone: oneOf(phones),
}

export const tagNames = ['VIP', 'vips', 'Straße', '100%', '1000', 'a_b', 'axb', '😀', 'Jos\u00e9', 'empty']
export const groupNames = ['North', 'South', 'northern', 'Σίσυφος', 'nobody']
export const relatedIds = { channels: ['901', '902', '903'], staff: ['801', '802'], teams: ['701', '702'] }

/** `by`: whose key sent it, where one did; `approved`: an agent's, which a person approved. */
const message = fc.record({
  direction: oneOf(['inbound', 'inbound', 'outbound', 'outbound', 'outbound', 'system']),
  status: oneOf(['sent', 'delivered', 'read', 'failed', 'pending']),
  by: oneOf(['unknown', 'person', 'agent', 'agent', 'approved']),
  created_at: instant,
})
const conversation = fc.record({
  state: oneOf(['open', 'closed']),
  channel_id: orNull(oneOf(relatedIds.channels), 1),
  assigned_staff_id: orNull(oneOf(relatedIds.staff), 4),
  assigned_team_id: orNull(oneOf(relatedIds.teams), 5),
  created_at: instant,
  last_activity_at: orNull(instant, 2),
  unread_count: oneOf([0, 0, 1, 2, 3, 40]),
  reply_status: orNull(oneOf(['incoming_no_reply', 'outgoing_no_response']), 2),
  messages: fc.array(message, { maxLength: 3 }),
})
const consent = fc.record({
  purpose: oneOf(['marketing', 'research']),
  channel: oneOf(['all', 'chatapp', 'webchat']),
  state: oneOf(['granted', 'withdrawn']),
  at: instant,
})
const recipient = fc.record({
  status: oneOf(['pending', 'sent', 'delivered', 'read', 'failed']),
  responded: fc.boolean(),
  sent_at: orNull(instant, 3),
})

/** Generates contacts with their related records. */
export const arbitraryContact = fc.record({
  name: orNull(oneOf(names), 1),
  noPhone: fc.nat(9).map((n) => n === 0),
  // Of several countries, one with a calling code of its own, and of none (satellite phones).
  phonePrefix: oneOf(['1555', '1555', '1555', '1416', '4915', '4479', '441481', '7916', '7701', '8816']),
  chatapp_user_id: orNull(oneOf(['15550100042@c.example', 'BSUID.x_1', 'bsuid.X%2']), 5),
  web_visitor_id: orNull(oneOf(['v-1', 'V-1', 'v_1', 'v%1']), 6),
  dnd: fc.boolean(),
  starred: fc.nat(3).map((n) => n === 0),
  created_at: instant,
  updated_at: instant,
  last_activity_at: orNull(instant, 4),
  tags: someOf(tagNames.slice(0, -1), 4),
  groups: someOf(groupNames.slice(0, -1), 2),
  values: fc.record(
    Object.fromEntries(customFieldTypes.map((type) => [type, orNull(arbitraryValues[type], 4)])),
  ),
  email: orNull(oneOf(emails), 5),
  hasDeletedField: fc.boolean(),
  conversations: fc.array(conversation, { maxLength: 3 }),
  consents: fc.uniqueArray(consent, {
    maxLength: 4,
    selector: ({ purpose, channel }) => `${purpose} ${channel}`,
  }),
  broadcasts: fc.tuple(orNull(recipient, 3), orNull(recipient, 6), orNull(recipient, 9)),
})
