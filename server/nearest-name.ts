import { closest, distance } from 'fastest-levenshtein'

/** Longer than any name: the time of a comparison grows with the length of both names. */
const MAX_LENGTH = 100

/** Returns the name that was probably meant; undefined when none is near enough. */
export const findNearestName = (given: string, names: readonly string[]): string | undefined => {
  const near = names.length > 0 && given.length <= MAX_LENGTH ? closest(given, names) : undefined
  return near !== undefined &&
    distance(given.toLowerCase(), near) <= Math.max(2, Math.floor(given.length / 3))
    ? near
    : undefined
}
