/** True for objects that are not arrays. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** True for text of white space alone, and for everything that is not text. */
export const isBlank = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

/** `1 day`, `2 days`: of a noun whose plural ends in s. */
export const pluralize = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`
