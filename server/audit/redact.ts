import { canonicalJson } from '../core/cursors.ts'

/**
 * What of an input may stand in the audit trail: no secret, no phone, nothing that was said to a customer,
 * and never much. What is left out leaves a word in its place.
 */
const MOST_CHARACTERS = 200
const MOST_ITEMS = 20
const MOST_FIELDS = 40
const MOST_BYTES = 4000
const DEEPEST = 8

/** Operations whose texts are talk: of them only the length is told. */
const talk: ReadonlySet<string> = new Set([
  'messaging_send_template',
  'messaging_send_reply',
  'inbox_add_note',
])

const isId = (key: string): boolean => /(?:^|_)ids?$/.test(key)
const isPhone = (key: string): boolean => /phone|chatapp_?user/i.test(key)
const isSecret = (key: string): boolean => /secret|token|password|authorization/i.test(key)
/** Files, and payloads of test events, which may be anything. */
const isOpaque = (key: string): boolean => key === 'data' || key === 'payload'
/** Words that say what kind of thing is sent, not what it says. */
const isKind = (key: string): boolean => key === 'type' || key === 'language' || key === 'format'

/** Seven digits or more, of any script, however they are set apart. */
const PHONES = /\p{Nd}(?:[\p{Z}\p{Cf}\p{Pd}().,/+]{0,3}\p{Nd}){6,}/gu
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/
/** A number as long as the shortest international phones. */
const LONG_NUMBER = 1e7

const SHOWN_DIGITS = 4

/** All digits but the last four become asterisks. */
const maskNumber = (text: string): string => {
  let left = (text.match(/\p{Nd}/gu) ?? []).length - SHOWN_DIGITS
  return text.replaceAll(/\p{Nd}/gu, (digit) => (left-- > 0 ? '*' : digit))
}
const maskAll = (text: string): string => text.replaceAll(/\p{Nd}/gu, '*')

const lengthOf = (text: string): string => `(${text.length} characters)`
/** Cut twice: a phone that the first cut breaks is beyond the second. */
const cut = (text: string): string => {
  const masked = text.slice(0, 5 * MOST_CHARACTERS).replaceAll(PHONES, maskNumber)
  return (text.length > MOST_CHARACTERS ? `${masked.slice(0, MOST_CHARACTERS)}…` : masked).toWellFormed()
}

/** Where a value stands: `phone` when it is one, `piece` when it may be a piece of one, as in a filter. */
type Place = { key: string; spoken: boolean; phone?: 'whole' | 'piece' | undefined; depth: number }

const briefText = (text: string, { key, spoken, phone }: Place): string => {
  if (isId(key) || TIME.test(text)) return text.slice(0, MOST_CHARACTERS).toWellFormed()
  if (phone)
    return phone === 'whole' && text.length < MOST_CHARACTERS
      ? maskNumber(text)
      : maskAll(text.slice(0, MOST_CHARACTERS)).toWellFormed()
  // Addresses keep secrets in their query.
  if (/^https?:/i.test(text)) return spoken ? lengthOf(text) : cut(text.split(/[?#]/)[0]!)
  return spoken && !isKind(key) ? lengthOf(text) : cut(text)
}

const briefNumber = (value: number, { key, phone }: Place): number | string =>
  !isId(key) && (phone || Math.abs(value) >= LONG_NUMBER) ? maskNumber(String(value)) : value

const brief = (value: unknown, place: Place): unknown => {
  const { key, depth } = place
  if (value === null || value === undefined || typeof value === 'boolean') return value
  if (isSecret(key)) return '(left out)'
  if (isOpaque(key)) return typeof value === 'string' ? lengthOf(value) : '(left out)'
  if (typeof value === 'string') return briefText(value, place)
  if (typeof value === 'number') return briefNumber(value, place)
  if (depth >= DEEPEST) return '…'
  return Array.isArray(value) ? briefList(value, place) : briefObject(value as Record<string, unknown>, place)
}

const briefList = (list: readonly unknown[], place: Place): unknown => {
  // Rows of an import: their number.
  if (list.length > MOST_ITEMS && typeof list[0] === 'object') return `(${list.length} items)`
  const shown = list.slice(0, MOST_ITEMS).map((item) => brief(item, { ...place, depth: place.depth + 1 }))
  return list.length > MOST_ITEMS ? [...shown, `(${list.length - MOST_ITEMS} more)`] : shown
}

const briefObject = (
  object: Record<string, unknown>,
  { key: above, spoken, phone, depth }: Place,
): unknown => {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined)
  // Values of headers are credentials.
  if (above === 'custom_headers') return entries.map(([name]) => cut(name))
  const shown = entries.slice(0, MOST_FIELDS).map(([key, value]) => [
    cut(key),
    brief(value, {
      key,
      spoken,
      depth: depth + 1,
      phone: phone
        ? 'piece'
        : isPhone(key) && !isId(key)
          ? typeof value === 'object'
            ? 'piece'
            : 'whole'
          : undefined,
    }),
  ])
  return Object.fromEntries(shown)
}

/** An object as the audit trail keeps it. */
export const briefOf = (operation: string, object: Record<string, unknown>): Record<string, unknown> =>
  brief(object, { key: '', spoken: talk.has(operation), depth: 0 }) as Record<string, unknown>

/** Words of answers that say what came of a change. */
const verdicts: ReadonlySet<string> = new Set([
  'action',
  'status',
  'deleted',
  'changed',
  'changes',
  'created',
  'submitted',
  'stopped_early',
])

/**
 * Of an answer what tells how it went: verdicts, numbers and ids. Records, texts and secrets are not among
 * them. Undefined when it says nothing.
 */
export const resultOf = (output: Record<string, unknown>): Record<string, unknown> | undefined => {
  const telling = Object.entries(output).filter(
    ([key, value]) =>
      verdicts.has(key) || typeof value === 'number' || (typeof value === 'string' && key.endsWith('_id')),
  )
  return telling.length === 0 ? undefined : Object.fromEntries(telling)
}

/**
 * Of what was written the fields that differ, as they were and as they are; of what is gone all that it
 * was.
 */
export const differenceOf = (
  operation: string,
  before: Record<string, unknown>,
  after: Record<string, unknown> | null,
): { before?: object; after?: object } => {
  if (after === null) return { before: briefOf(operation, before) }
  const differing = Object.keys(after).filter(
    (name) => canonicalJson(before[name] ?? null) !== canonicalJson(after[name] ?? null),
  )
  if (differing.length === 0) return {}
  const pick = (from: Record<string, unknown>) =>
    briefOf(operation, Object.fromEntries(differing.map((name) => [name, from[name] ?? null])))
  return { before: pick(before), after: pick(after) }
}

/** What is too long to keep is told by the names of its fields. */
export const bounded = (changes: Record<string, unknown>): Record<string, unknown> => {
  if (JSON.stringify(changes).length <= MOST_BYTES) return changes
  return Object.fromEntries(
    Object.entries(changes).map(([part, value]) => [
      part,
      JSON.stringify(value).length <= MOST_BYTES / 4 || part === 'result'
        ? value
        : Object.keys(value as object)
            .slice(0, MOST_FIELDS)
            .map(cut),
    ]),
  )
}
