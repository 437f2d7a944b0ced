import { parsePhoneNumberFromString } from 'libphonenumber-js'

/**
 * E.164 digits without `+`, or what is wrong. Any international form is taken: digits of any script,
 * punctuation, `+` or `00` or neither, `tel:`, and the invisible direction marks that address books copy
 * along. An extension is dropped: no message reaches one.
 */
export const parsePhone = (text: string): { digits: string } | { fault: string; fix: string } => {
  const plain = text
    .normalize('NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/\P{ASCII}/gu, asciiDigit)
    .trim()
    .replace(/^tel:/i, '')
  if (plain.includes('*'))
    return {
      fault: 'is masked: asterisks stand for digits',
      fix: 'Take it from somebody who may see phone numbers, or leave it out.',
    }
  const leading = plain.replace(/^[\s(.\-/]+/, '')
  if (leading.startsWith('0') && leading[1] !== '0') {
    return {
      fault: 'is a local number: it starts with 0',
      fix: 'Send it in international format, with the country code and without the leading 0.',
    }
  }
  return settle(
    leading.startsWith('+') ? leading : `+${leading.startsWith('0') ? leading.slice(2) : leading}`,
  )
}

/** E.164 ends at 15 digits, though some plans know longer numbers. */
const LONGEST = '+'.length + 15

/**
 * Parses until nothing changes: of "+49 006675" each parse takes one national 0, and a number must be the
 * same contact under its own digits. isPossible asks for a known country code and a length its plan has;
 * not for an assigned number, which changes by the month.
 */
const settle = (international: string, rounds = 5): ReturnType<typeof parsePhone> => {
  const parsed = parsePhoneNumberFromString(international, { extract: false })
  if (!parsed?.isPossible() || parsed.number.length > LONGEST || rounds === 0)
    return {
      fault: 'is not a phone number in international format',
      fix: 'Send the country code and the number, such as +1 555 010 0042.',
    }
  return parsed.number === international
    ? { digits: parsed.number.slice(1) }
    : settle(parsed.number, rounds - 1)
}

const isDigit = (code: number): boolean => /^\p{Nd}$/u.test(String.fromCodePoint(code))

/**
 * Unicode keeps decimal digits in unbroken runs of ten from zero to nine, so a digit's place in its run is
 * its value.
 */
const asciiDigit = (char: string): string => {
  const code = char.codePointAt(0)!
  if (!isDigit(code)) return char
  let before = 0
  while (isDigit(code - before - 1)) before++
  return String(before % 10)
}

/** Asterisks, then the last digits: four, or fewer of a short number. */
export const maskPhone = (digits: string): string => {
  const shown = Math.min(4, Math.floor(digits.length / 3))
  return '*'.repeat(digits.length - shown) + digits.slice(digits.length - shown)
}
