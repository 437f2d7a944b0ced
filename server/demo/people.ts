import type { FieldRow } from '../../storage/contacts/custom-fields.ts'
import type { NewDemoContact } from '../../storage/demo/demo.ts'
import type { FieldTypes, Attrs, StoredValue } from '../../storage/contacts/values.ts'
import { createRecipients, type DemoSending } from './broadcasts.ts'
import { countries, type Country } from './countries.ts'
import { demoGroups } from './labels.ts'
import { pick, type Random, createRandom, deriveSeed, randomInt } from './random.ts'
import { outlineConversations, buildConversations, type DemoConversationSettings } from './outlines.ts'
import { DAY_MS, toIso } from './time.ts'

/** The settings of a run, and what the workspace has for its contacts to use. */
export type DemoSettings = DemoConversationSettings & {
  /** How many contacts are created in all; their ages are spread evenly over them. */
  contacts: number
  emailFieldId: string | undefined
  /** The type of each custom field. */
  types: FieldTypes
  fields: readonly { field: Pick<FieldRow, 'id' | 'key' | 'type' | 'options'>; share: number }[]
  groupIds: readonly string[]
  sendings: readonly DemoSending[]
}

/** The oldest contact was created this long ago. */
const MAX_AGE_MS = 730 * DAY_MS
const TAGS_PER_CONTACT = 3

/**
 * Returns the phone of the nth person, which is unique below ten million. Three of ten are American.
 * Multiplying by a factor that is coprime to the size of the range scatters the numbers without duplicates.
 */
export const createPhone = (n: number): { country: Country; phone: string } => {
  const slot = (n * 17) % 40
  const country =
    slot < 12 ? countries[0]! : countries[1 + ((n * 7 + Math.floor(n / 40)) % (countries.length - 1))]!
  const number = (BigInt(n) * 7_368_787n + 100_000n) % 10n ** BigInt(country.digits)
  return { country, phone: country.prefix + String(number).padStart(country.digits, '0') }
}

const createName = (random: Random, { given, family, familyFirst, separator }: Country): string => {
  const first = pick(random, given)
  const last =
    random() < 0.2 && !familyFirst ? `${pick(random, family)}-${pick(random, family)}` : pick(random, family)
  if (familyFirst) return `${last}${separator ?? ' '}${first}`
  const middle = random() < 0.15 ? ` ${pick(random, given)}` : ''
  return `${first}${middle} ${last}`
}

/** Returns an address made of the name's Latin letters without diacritics, or of `mail` when it has none. */
const createEmail = (random: Random, name: string, n: number): string => {
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

type PersonFacts = { country: Country; createdMs: number; nowMs: number; n: number }

const pickOptions = (random: Random, field: Pick<FieldRow, 'options'>): string[] =>
  (field.options ?? []).filter(() => random() < 0.4).map((o) => o.value)

const NOTES = [
  'Prefers to be called in the afternoon.',
  'Met at the trade fair; wants a catalogue.\nFollow up next month.',
  'Lieferung bitte an die Rückseite 🚚',
  '常連さん。',
  'Asked about gift boxes twice.',
]

/** Returns a random value of the field's type, in its stored form. */
const createValue = (
  random: Random,
  field: Pick<FieldRow, 'key' | 'type' | 'options'>,
  person: PersonFacts,
): StoredValue | undefined => {
  switch (field.type) {
    case 'text':
      return field.key === 'city' ? pick(random, person.country.cities) : pick(random, NOTES).split('\n')[0]
    case 'textarea':
      return pick(random, NOTES)
    case 'select':
    case 'radio':
      return field.options?.length ? pick(random, field.options).value : undefined
    case 'multiselect': {
      const some = pickOptions(random, field)
      return some.length > 0 ? some : undefined
    }
    case 'checkbox':
    case 'boolean':
      return random() < 0.5
    case 'date':
      return toIso(person.createdMs).slice(0, 10)
    case 'datetime':
      return toIso(person.nowMs + randomInt(random, 30 * 24) * 3_600_000)
    case 'int':
      return Math.floor(random() ** 3 * 200)
    case 'number':
    case 'float':
      return randomInt(random, 1000) / 10
    case 'decimal':
      return `${randomInt(random, 20_000)}.${String(randomInt(random, 100)).padStart(2, '0')}000000`
    case 'url':
      return `https://www.example.com/${person.n}`
    case 'phone':
      return createPhone(9_000_000 + person.n).phone
    case 'email':
      return undefined
  }
}

const createAttrs = (
  random: Random,
  settings: DemoSettings,
  person: PersonFacts,
  email: string | null,
): Attrs => {
  const attrs: Attrs = {}
  if (email !== null && settings.emailFieldId !== undefined) attrs[settings.emailFieldId] = email
  for (const { field, share } of settings.fields) {
    if (share < 1 && random() >= share) continue
    const value = createValue(random, field, person)
    if (value !== undefined) attrs[field.id] = value
  }
  return attrs
}

/** Picks three distinct tags, the first of the list far more often than the last. */
const pickTags = (random: Random, tagIds: readonly string[]): string[] => {
  const chosen = new Set<string>()
  while (chosen.size < Math.min(TAGS_PER_CONTACT, tagIds.length))
    chosen.add(tagIds[Math.floor(random() ** 3 * tagIds.length)]!)
  return [...chosen]
}

/** Creates the nth person of this seed; `place` is how many this run created before. */
export const createPerson = (settings: DemoSettings, n: number, place: number): NewDemoContact => {
  const random = createRandom(deriveSeed(settings.seed, n))
  const { country, phone } = createPhone(n)
  const createdMs = Math.floor(
    settings.nowMs - MAX_AGE_MS + (MAX_AGE_MS * (place + random())) / (settings.contacts + 1),
  )
  const person: PersonFacts = { country, createdMs, nowMs: settings.nowMs, n }
  const name = random() < 0.02 ? null : createName(random, country)
  const email = name !== null && random() < 0.6 ? createEmail(random, name, n) : null
  const outlines = outlineConversations(random, settings, { n, name, prefix: country.prefix, createdMs })
  const dnd = random() < 0.02
  const recipients = dnd
    ? []
    : createRecipients(random, settings.sendings, { createdMs, nowMs: settings.nowMs, outlines })
  const conversations = buildConversations(outlines)
  const lastActivity = conversations.reduce<string | null>(
    (latest, c) => (latest === null || c.last_activity_at > latest ? c.last_activity_at : latest),
    null,
  )
  return {
    phone,
    name,
    email,
    external_id: n % 3 === 0 ? `C-${1000 + n}` : null,
    starred: random() < 0.03,
    dnd,
    created_at: toIso(createdMs),
    updated_at: toIso(createdMs + (settings.nowMs - createdMs) * random() ** 2),
    last_activity_at: lastActivity,
    attrs: createAttrs(random, settings, person, email),
    tagIds: pickTags(random, settings.tagIds),
    groupIds: settings.groupIds.filter((_, i) => random() < demoGroups[i]!.share),
    conversations,
    recipients,
  }
}
