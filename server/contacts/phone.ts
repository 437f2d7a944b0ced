import { parsePhoneNumberFromString } from 'libphonenumber-js'

/** E.164 digits without `+`, or what is wrong. Any international form is taken: Unicode digits, punctuation, `+` or `00` or neither. */
export const parsePhone = (text: string): { digits: string } | { fault: string; fix: string } => {
  const trimmed = text.trim().normalize('NFKC')
  const leading = trimmed.replace(/^[\s(.\-/]+/, '')
  if (isZero(leading[0]) && !isZero(leading[1])) {
    return { fault: 'is a local number: it starts with 0', fix: 'Send it in international format, with the country code and without the leading 0.' }
  }
  const international = leading.startsWith('+') ? leading : `+${isZero(leading[0]) ? leading.slice(2) : leading}`
  // isPossible asks for a known country code and a length its plan has; not for an assigned number, which changes by the month.
  const parsed = parsePhoneNumberFromString(international, { extract: false })
  if (!parsed?.isPossible()) return { fault: 'is not a phone number in international format', fix: 'Send the country code and the number, such as +1 555 010 0042.' }
  return { digits: parsed.number.slice(1) }
}

const isZero = (char: string | undefined): boolean => char !== undefined && /\p{Nd}/u.test(char) && ZEROS.has(char)

/** The digit zero of the scripts in which people write phone numbers; NFKC has already folded full-width forms. */
const ZEROS = new Set(['0', '\u0660', '\u06f0', '\u0966', '\u09e6'])

/** Asterisks, then the last digits: four, or fewer of a short number. */
export const maskPhone = (digits: string): string => {
  const shown = Math.min(4, Math.floor(digits.length / 3))
  return '*'.repeat(digits.length - shown) + digits.slice(digits.length - shown)
}
