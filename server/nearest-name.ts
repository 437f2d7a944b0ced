import { closest, distance } from 'fastest-levenshtein'

/** Longer than any name: the time of a comparison grows with the length of both names. */
const MAX_LENGTH = 100

/** Returns the name that was probably meant; undefined when none is near enough. */
export const findNearestName = (given: string, names: readonly string[]): string | undefined => {
  if (names.length === 0 || given.length > MAX_LENGTH) return undefined
  const near = closest(given, names)
  if (distance(given.toLowerCase(), near) <= Math.max(2, Math.floor(given.length / 3))) return near
  // `tag` for `tag_ids`, `phone_number` for `phone`.
  const longer = names.filter((name) => name.startsWith(`${given}_`) || given.startsWith(`${name}_`))
  return longer.length === 1 ? longer[0] : undefined
}
