import { normalizeText } from '../../catalog/text.ts'
/*
 * Finds what may be a phone number in free text, in any script and however it is split, and masks it. Used
 * for every text that may quote a number: provider errors, delivery logs, filters of others, audit rows.
 */

/** Numbers of one piece have at least this many digits, and so do the ids that contain a phone. */
const MIN_DIGITS = 5
/** Shorter ones in several pieces are dates, prices or lists. */
const MIN_SPLIT_DIGITS = 7
/** Visible characters, such as `) - ` that may stand between two digits of a number. */
const MAX_SEPARATORS = 3
const SHOWN_DIGITS = 4

/** Matches digits of every script, fullwidth, mathematical, circled and raised ones too, once normalised. */
const HAS_DIGIT = /\p{N}/u
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{M}]/u
const LETTER = /\p{L}/u
const DATE = String.raw`(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])`
const CLOCK = String.raw`[T ][0-2]\d:[0-5]\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?`
/** A date or time is no number, unless more digits follow. */
const TIME = new RegExp(String.raw`${DATE}(?:${CLOCK})?(?![^\p{L}\p{N}]{0,${MAX_SEPARATORS}}\p{N})`, 'uy')

/** Whether a text contains a digit of any script. */
export const hasDigits = (text: string): boolean => HAS_DIGIT.test(normalizeText(text, 'NFKC'))

/** Counts the digits of every script in a text. */
export const countDigits = (text: string): number => Array.from(text).filter(hasDigits).length

type Kind = 'digit' | 'invisible' | 'separator' | 'letter'
type Character = { text: string; kind: Kind }

const toKind = (char: string): Kind =>
  hasDigits(char) ? 'digit' : INVISIBLE.test(char) ? 'invisible' : LETTER.test(char) ? 'letter' : 'separator'

/** Returns the characters of a text. A time that stands apart from other digits is one letter. */
const toCharacters = (text: string): Character[] => {
  const characters: Character[] = []
  let offset = 0
  let sinceDigit = Infinity
  while (offset < text.length) {
    TIME.lastIndex = offset
    const time = sinceDigit > MAX_SEPARATORS ? TIME.exec(text)?.[0] : undefined
    const char: string = time ?? String.fromCodePoint(text.codePointAt(offset)!)
    const kind = time ? 'letter' : toKind(char)
    characters.push({ text: char, kind })
    if (kind === 'digit') sinceDigit = 0
    else if (kind === 'separator') sinceDigit++
    else if (kind === 'letter') sinceDigit = Infinity
    offset += char.length
  }
  return characters
}

/** Positions of the digits that may form a number, and the most of them in one piece. */
type NumberRun = { digits: number[]; longestPiece: number }

const findNumberRuns = (characters: readonly Character[]): NumberRun[] => {
  const runs: NumberRun[] = []
  let run: NumberRun | undefined
  let piece = 0
  let separators = 0
  characters.forEach(({ kind }, i) => {
    if (kind === 'invisible') return
    if (kind === 'separator') {
      separators++
      return
    }
    if (kind === 'letter') {
      run = undefined
      return
    }
    if (!run || separators > MAX_SEPARATORS) {
      run = { digits: [], longestPiece: 0 }
      runs.push(run)
      piece = 0
    } else if (separators > 0) piece = 0
    separators = 0
    run.digits.push(i)
    run.longestPiece = Math.max(run.longestPiece, ++piece)
  })
  return runs
}

const countShown = (digits: number): number => Math.min(SHOWN_DIGITS, Math.floor(digits / 3))

/** Returns the positions of the digits of each number that may be a phone. */
const findNumbers = (characters: readonly Character[], minDigits: number): number[][] =>
  findNumberRuns(characters)
    .filter(
      ({ digits, longestPiece }) =>
        longestPiece >= minDigits || digits.length >= Math.max(minDigits, MIN_SPLIT_DIGITS),
    )
    .map(({ digits }) => digits)

const join = (characters: readonly Character[]): string => characters.map(({ text }) => text).join('')

/**
 * Replaces the digits of what may be a phone number by asterisks, but for the last few; everything else stays
 * where it is. `minDigits`: shorter numbers stay.
 */
export const maskNumbers = (text: string, minDigits = MIN_DIGITS): string => {
  if (!hasDigits(text)) return text
  const characters = toCharacters(text)
  for (const digits of findNumbers(characters, minDigits))
    for (const i of digits.slice(0, digits.length - countShown(digits.length))) characters[i]!.text = '*'
  return join(characters)
}

/** Replaces what may be a phone number by an ellipsis. */
export const removeNumbers = (text: string): string => {
  if (!hasDigits(text)) return text
  const characters = toCharacters(text)
  for (const digits of findNumbers(characters, MIN_DIGITS)) {
    const first = characters[digits[0]! - 1]?.text === '+' ? digits[0]! - 1 : digits[0]!
    for (let i = first; i <= digits.at(-1)!; i++) characters[i]!.text = i === first ? '…' : ''
  }
  return join(characters)
}

/** Replaces every digit of a number, or of a part of one, by an asterisk, but for the last `shown`. */
export const maskDigits = (text: string, shown = 0): string => {
  const characters = Array.from(text, (char) => ({ text: char, isDigit: hasDigits(char) }))
  let masked = characters.filter(({ isDigit }) => isDigit).length - shown
  return characters.map((character) => (character.isDigit && masked-- > 0 ? '*' : character.text)).join('')
}

/** Replaces all but the last four characters of a stored phone by asterisks; fewer of a short one. */
export const maskPhone = (digits: string): string => {
  const shown = countShown(digits.length)
  return '*'.repeat(digits.length - shown) + digits.slice(digits.length - shown)
}

/** Whether a text is nothing but what may be a phone number: seven digits or more, and no letter. */
export const isNumberOnly = (text: string): boolean => {
  const characters = toCharacters(text)
  const digits = characters.filter(({ kind }) => kind === 'digit').length
  return digits >= MIN_SPLIT_DIGITS && characters.every(({ kind }) => kind !== 'letter')
}
