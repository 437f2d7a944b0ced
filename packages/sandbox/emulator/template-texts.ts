import { invalidTemplate } from './errors.ts'

/** A template's text. `pieces`: the text around the variables, one more than there are variables. */
export type TemplateText = { pieces: readonly string[]; variables: readonly string[] }

export const readTemplateText = (text: string, named: boolean): TemplateText => {
  const parts = text.split(named ? /\{\{([a-z][a-z0-9_]*)\}\}/ : /\{\{([1-9][0-9]*)\}\}/)
  return { pieces: parts.filter((_, n) => n % 2 === 0), variables: parts.filter((_, n) => n % 2 === 1) }
}

export const isBlankText = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

/** Text around a variable that shows nothing: spaces, joiners, direction marks and blank fillers. */
export const showsNothing = (text: string | undefined): boolean =>
  [...(text ?? '')].every((character) =>
    /\s|\p{Default_Ignorable_Code_Point}|\p{Cf}|\p{Cc}|\u2800/u.test(character),
  )

/** For texts that may have no variable. */
export const containsVariable = (text: string): boolean => text.includes('{{')

export const containsNewline = (text: string): boolean => /[\n\r]/.test(text)

/** Signs such as © and ™ are pictographs in Unicode, but plain text to the provider. */
export const containsEmoji = (text: string): boolean =>
  /[\p{Extended_Pictographic}--[©®™]]|\p{Regional_Indicator}|\u20E3/v.test(text)

/** Whether the text has white space that no sample of a variable may have. */
export const containsWideSpace = (text: string): boolean =>
  containsNewline(text) || text.includes('\t') || text.includes('     ')

/** Lengths are in Unicode code points. */
export const requireLength = (text: string, max: number, what: string): void => {
  const length = [...text].length
  if (length > max)
    throw invalidTemplate(
      2388040,
      'Character Limit Exceeded',
      `${what} can have at most ${max} characters, and has ${length}.`,
    )
}

/** Returns the distinct variables of a text; throws unless they are named, or numbered 1 to n. */
export const requireVariables = (
  { pieces, variables }: TemplateText,
  named: boolean,
  subcode: number,
  title: string,
): string[] => {
  if (pieces.some((piece) => /\{\{|\}\}/.test(piece)))
    throw invalidTemplate(
      subcode,
      title,
      named
        ? 'Variables are written {{name}}, with lowercase letters, digits and underscores.'
        : 'Variables are written {{1}}, {{2}} and so on.',
    )
  const distinct = [...new Set(variables)]
  if (!named && distinct.some((name) => Number(name) > distinct.length))
    throw invalidTemplate(subcode, title, 'Variables are numbered in order, from {{1}} on.')
  return distinct
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/** Counts the words of a text, each variable as one. */
export const countTextWords = ({ pieces }: TemplateText): number => {
  let words = 0
  for (const { isWordLike } of segmenter.segment(pieces.join(' variable '))) if (isWordLike) words++
  return words
}

/** Whether two variables have nothing but white space between them. */
export const hasAdjacentVariables = ({ pieces }: TemplateText): boolean =>
  pieces.slice(1, -1).some(showsNothing)
