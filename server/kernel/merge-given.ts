import { type FieldError, Problem } from './problem.ts'

/** A place where a caller may give a value, such as a header, and what is there. */
type Given<T> = {
  at: Pick<FieldError, 'header' | 'parameter' | 'pointer'>
  value: T | undefined
}

/**
 * Returns a value that can be given in two places. Throws 400 naming both when they differ: whichever of them
 * won, the call would not do what the other says.
 */
export const mergeGiven = <T>(
  first: Given<T>,
  second: Given<T>,
  normalize: (value: T) => unknown = (value) => value,
): T | undefined => {
  if (first.value === undefined) return second.value
  if (second.value === undefined || normalize(first.value) === normalize(second.value)) return first.value
  const places = [first, second].map(({ at }) => describePlace(at))
  throw new Problem('invalid_input', `${places.join(' and ')} differ; give one of them, or both alike.`, {
    reason: 'contradiction',
    errors: [first, second].map(({ at }, i) => ({
      ...at,
      code: 'contradiction',
      detail: `differs from ${places[1 - i]}`,
      fix: 'Give one of them, or both alike.',
    })),
  })
}

const describePlace = ({ header, parameter, pointer }: Given<unknown>['at']): string =>
  header !== undefined
    ? `the header ${header}`
    : parameter !== undefined
      ? `${parameter} in the query`
      : `${pointer!.slice(2)} in the body`
