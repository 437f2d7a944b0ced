/** A variable of a draft: a positive integer without spaces or leading zeros. */
const DRAFT_VARIABLE = /\{\{([1-9]\d*)\}\}/g

/** A variable in a text of the provider: also named, and with spaces. */
const ANY_VARIABLE = /\{\{\s*(\w+)\s*\}\}/g

/** The position of a variable, in UTF-16 units. */
type VariablePlace = { name: string; start: number; end: number }

/**
 * The variables of a draft's text. `names`: distinct, in the order of their numbers. `leftover`: the text has
 * braces that form no variable.
 */
export type Variables = { places: readonly VariablePlace[]; names: readonly string[]; leftover: boolean }

/** Compares by length first: the numbers may exceed the range of a double. */
const byNumber = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

const isNumbered = (name: string): boolean => /^\d+$/.test(name)

const NO_VARIABLES: Variables = { places: [], names: [], leftover: false }

/** Finds the variables of a draft's text. */
export const parseVariables = (text: string): Variables => {
  if (!text.includes('{{') && !text.includes('}}')) return NO_VARIABLES
  const places = [...text.matchAll(DRAFT_VARIABLE)].map((match) => ({
    name: match[1]!,
    start: match.index,
    end: match.index + match[0].length,
  }))
  return {
    places,
    names: [...new Set(places.map(({ name }) => name))].toSorted(byNumber),
    leftover: /\{\{|\}\}/.test(replaceVariables(text, ' ')),
  }
}

/** Replaces each variable of a draft's text with the same text. */
export const replaceVariables = (text: string, replacement = ''): string =>
  text.replaceAll(DRAFT_VARIABLE, () => replacement)

/** Numbers a draft's variables from 1 without gaps; equal variables stay equal. */
export const renumber = (text: string): string => {
  const { names } = parseVariables(text)
  return text.replaceAll(DRAFT_VARIABLE, (_, name: string) => `{{${names.indexOf(name) + 1}}}`)
}

/** Fills a draft's text with samples in the order of its variables; a variable without one is unchanged. */
export const fillSamples = (text: string, samples: readonly (string | undefined)[]): string => {
  const { names } = parseVariables(text)
  return text.replaceAll(DRAFT_VARIABLE, (whole, name: string) => samples[names.indexOf(name)] ?? whole)
}

/**
 * Returns the distinct variables of a provider's text: numbered ones in the order of their numbers, named
 * ones in the order of the text.
 */
export const listVariables = (text: string | undefined): string[] => {
  const names = [...new Set([...(text ?? '').matchAll(ANY_VARIABLE)].map((match) => match[1]!))]
  return names.every(isNumbered) ? names.toSorted((a, b) => Number(a) - Number(b)) : names
}

/** Fills the variables of a provider's text; a variable without a value is unchanged. */
export const fillVariables = (text: string, names: readonly string[], values: readonly string[]): string =>
  text.replaceAll(ANY_VARIABLE, (whole, name: string) => values[names.indexOf(name)] ?? whole)

/** Formats a value for the provider; it has the name of a named variable. */
export const textParameter = (name: string, text: string) => ({
  type: 'text',
  ...(isNumbered(name) ? {} : { parameter_name: name }),
  text,
})
