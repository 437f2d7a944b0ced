import { escapeLike, hasTrigram } from '../text.ts'

/** Returns a `like` pattern for "starts with". */
export const prefixPattern = (text: string): string => `${escapeLike(text)}%`
/** Returns a `like` pattern for "ends with". */
export const suffixPattern = (text: string): string => `%${escapeLike(text)}`

/**
 * Text that every match of a regular expression holds, in lower case: `runs` of three or more letters and
 * digits anywhere, and the `prefix` that the text begins with.
 */
export type RegexLiterals = { runs: string[]; prefix: string | undefined }

/**
 * Extracts the plain letters of a regular expression, so that an index finds the rows on which the expression
 * is then tested. Returns none where it has alternatives, groups, escapes or counts, which this does not
 * parse.
 */
export const extractRegexLiterals = (regex: string): RegexLiterals => {
  if (/[|()\\{]/.test(regex) || regex.startsWith('***')) return { runs: [], prefix: undefined }
  const withoutSets = regex.replaceAll(/\[\^?\]?[^\]]*\]/g, '\n')
  // A quantifier makes the character before it uncertain.
  const certain = withoutSets.replaceAll(/.[*?]/gsu, '\n').replaceAll('+', '\n')
  // The last letter of a run may be followed by an accent, with which the folded text has composed it.
  const dropLast = (run: string): string => run.slice(0, -1).toLowerCase()
  const prefix = /^\^([A-Za-z0-9]{2,})/.exec(certain)?.[1]
  return {
    runs: certain
      .split(/[^A-Za-z0-9]+/)
      .map(dropLast)
      .filter(hasTrigram),
    prefix: prefix && dropLast(prefix),
  }
}
