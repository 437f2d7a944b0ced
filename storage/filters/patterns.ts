import { escapeLike, fold, hasTrigram } from '../values/text.ts'

/** Returns a `like` pattern for "starts with". */
export const prefixPattern = (text: string): string => `${escapeLike(text)}%`
/** Returns a `like` pattern for "ends with". */
export const suffixPattern = (text: string): string => `%${escapeLike(text)}`

/**
 * Text that every match of a regular expression holds, folded: `runs` of three or more letters and digits
 * anywhere, and the `prefix` that the text begins with.
 */
export type RegexLiterals = { runs: string[]; prefix: string | undefined }

/** Letters that fold alike whatever other letters are beside them. */
const LETTERS =
  'A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u012f\u0132-\u0148\u014a-\u017e\u0400-\u0481\u048a-\u04ff'
/** A run, and what follows where it is no letter: the end of the text, or a character that composes with none. */
const RUN = new RegExp(`([${LETTERS}]+)(\\$|[ @_,;:/-])?`, 'gu')
const PREFIX = new RegExp(`^\\^([${LETTERS}]{2,})(\\$|[ @_,;:/-])?`, 'u')

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
  const toLiteral = ([, run, next]: RegExpMatchArray): string =>
    fold(next === undefined ? [...run!].slice(0, -1).join('') : run!)
  const prefix = PREFIX.exec(certain)
  return {
    runs: [...certain.matchAll(RUN)].map(toLiteral).filter(hasTrigram),
    prefix: prefix ? toLiteral(prefix) : undefined,
  }
}

/**
 * A regular expression for folded text. `source`: for the text alone; `inLine`: for text that a newline ends.
 * `first`: the few characters of which each match begins with one. `hasTrigram`: an index of trigrams narrows
 * it down.
 */
export type FoldedRegex = {
  source: string
  inLine: string
  first: readonly string[] | undefined
  hasTrigram: boolean
}

/** `certain`: folded text has its characters where the text has them. A point has no `chars`. */
type Atom = { text: string; chars: readonly string[]; quantifier: string; certain: boolean }

const MAX_FIRST = 5
const MAX_TRIGRAMS = 16
const ATOM = /(\.|[A-Za-z0-9 @_-]|\[(?:[A-Za-z0-9](?:-[A-Za-z0-9])?)+\])([*+?]?)/y

/** Returns the characters of a set such as `[a-z0]`, in lower case; undefined where a range is of mixed kinds. */
const expandSet = (set: string): string[] | undefined => {
  const chars: string[] = []
  for (const [, from = '', to = from] of set.matchAll(/([A-Za-z0-9])(?:-([A-Za-z0-9]))?/g)) {
    const isRange = [/[a-z]/, /[A-Z]/, /[0-9]/].some((kind) => kind.test(from) && kind.test(to))
    if (!isRange || from > to) return undefined
    for (let code = from.charCodeAt(0); code <= to.charCodeAt(0); code++)
      chars.push(String.fromCharCode(code))
  }
  return [...new Set(chars.map((char) => char.toLowerCase()))]
}

const parseAtoms = (body: string): Atom[] | undefined => {
  const atoms: Atom[] = []
  const pattern = new RegExp(ATOM)
  while (pattern.lastIndex < body.length) {
    const match = pattern.exec(body)
    if (!match) return undefined
    const [, text = '', quantifier = ''] = match
    // A second quantifier makes the first one lazy.
    if (quantifier !== '' && /[*+?]/.test(body[pattern.lastIndex] ?? '')) return undefined
    const chars = text.startsWith('[')
      ? expandSet(text.slice(1, -1))
      : text === '.'
        ? []
        : [text.toLowerCase()]
    if (!chars) return undefined
    atoms.push({ text: text.toLowerCase(), chars, quantifier, certain: text !== '.' })
  }
  return atoms
}

/**
 * Returns an expression that matches the folded text of everything that this one matches; undefined for an
 * expression with more than letters, sets of them, points, quantifiers and anchors. A letter before a point or
 * the open end may be followed by an accent, with which the folded text has composed it.
 */
export const foldRegex = (regex: string): FoldedRegex | undefined => {
  const [, start = '', body = '', end = ''] = /^(\^?)(.*?)(\$?)$/s.exec(regex)!
  const atoms = parseAtoms(body)
  if (!atoms || atoms.length === 0) return undefined
  let isCertainAfter = end === '$'
  for (const atom of atoms.toReversed()) {
    const isAscii = atom.chars.length > 0
    atom.certain = isAscii && isCertainAfter
    isCertainAfter = isAscii && (isCertainAfter || !/[*?]/.test(atom.quantifier))
  }
  const parts = atoms
    .map((atom) => (atom.certain ? atom.text + atom.quantifier : '.*'))
    .join('')
    .replaceAll(/(\.\*)+/g, '.*')
  const isMandatory = (atom: Atom | undefined): atom is Atom =>
    atom !== undefined && atom.certain && !/[*?]/.test(atom.quantifier) && /^[a-z0-9]/.test(atom.chars[0]!)
  const [head] = atoms
  return {
    source: `${start}${parts}${end}`,
    inLine: `${start}${parts}${end === '' ? '' : '\n'}`,
    first: start !== '' && isMandatory(head) && head.chars.length <= MAX_FIRST ? head.chars : undefined,
    hasTrigram: atoms.some((_, n) => {
      const three = atoms.slice(n, n + 3)
      return (
        three.length === 3 &&
        three.every(isMandatory) &&
        three.reduce((product, atom) => product * atom.chars.length, 1) <= MAX_TRIGRAMS
      )
    }),
  }
}

/** Characters that most contacts have. An index of all others is small. */
const COMMON_CHARACTERS = 'abcdefghilmnoprstuv0123456789 +\n'

/** SQL of the rare characters of a contact's `search`, as the index `contacts_rare` has them. */
export const rareCharacters = (column: string): string =>
  `string_to_array(translate(${column}, E'${COMMON_CHARACTERS.replace('\n', '\\n')}', ''), null)`

/** Returns the rare characters of a text, folded. */
export const listRareCharacters = (text: string): string[] => [
  ...new Set([...fold(text)].filter((char) => !COMMON_CHARACTERS.includes(char))),
]
