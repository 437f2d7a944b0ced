import { redactApiKeys } from '../../../catalog/redact.ts'
import { findMarked, type MarkedTree, stepInto } from '../../../catalog/marked.ts'
import { isObject } from '../../../catalog/values.ts'
import { canonicalJson } from '../../kernel/cursors.ts'
import { maskDigits, maskNumbers } from '../../visibility/numbers.ts'

/*
 * Redacts inputs for the audit trail: no secrets, no phones, no message texts, and nothing long. A word in
 * parentheses replaces what is left out. The marks of the input say what is private, also in rows from before and after
 * the change, whose members are called alike; ids and phones are known by their names, of which no schema knows all.
 */

const MAX_CHARACTERS = 200
const MAX_ITEMS = 20
const MAX_FIELDS = 40
const MAX_CHANGES_CHARACTERS = 4000
const MAX_DEPTH = 8

const isId = (key: string): boolean => /(?:^|_)ids?$/.test(key)
const isPhone = (key: string): boolean => /phone|chatapp_?user/i.test(key)
/** Values of custom fields and metadata are called as people like. */
const isSecret = (key: string): boolean => /secret|token|password|authorization/i.test(key)
/** Fields of a message that say what kind of thing is sent, not what it says. */
const isKind = (key: string): boolean => key === 'type' || key === 'language' || key === 'format'

/** Shorter numbers in texts stay readable: the trail is for those who may see phones. */
const MIN_PHONE_DIGITS = 7
const TIME_PATTERN = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/
/** From here a number is as long as the shortest international phones. */
const MIN_PHONE_NUMBER = 1e7

const UNMASKED_DIGITS = 4

const maskNumber = (text: string): string => maskDigits(text, UNMASKED_DIGITS)

const describeLength = (text: string): string => `(${text.length} characters)`
/** Truncates and masks. It cuts twice: a phone that the first cut splits is beyond the second. */
const truncate = (text: string): string => {
  const masked = maskNumbers(text.slice(0, 5 * MAX_CHARACTERS), MIN_PHONE_DIGITS)
  return (text.length > MAX_CHARACTERS ? `${masked.slice(0, MAX_CHARACTERS)}…` : masked).toWellFormed()
}

/**
 * Where a value is. `tree`: the marks of what is there. `isMessageText`: of texts there only the length is stored.
 * `phone`: it is a whole phone, or may be a part of one, as in a filter.
 */
type ValuePosition = {
  key: string
  tree: MarkedTree<'private'> | null | undefined
  isMessageText: boolean
  phone?: 'whole' | 'part' | undefined
  depth: number
}

const redactText = (text: string, { key, isMessageText, phone }: ValuePosition): string => {
  if (isId(key) || TIME_PATTERN.test(text)) return text.slice(0, MAX_CHARACTERS).toWellFormed()
  if (phone)
    return phone === 'whole' && text.length < MAX_CHARACTERS
      ? maskNumber(text)
      : maskDigits(text.slice(0, MAX_CHARACTERS)).toWellFormed()
  // Addresses keep secrets in their query.
  if (/^https?:/i.test(text)) return isMessageText ? describeLength(text) : truncate(text.split(/[?#]/)[0]!)
  return isMessageText && !isKind(key) ? describeLength(text) : truncate(text)
}

const redactNumber = (value: number, { key, phone }: ValuePosition): number | string =>
  !isId(key) && (phone || Math.abs(value) >= MIN_PHONE_NUMBER) ? maskNumber(String(value)) : value

const redact = (value: unknown, given: ValuePosition): unknown => {
  const { key, depth, tree } = given
  if (value === null || value === undefined || typeof value === 'boolean') return value
  if (tree?.mark === 'secret' || isSecret(key)) return '(left out)'
  if (tree?.mark === 'personal' && Array.isArray(value)) return `(${value.length} items)`
  if (tree?.mark === 'secrets' && isObject(value)) return Object.keys(value).map(truncate)
  const position = { ...given, isMessageText: given.isMessageText || tree?.mark === 'messageText' }
  if (typeof value === 'string') return redactText(value, position)
  if (typeof value === 'number') return redactNumber(value, position)
  if (depth >= MAX_DEPTH) return '…'
  return Array.isArray(value)
    ? redactList(value, position)
    : redactMembers(value as Record<string, unknown>, position)
}

const redactList = (list: readonly unknown[], position: ValuePosition): unknown => {
  if (list.length > MAX_ITEMS && typeof list[0] === 'object') return `(${list.length} items)`
  const shown = list
    .slice(0, MAX_ITEMS)
    .map((item) =>
      redact(item, { ...position, tree: stepInto(position.tree, null), depth: position.depth + 1 }),
    )
  return list.length > MAX_ITEMS ? [...shown, `(${list.length - MAX_ITEMS} more)`] : shown
}

const redactMembers = (
  object: Record<string, unknown>,
  { tree, isMessageText, phone, depth }: ValuePosition,
): unknown => {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined)
  const shown = entries.slice(0, MAX_FIELDS).map(([key, value]) => [
    truncate(key),
    redact(value, {
      key,
      tree: stepInto(tree, key),
      isMessageText,
      depth: depth + 1,
      phone: phone
        ? 'part'
        : isPhone(key) && !isId(key)
          ? typeof value === 'object'
            ? 'part'
            : 'whole'
          : undefined,
    }),
  ])
  return Object.fromEntries(shown)
}

/**
 * Returns an object as the audit trail stores it. `omitTexts`: only the length of each text, as of messages, because it
 * is about a person whom no id in the row names, so that an erasure would not find it.
 */
export const redactObject = (
  operation: string,
  object: Record<string, unknown>,
  { omitTexts = false }: { omitTexts?: boolean } = {},
): Record<string, unknown> => {
  const { external_id: externalId } = object
  // The id in another system says who somebody is, as a name does.
  const given =
    omitTexts && typeof externalId === 'string'
      ? { ...object, external_id: describeLength(externalId) }
      : object
  const tree = findMarked('private', 'input', operation)
  return redact(given, { key: '', tree, isMessageText: omitTexts, depth: 0 }) as Record<string, unknown>
}

/** Fields of outputs that say what a change did. */
const resultFields: ReadonlySet<string> = new Set([
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
 * Returns the fields of an output that say what a change did, numbers and ids, but no records, texts or
 * secrets; undefined when there are none.
 */
export const redactResult = (output: Record<string, unknown>): Record<string, unknown> | undefined => {
  const kept = Object.entries(output).filter(
    ([key, value]) =>
      resultFields.has(key) ||
      typeof value === 'number' ||
      (typeof value === 'string' && key.endsWith('_id')),
  )
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** Returns the fields that differ, before and after; of a deleted record all its fields. */
export const redactChange = (
  operation: string,
  before: Record<string, unknown>,
  after: Record<string, unknown> | null,
): { before?: object; after?: object } => {
  if (after === null) return { before: redactObject(operation, before) }
  const changed = Object.keys(after).filter(
    (name) => canonicalJson(before[name] ?? null) !== canonicalJson(after[name] ?? null),
  )
  if (changed.length === 0) return {}
  const pick = (from: Record<string, unknown>) =>
    redactObject(operation, Object.fromEntries(changed.map((name) => [name, from[name] ?? null])))
  return { before: pick(before), after: pick(after) }
}

/**
 * Takes API keys out, such as one in a row of an import, and replaces parts that are too long by the names of
 * their fields.
 */
export const limitSize = (given: Record<string, unknown>): Record<string, unknown> => {
  const text = JSON.stringify(given)
  const redacted = redactApiKeys(text)
  const changes = redacted === text ? given : (JSON.parse(redacted) as Record<string, unknown>)
  if (redacted.length <= MAX_CHANGES_CHARACTERS) return changes
  return Object.fromEntries(
    Object.entries(changes).map(([part, value]) => [
      part,
      JSON.stringify(value).length <= MAX_CHANGES_CHARACTERS / 4 || part === 'result'
        ? value
        : Object.keys(value as object)
            .slice(0, MAX_FIELDS)
            .map(truncate),
    ]),
  )
}
