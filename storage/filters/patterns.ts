import { hasTrigram } from '../text.ts'

/** Text for `like`, with `%`, `_` and `\` taken literally. */
const literally = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/** `like` patterns for text that was folded before. */
export const containing = (text: string): string => `%${literally(text)}%`
export const beginning = (text: string): string => `${literally(text)}%`
export const ending = (text: string): string => `%${literally(text)}`

/**
 * Runs of letters and digits that every match of a regular expression contains, in lower case: a trigram index finds their rows where the expression
 * itself would be tried on each. None when the expression has alternatives, groups, escapes or counts, which this does not read.
 */
export const literalRuns = (regex: string): string[] => {
  if (/[|()\\{]/.test(regex) || regex.startsWith('***')) return []
  const plain = regex.replaceAll(/\[\^?\]?[^\]]*\]/g, '\n')
  // A quantifier makes the character before it uncertain.
  const certain = plain.replaceAll(/.[*?]/gsu, '\n').replaceAll('+', '\n')
  // The last letter of a run may be followed by an accent, with which the folded text has composed it.
  return certain.split(/[^A-Za-z0-9]+/).map((run) => run.slice(0, -1)).filter(hasTrigram).map((run) => run.toLowerCase())
}
