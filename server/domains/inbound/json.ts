import { isObject } from '../../../catalog/values.ts'
/** Reads JSON from outside: a value of an unexpected type counts as absent. */
export type JsonObject = { readonly [member: string]: unknown }

export const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {})
/** The objects in an array. */
export const asObjects = (value: unknown): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** A non-empty string, or a number as a string: the provider writes some ids either way. */
export const asText = (value: unknown): string | null =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number' && Number.isFinite(value)
      ? String(value)
      : null

export const asNumber = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null

/** The object without its null and undefined members; undefined when none remain. */
export const omitAbsent = (members: JsonObject): JsonObject | undefined => {
  const kept = Object.entries(members).filter(([, value]) => value !== null && value !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}

/** Deeper than anything the provider sends, and far below the limit of the database's JSON parser. */
const MAX_DEPTH = 40

export const isTooDeep = (value: unknown, remainingDepth = MAX_DEPTH): boolean =>
  value !== null &&
  typeof value === 'object' &&
  (remainingDepth === 0 || Object.values(value).some((member) => isTooDeep(member, remainingDepth - 1)))

/** Replaces what PostgreSQL cannot store in every string: NUL and lone surrogates. */
export const toStorableJson = (value: unknown): unknown => {
  if (typeof value === 'string') return toStorableText(value)
  if (Array.isArray(value)) return value.map(toStorableJson)
  return isObject(value)
    ? Object.fromEntries(
        Object.entries(value).map(([name, member]) => [toStorableText(name), toStorableJson(member)]),
      )
    : value
}

export const toStorableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')

/**
 * Quotes integer ids that JavaScript would round. Inside a string the quote before the colon is escaped, so
 * only members match.
 */
export const quoteLongIds = (json: string): string =>
  json.replaceAll(/"(\w*id)"\s*:\s*(-?\d{16,})(?=\s*[,}])/g, '"$1":"$2"')
