import { closest, distance } from 'fastest-levenshtein'

/** Longer than any name; comparing takes as long as both names are. */
const LONGEST = 100

/** The name that was probably meant, when one is near enough to say so. */
export const findNearestName = (given: string, names: readonly string[]): string | undefined => {
  const near = names.length > 0 && given.length <= LONGEST ? closest(given, names) : undefined
  return near !== undefined &&
    distance(given.toLowerCase(), near) <= Math.max(2, Math.floor(given.length / 3))
    ? near
    : undefined
}
