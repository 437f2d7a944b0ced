/** True for objects that are not arrays. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** True for text of white space alone, and for everything that is not text. */
export const isBlank = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

/** `1 day`, `2 days`: of a noun whose plural ends in s. */
export const pluralize = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

/** The fields of these names that an object has. */
export const pick = (value: Record<string, unknown>, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => name in value).map((name) => [name, value[name]]))

/** Escapes a name for a JSON pointer (RFC 6901). */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
