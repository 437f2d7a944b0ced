import { countCharacters, isInvisible } from '../../../catalog/templates/rules.ts'
import { invalidTemplate } from './errors.ts'

/** A template's text. `pieces`: the text around the variables, one more than there are variables. */
export type TemplateText = { pieces: readonly string[]; variables: readonly string[] }

export const readTemplateText = (text: string, named: boolean): TemplateText => {
  const parts = text.split(named ? /\{\{([a-z][a-z0-9_]*)\}\}/ : /\{\{([1-9][0-9]*)\}\}/)
  return { pieces: parts.filter((_, n) => n % 2 === 0), variables: parts.filter((_, n) => n % 2 === 1) }
}

/** Lengths are in Unicode code points. */
export const requireLength = (text: string, max: number, what: string): void => {
  const length = countCharacters(text)
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

/** Whether two variables have nothing but white space between them. */
export const hasAdjacentVariables = ({ pieces }: TemplateText): boolean =>
  pieces.slice(1, -1).some(isInvisible)
