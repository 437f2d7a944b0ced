import { hasTrigram } from '../text.ts'

/** Text for `like`, with `%`, `_` and `\` taken literally. */
const literally = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/** `like` patterns for text that was folded before. */
export const containing = (text: string): string => `%${literally(text)}%`
export const beginning = (text: string): string => `${literally(text)}%`
export const ending = (text: string): string => `%${literally(text)}`

/**
 * What a regular expression surely asks for, in lower case: runs of three or more letters and digits
 * anywhere, and what the text begins with.
 */
export type Literals = { runs: string[]; head: string | undefined }

/**
 * Reads the plain letters of a regular expression, so that an index finds the rows on which the expression
 * is then tried. None where it has alternatives, groups, escapes or counts, which this does not read.
 */
export const literalsOf = (regex: string): Literals => {
  if (/[|()\\{]/.test(regex) || regex.startsWith('***')) return { runs: [], head: undefined }
  const plain = regex.replaceAll(/\[\^?\]?[^\]]*\]/g, '\n')
  // A quantifier makes the character before it uncertain.
  const certain = plain.replaceAll(/.[*?]/gsu, '\n').replaceAll('+', '\n')
  // The last letter of a run may be followed by an accent, with which the folded text has composed it.
  const sure = (run: string): string => run.slice(0, -1).toLowerCase()
  const head = /^\^([A-Za-z0-9]{2,})/.exec(certain)?.[1]
  return {
    runs: certain
      .split(/[^A-Za-z0-9]+/)
      .map(sure)
      .filter(hasTrigram),
    head: head && sure(head),
  }
}
