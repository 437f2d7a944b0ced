/** Nothing to read in it. */
export const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === ''

/** In Unicode code points, as the provider counts. */
export const lengthOf = (text: string): number => {
  let length = 0
  for (let i = 0; i < text.length; i++, length++) if (text.codePointAt(i)! > 0xffff) i++
  return length
}

/** How far a text is over a bound; 0: it fits. */
export const excess = (text: string, most: number): number =>
  text.length <= most ? 0 : Math.max(0, lengthOf(text) - most)

/** Pictures, flags and keycaps, but not the signs ©, ® and ™ or plain digits. */
const EMOJI = /(?![©®™])\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3/u

export const hasEmoji = (text: string): boolean => EMOJI.test(text)

export const hasNewline = (text: string): boolean => /[\n\r]/.test(text)

export const withoutEmoji = (text: string): string =>
  oneLine(
    text.replaceAll(
      /[\d#*]\ufe0f?\u20e3|\p{Regional_Indicator}|(?![©®™])\p{Extended_Pictographic}[\p{Emoji_Modifier}\ufe0f\u200d]*|\u20e3/gu,
      '',
    ),
  )

export const oneLine = (text: string): string =>
  text
    .replaceAll(/[\n\r\t]+/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim()

/** The first characters. */
const clip = (text: string, most: number): string => {
  const start = text.slice(0, 2 * most)
  const characters = Array.from(start)
  return characters.length <= most && start.length === text.length
    ? text
    : `${characters.slice(0, most).join('')}…`
}

/** A value as messages name it. */
export const quote = (text: string): string => JSON.stringify(clip(text, 40))

/** The corrected text where it is short enough to read, and is one; else words. */
export const suggest = (corrected: string, otherwise: string): string =>
  isBlank(corrected) || corrected.length > 160 ? otherwise : `Write ${JSON.stringify(corrected)}.`

export const plural = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

/** `a, b and c`. */
export const list = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`

/** What no sample may hold; undefined: it is fine. */
export const badSpace = (text: string): string | undefined =>
  hasNewline(text)
    ? 'a line break'
    : text.includes('\t')
      ? 'a tab'
      : text.includes('     ')
        ? 'more than four spaces in a row'
        : undefined
