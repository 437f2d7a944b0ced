import { findTakenPhones } from '../../storage/contacts/import.ts'
import { insertField, type FieldRow } from '../../storage/contacts/custom-fields.ts'
import { insertGroup, insertTags } from '../../storage/labels/labels.ts'
import { loadCounter } from '../../storage/workspace/counters.ts'
import { parsePhoneLine } from '../domains/contacts/phone.ts'
import type { Caller } from './calls.ts'
import { countries, type Country } from './countries.ts'
import { commonFields, type DemoField, demoGroups, demoTagNames } from './labels.ts'
import { pick, type Random, createRandom, deriveSeed, randomInt } from './random.ts'
import { DAY_MS, toIso } from './time.ts'

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

const NOTES = [
  'Prefers to be called in the afternoon.',
  'Met at the trade fair; wants a catalogue.\nFollow up next month.',
  'Lieferung bitte an die Rückseite 🚚',
  '常連さん。',
  'Asked about gift boxes twice.',
]

/** Returns a random value of the field's type. */
const createValue = (
  random: Random,
  { key, type, options }: Pick<FieldRow, 'key' | 'type' | 'options'>,
  { country, createdMs, nowMs, n }: PersonFacts,
): unknown => {
  switch (type) {
    case 'text':
      return pick(random, country.cities)
    case 'textarea':
      return pick(random, NOTES)
    case 'select':
    case 'radio':
      return pick(random, options!).value
    case 'multiselect':
      return options!.filter((_, i) => i === n % options!.length || random() < 0.3).map((o) => o.value)
    case 'checkbox':
    case 'boolean':
      return random() < 0.5
    case 'date':
      return toIso(createdMs).slice(0, 10)
    case 'datetime':
      return toIso(nowMs + randomInt(random, 30 * 24) * 3_600_000)
    case 'int':
      return Math.floor(random() ** 3 * 200)
    case 'number':
    case 'float':
      return randomInt(random, 1000) / 10
    case 'decimal':
      return `${randomInt(random, 20_000)}.${String(randomInt(random, 100)).padStart(2, '0')}`
    case 'url':
      return `https://www.example.com/${n}`
    case 'phone':
      return `+${createPhone(9_000_000 + n).phone}`
    case 'email':
      throw new Error(`${key}: contacts have one address`)
  }
}

/** Picks distinct tags, the first of the list far more often than the last. */
const pickTags = (random: Random): string[] => {
  const chosen = new Set<string>()
  while (chosen.size < TAGS_PER_CONTACT)
    chosen.add(demoTagNames[Math.floor(random() ** 3 * demoTagNames.length)]!)
  return [...chosen]
}

/** Creates the nth person of this seed, as a row of an import. */
const createPerson = (
  { seed, fields = commonFields }: GenerateOptions,
  n: number,
  times: { createdMs: number; nowMs: number },
) => {
  const random = createRandom(deriveSeed(seed, n))
  const { country, phone } = createPhone(n)
  const name = random() < 0.02 ? undefined : createName(random, country)
  return {
    phone: `+${phone}`,
    name,
    email: name !== undefined && random() < 0.6 ? createEmail(random, name, n) : undefined,
    external_id: n % 3 === 0 ? `C-${1000 + n}` : undefined,
    starred: random() < 0.03,
    dnd: random() < 0.02,
    attributes: Object.fromEntries(
      fields
        .filter(({ share }) => random() < share)
        .map(({ field }) => [field.key, createValue(random, field, { country, n, ...times })]),
    ),
    tags: pickTags(random),
    group_names: demoGroups.filter(({ share }) => random() < share).map(({ name }) => name),
  }
}

const toLineKey = (phone: string): string => {
  const line = parsePhoneLine(phone)
  if ('error' in line) throw new Error(line.error)
  return line.key
}

/** The most rows of an import. */
const MAX_BATCH = 500
/** The contacts of a small workspace still come at different times. */
const MIN_BATCHES = 6

export type GenerateOptions = {
  contacts: number
  /** The same seed creates the same contacts. */
  seed: number
  /** ISO 8601; contacts are spread over the two years before it. */
  now: string
  /** The custom fields to create; those that every contact has when absent. */
  fields?: readonly DemoField[]
  onProgress?: (created: number) => void
}

/**
 * Imports realistic contacts into a workspace, each with custom values, three tags and some groups. A second run
 * continues where the first ended. Returns how many were created: phones that exist are skipped. `inBatch`: runs work
 * of one transaction.
 */
export const generateContacts = async (
  inBatch: <T>(work: (caller: Caller) => Promise<T>) => Promise<T>,
  options: GenerateOptions,
): Promise<{ created: number }> => {
  const { contacts, now, fields = commonFields, onProgress = () => {} } = options
  const nowMs = Date.parse(now)
  const first = await inBatch(async ({ tx, workspace: { id } }) => {
    for (const { field } of fields) await insertField(tx, id, field, now)
    await insertTags(tx, id, demoTagNames, now)
    for (const { name, emoji } of demoGroups) await insertGroup(tx, id, name, emoji, now)
    return await loadCounter(tx, id, 'contacts')
  })
  const size = Math.min(MAX_BATCH, Math.ceil(contacts / MIN_BATCHES))
  let created = 0
  for (let at = 0; at < contacts; at += size) {
    const createdMs = Math.floor(nowMs - MAX_AGE_MS * (1 - at / contacts))
    const people = Array.from({ length: Math.min(size, contacts - at) }, (_, i) =>
      createPerson(options, first + at + i, { createdMs, nowMs }),
    )
    created += await inBatch(async ({ tx, workspace, call }) => {
      const taken = await findTakenPhones(
        tx,
        workspace.id,
        people.map(({ phone }) => toLineKey(phone)),
      )
      const rows = people.filter(({ phone }) => !taken.includes(toLineKey(phone)))
      if (rows.length === 0) return 0
      return (await call('crm_import_contacts', { rows }, { atMs: createdMs })).created
    })
    onProgress(created)
  }
  return { created }
}
