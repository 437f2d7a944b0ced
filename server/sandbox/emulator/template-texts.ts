import { badTemplate } from './errors.ts'

/** Texts of templates as the provider reads them. Lengths are of Unicode code points. */

/** `pieces` stand around the variables, one more than there are of them. */
export type TemplateText = { pieces: readonly string[]; variables: readonly string[] }

export const readTemplateText = (text: string, named: boolean): TemplateText => {
  const parts = text.split(named ? /\{\{([a-z][a-z0-9_]*)\}\}/ : /\{\{([1-9][0-9]*)\}\}/)
  return { pieces: parts.filter((_, n) => n % 2 === 0), variables: parts.filter((_, n) => n % 2 === 1) }
}

export const isBlank = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

/** Where no variable may be. */
export const opensVariable = (text: string): boolean => text.includes('{{')

export const holdsNewline = (text: string): boolean => /[\n\r]/.test(text)

/** Signs such as © and ™ are pictographs to Unicode, and plain text to the provider. */
export const holdsEmoji = (text: string): boolean =>
  /[\p{Extended_Pictographic}--[©®™]]|\p{Regional_Indicator}|\u20E3/v.test(text)

/** What no sample of a variable may have. */
export const holdsWideSpace = (text: string): boolean =>
  holdsNewline(text) || text.includes('\t') || text.includes('     ')

export const requireLength = (text: string, most: number, what: string): void => {
  const length = [...text].length
  if (length > most)
    throw badTemplate(
      2388040,
      'Character Limit Exceeded',
      `${what} can have at most ${most} characters, and has ${length}.`,
    )
}

/** The variables of a text, each once; they are numbered from 1 without gaps, or named. */
export const requireVariables = (
  { pieces, variables }: TemplateText,
  named: boolean,
  subcode: number,
  title: string,
): string[] => {
  if (pieces.some((piece) => /\{\{|\}\}/.test(piece)))
    throw badTemplate(
      subcode,
      title,
      `Variables are written ${named ? '{{name}}, with lowercase letters, digits and underscores' : '{{1}}, {{2}} and so on'}.`,
    )
  const distinct = [...new Set(variables)]
  if (!named && distinct.some((name) => Number(name) > distinct.length))
    throw badTemplate(subcode, title, 'Variables are numbered in order, from {{1}} on.')
  return distinct
}

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/** How many words a text has, each variable being one. */
export const wordsIn = ({ pieces }: TemplateText): number => {
  let words = 0
  for (const { isWordLike } of segmenter.segment(pieces.join(' variable '))) if (isWordLike) words++
  return words
}

/** Two variables with nothing but space between them. */
export const hasAdjacentVariables = ({ pieces }: TemplateText): boolean => pieces.slice(1, -1).some(isBlank)
