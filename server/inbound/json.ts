/** Reading JSON that somebody else wrote: what is not as expected is absent. */
export type Json = { readonly [member: string]: unknown }

export const isObject = (value: unknown): value is Json =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})
/** The objects of a list. */
export const objectsOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** Text that is not empty, or a number as text: the provider writes some ids either way. */
export const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number' && Number.isFinite(value)
      ? String(value)
      : null

export const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null

/** An object without its absent members; undefined when none is left. */
export const present = (members: Json): Json | undefined => {
  const kept = Object.entries(members).filter(([, value]) => value !== null && value !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

/** Deeper than anything the provider sends, and far from what the database's own reader of JSON takes. */
const DEEPEST = 40

export const isTooDeep = (value: unknown, left = DEEPEST): boolean =>
  value !== null &&
  typeof value === 'object' &&
  (left === 0 || Object.values(value).some((member) => isTooDeep(member, left - 1)))

/** Every text in it as the database can hold it: without NUL and halves of characters. */
export const storableJson = (value: unknown): unknown => {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) return value.map(storableJson)
  return isObject(value)
    ? Object.fromEntries(
        Object.entries(value).map(([name, member]) => [storableText(name), storableJson(member)]),
      )
    : value
}

export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')

/**
 * Integers that JavaScript would round, as text. Within a text the quote before the colon is escaped, so
 * only members are met.
 */
export const quoteLongIds = (json: string): string =>
  json.replaceAll(/"(\w*id)"\s*:\s*(-?\d{16,})(?=\s*[,}])/g, '"$1":"$2"')
