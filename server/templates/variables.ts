/** A variable of a draft: a positive integer without spaces or leading zero. */
const DRAFT_VARIABLE = /\{\{([1-9]\d*)\}\}/g

/** What the provider may hold: also named variables, and spaces. */
const ANY_VARIABLE = /\{\{\s*(\w+)\s*\}\}/g

/** Where a variable stands, in UTF-16 units. */
type Place = { name: string; start: number; end: number }

/**
 * The variables of a draft's text. `names`: each once, by number. `leftover`: braces that make no variable.
 */
export type Variables = { places: readonly Place[]; names: readonly string[]; leftover: boolean }

/** By length first: numbers may be longer than a double holds. */
const byNumber = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

const isNumbered = (name: string): boolean => /^\d+$/.test(name)

const none: Variables = { places: [], names: [], leftover: false }

/** Finds the variables of a draft's text. */
export const parseVariables = (text: string): Variables => {
  if (!text.includes('{{') && !text.includes('}}')) return none
  const places = [...text.matchAll(DRAFT_VARIABLE)].map((match) => ({
    name: match[1]!,
    start: match.index,
    end: match.index + match[0].length,
  }))
  return {
    places,
    names: [...new Set(places.map(({ name }) => name))].toSorted(byNumber),
    leftover: /\{\{|\}\}/.test(withoutVariables(text, ' ')),
  }
}

/** A draft's text with something else for each of its variables. */
export const withoutVariables = (text: string, instead = ''): string =>
  text.replaceAll(DRAFT_VARIABLE, () => instead)

/** Numbers a draft's variables from 1 without gaps; those that are equal stay equal. */
export const renumber = (text: string): string => {
  const { names } = parseVariables(text)
  return text.replaceAll(DRAFT_VARIABLE, (_, name: string) => `{{${names.indexOf(name) + 1}}}`)
}

/**
 * A draft's text with its samples, given in the order of the variables; a variable without one stays as
 * written.
 */
export const fill = (text: string, samples: readonly (string | undefined)[]): string => {
  const { names } = parseVariables(text)
  return text.replaceAll(DRAFT_VARIABLE, (whole, name: string) => samples[names.indexOf(name)] ?? whole)
}

/**
 * The variables of a text of the provider's, each once: numbered ones in the order of their numbers, named
 * ones in that of the text.
 */
export const variablesOf = (text: string | undefined): string[] => {
  const names = [...new Set([...(text ?? '').matchAll(ANY_VARIABLE)].map((match) => match[1]!))]
  return names.every(isNumbered) ? names.toSorted((a, b) => Number(a) - Number(b)) : names
}

/** A text of the provider's with its variables filled in. */
export const fillText = (text: string, names: readonly string[], values: readonly string[]): string =>
  text.replaceAll(ANY_VARIABLE, (whole, name: string) => values[names.indexOf(name)] ?? whole)

/** A value as the provider takes it: named variables say which they are. */
export const textParameter = (name: string, text: string) => ({
  type: 'text',
  ...(isNumbered(name) ? {} : { parameter_name: name }),
  text,
})
