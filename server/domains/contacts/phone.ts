import { normalizeText } from '../../../catalog/text.ts'
import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { modernize, type PhoneLine, toPhoneLine } from './phone-lines.ts'

/** E.164 digits without `+`, or the error. */
export type ParsedPhone = { digits: string } | { error: string; fix: string }

/**
 * What the parser returns unchanged: in the plan of country code 1 every number has ten digits, of which the first is
 * no prefix. The parser would try the patterns of its 25 countries one after another (10 µs).
 */
const NORTH_AMERICAN = /^\+?1[2-9]\d{9}$/

/**
 * Parses a phone in any international form: digits of any script, punctuation, `+` or `00` or neither,
 * `tel:`, and the invisible direction marks that address books copy along. An extension is dropped: no
 * message reaches one.
 */
export const parsePhone = (text: string): ParsedPhone => {
  if (NORTH_AMERICAN.test(text)) return { digits: text.replace('+', '') }
  const normalized = normalizeText(text, 'NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/\P{ASCII}/gu, toAsciiDigit)
    .trim()
    .replace(/^tel:/i, '')
  if (normalized.includes('*'))
    return {
      error: 'is masked: asterisks stand for digits',
      fix: 'Ask somebody who may see phone numbers for it, or leave it out.',
    }
  const leading = normalized.replace(/^[\s(.\-/]+/, '')
  if (leading.startsWith('0') && leading[1] !== '0') {
    return {
      error: 'is a local number: it starts with 0',
      fix: 'Send it in international format, with the country code and without the leading 0.',
    }
  }
  const international = leading.startsWith('+')
    ? leading
    : `+${leading.startsWith('0') ? leading.slice(2) : leading}`
  const parsed = parseInternational(international)
  if ('digits' in parsed || !/^\+[^+\p{L};,#]*$/u.test(international)) return parsed
  // The parser knows today's numbering plans alone; what a plan replaced is still written.
  const digits = international.replaceAll(/\D/g, '')
  const modern = modernize(digits)
  return modern === digits ? parsed : parseInternational(`+${modern}`)
}

/** Parses a phone in any international form and any spelling of its line, or returns the error. */
export const parsePhoneLine = (text: string): PhoneLine | { error: string; fix: string } => {
  const parsed = parsePhone(text)
  return 'digits' in parsed ? toPhoneLine(parsed.digits) : parsed
}

/** E.164 allows 15 digits, although some numbering plans have longer numbers. */
const MAX_LENGTH = '+'.length + 15

/**
 * Parses until nothing changes: each parse of "+49 006675" removes one national 0, and the digits returned
 * here must parse to themselves. isPossible checks for a known country code and a length that its numbering
 * plan has; not for an assigned number, which changes from month to month.
 */
const parseInternational = (international: string, attempts = 5): ParsedPhone => {
  const parsed = parsePhoneNumberFromString(international, { extract: false })
  if (!parsed?.isPossible() || parsed.number.length > MAX_LENGTH || attempts === 0)
    return {
      error: 'is not a phone number in international format',
      fix: 'Send the country code and the number, such as +1 555 010 0042.',
    }
  return parsed.number === international
    ? { digits: parsed.number.slice(1) }
    : parseInternational(parsed.number, attempts - 1)
}

const isDigit = (code: number): boolean => /^\p{Nd}$/u.test(String.fromCodePoint(code))

/**
 * Returns the ASCII digit for a digit of any script. Unicode keeps decimal digits in contiguous runs from
 * zero to nine, so a digit's place in its run is its value.
 */
const toAsciiDigit = (char: string): string => {
  const code = char.codePointAt(0)!
  if (!isDigit(code)) return char
  let preceding = 0
  while (isDigit(code - preceding - 1)) preceding++
  return String(preceding % 10)
}
