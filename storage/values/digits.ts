/** The zeros of scripts in which people write phones. Their other digits follow them. */
const ZEROS = [...'٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐０'].map((zero) => zero.codePointAt(0)!)

/** Digits of other scripts, and in the same order those of ASCII. */
export const FOREIGN_DIGITS = ZEROS.flatMap((zero) =>
  Array.from({ length: 10 }, (_, n) => String.fromCodePoint(zero + n)),
).join('')
export const ASCII_DIGITS = '0123456789'.repeat(ZEROS.length)

/** What else people and their programs write between digits: spaces, hyphens and marks of direction. */
export const FOREIGN_SEPARATORS =
  '\u00a0\u00ad\u2007\u2009\u200b\u200e\u200f\u2010\u2011\u2012\u2013\u2014\u202a\u202c' +
  '\u202d\u202f\u2060\u2212\u3000\ufeff\uff08\uff09\uff0b\uff0d\uff0e'

const FOREIGN = new RegExp(`[${FOREIGN_DIGITS}${FOREIGN_SEPARATORS}]`, 'gu')
const toAscii = (character: string): string => {
  const at = FOREIGN_DIGITS.indexOf(character)
  return at === -1 ? ' ' : ASCII_DIGITS[at]!
}

/** Returns a text with digits of all scripts, and what stands between them, in ASCII. */
export const toAsciiDigits = (text: string): string => text.replaceAll(FOREIGN, toAscii)
