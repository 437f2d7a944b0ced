import type { Attrs, StoredValue } from '../../storage/contacts.ts'
import type { FieldRow } from '../../storage/custom-fields.ts'
import type { NewDemoContact } from '../../storage/demo.ts'
import type { FieldTypes } from '../../storage/values.ts'
import { recipientsOf, type Sending } from './broadcasts.ts'
import { countries, type Country } from './countries.ts'
import { groupsOfDemo } from './labels.ts'
import { pick, type Random, randomFrom, seedOf, whole } from './random.ts'
import { outlinesOf, talksOf, type TalkSetting } from './talks.ts'

/** What there is in the workspace for people to have and to belong to. */
export type Setting = TalkSetting & {
  /** How many people are made in all; their age is spread by it. */
  contacts: number
  emailFieldId: string | undefined
  /** Of every custom field. */
  types: FieldTypes
  fields: readonly { field: Pick<FieldRow, 'id' | 'key' | 'type' | 'options'>; share: number }[]
  groupIds: readonly string[]
  sendings: readonly Sending[]
}

const DAY_MS = 24 * 60 * 60 * 1000
const SPAN_MS = 730 * DAY_MS
const TAGS = 3

/**
 * The phone of the nth person: never the same for two below ten million. Three of ten are American;
 * multiplying by a number that shares no factor with the size of the range scatters the numbers without
 * meeting one twice.
 */
export const phoneOf = (n: number): { country: Country; phone: string } => {
  const slot = (n * 17) % 40
  const country =
    slot < 12 ? countries[0]! : countries[1 + ((n * 7 + Math.floor(n / 40)) % (countries.length - 1))]!
  const number = (BigInt(n) * 7_368_787n + 100_000n) % 10n ** BigInt(country.digits)
  return { country, phone: country.prefix + String(number).padStart(country.digits, '0') }
}

const nameOf = (random: Random, { given, family, familyFirst, glue }: Country): string => {
  const first = pick(random, given)
  const last =
    random() < 0.2 && !familyFirst ? `${pick(random, family)}-${pick(random, family)}` : pick(random, family)
  if (familyFirst) return `${last}${glue ?? ' '}${first}`
  const middle = random() < 0.15 ? ` ${pick(random, given)}` : ''
  return `${first}${middle} ${last}`
}

/** Letters of an address: what is left of a name without its marks; a number where nothing is. */
const emailOf = (random: Random, name: string, n: number): string => {
  const plain = name
    .normalize('NFD')
    .toLowerCase()
    .replaceAll('ł', 'l')
    .replaceAll('ı', 'i')
    .replaceAll('ß', 'ss')
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z]+/g, '.')
    .replace(/^\.+|\.+$/g, '')
  return `${plain || 'mail'}.${n}@example.${pick(random, ['com', 'org', 'net'])}`
}

const iso = (ms: number): string => new Date(ms).toISOString()

type Person = { country: Country; createdMs: number; nowMs: number; n: number }

const options = (random: Random, field: Pick<FieldRow, 'options'>): string[] =>
  (field.options ?? []).filter(() => random() < 0.4).map((o) => o.value)

const notes = [
  'Prefers to be called in the afternoon.',
  'Met at the trade fair; wants a catalogue.\nFollow up next month.',
  'Lieferung bitte an die Rückseite 🚚',
  '常連さん。',
  'Asked about gift boxes twice.',
]

/** A value of each type, as it is stored. */
const valueOf = (
  random: Random,
  field: Pick<FieldRow, 'key' | 'type' | 'options'>,
  person: Person,
): StoredValue | undefined => {
  switch (field.type) {
    case 'text':
      return field.key === 'city' ? pick(random, person.country.cities) : pick(random, notes).split('\n')[0]
    case 'textarea':
      return pick(random, notes)
    case 'select':
    case 'radio':
      return field.options?.length ? pick(random, field.options).value : undefined
    case 'multiselect': {
      const some = options(random, field)
      return some.length > 0 ? some : undefined
    }
    case 'checkbox':
    case 'boolean':
      return random() < 0.5
    case 'date':
      return iso(person.createdMs).slice(0, 10)
    case 'datetime':
      return iso(person.nowMs + whole(random, 30 * 24) * 3_600_000)
    case 'int':
      return Math.floor(random() ** 3 * 200)
    case 'number':
    case 'float':
      return whole(random, 1000) / 10
    case 'decimal':
      return `${whole(random, 20_000)}.${String(whole(random, 100)).padStart(2, '0')}000000`
    case 'url':
      return `https://www.example.com/${person.n}`
    case 'phone':
      return phoneOf(9_000_000 + person.n).phone
    case 'email':
      return undefined
  }
}

const attrsOf = (random: Random, setting: Setting, person: Person, email: string | null): Attrs => {
  const attrs: Attrs = {}
  if (email !== null && setting.emailFieldId !== undefined) attrs[setting.emailFieldId] = email
  for (const { field, share } of setting.fields) {
    if (share < 1 && random() >= share) continue
    const value = valueOf(random, field, person)
    if (value !== undefined) attrs[field.id] = value
  }
  return attrs
}

/** Three different ones, the first of the list far more often than the last. */
const tagsOf = (random: Random, tagIds: readonly string[]): string[] => {
  const chosen = new Set<string>()
  while (chosen.size < Math.min(TAGS, tagIds.length))
    chosen.add(tagIds[Math.floor(random() ** 3 * tagIds.length)]!)
  return [...chosen]
}

/** The nth person of this seed; `place` is how many of this run came before. */
export const personOf = (setting: Setting, n: number, place: number): NewDemoContact => {
  const random = randomFrom(seedOf(setting.seed, n))
  const { country, phone } = phoneOf(n)
  const createdMs = Math.floor(
    setting.nowMs - SPAN_MS + (SPAN_MS * (place + random())) / (setting.contacts + 1),
  )
  const person: Person = { country, createdMs, nowMs: setting.nowMs, n }
  const name = random() < 0.02 ? null : nameOf(random, country)
  const email = name !== null && random() < 0.6 ? emailOf(random, name, n) : null
  const outlines = outlinesOf(random, setting, { n, name, prefix: country.prefix, createdMs })
  const dnd = random() < 0.02
  const recipients = dnd
    ? []
    : recipientsOf(random, setting.sendings, { createdMs, nowMs: setting.nowMs, outlines })
  const conversations = talksOf(outlines)
  const lastActivity = conversations.reduce<string | null>(
    (latest, c) => (latest === null || c.last_activity_at > latest ? c.last_activity_at : latest),
    null,
  )
  return {
    phone,
    name,
    email,
    starred: random() < 0.03,
    dnd,
    created_at: iso(createdMs),
    updated_at: iso(createdMs + (setting.nowMs - createdMs) * random() ** 2),
    last_activity_at: lastActivity,
    attrs: attrsOf(random, setting, person, email),
    tagIds: tagsOf(random, setting.tagIds),
    groupIds: setting.groupIds.filter((_, i) => random() < groupsOfDemo[i]!.share),
    conversations,
    recipients,
  }
}
