import { distance } from 'fastest-levenshtein'
import { listRoutes, type Operation } from '../../catalog/index.ts'

const MAX_PATH = 200

const isParameter = (segment: string): boolean => segment.startsWith('{')

/** The number of wrong letters in the fixed segments; undefined when a segment has too many. */
const countWrongLetters = (given: readonly string[], template: readonly string[]): number | undefined => {
  if (given.length !== template.length) return undefined
  let count = 0
  for (const [i, segment] of template.entries()) {
    const wrong = isParameter(segment) ? 0 : distance(given[i]!, segment)
    if (wrong > Math.max(1, Math.floor(segment.length / 3))) return undefined
    count += wrong
  }
  return count
}

/** Returns the route that an unknown path probably meant: one with a few other letters, else the first one below it. */
export const findSimilarRoute = (
  operations: readonly Operation[],
  method: string,
  path: string,
): string | undefined => {
  if (path.length > MAX_PATH) return undefined
  const given = path.replace(/\/$/, '').split('/')
  const paths = operations
    .flatMap(listRoutes)
    .filter((route) => route.method === method)
    .map((route) => route.path)
  const near = paths
    .map((one) => ({ path: one, wrong: countWrongLetters(given, one.split('/')) ?? Infinity }))
    .toSorted((a, b) => a.wrong - b.wrong)[0]
  const found =
    near && near.wrong < Infinity
      ? near.path
      : given.length > 2
        ? paths.find(
            (one) => one.startsWith(`${given.join('/')}/`) && one.split('/').length === given.length + 1,
          )
        : undefined
  return found && `${method} ${found}`
}
