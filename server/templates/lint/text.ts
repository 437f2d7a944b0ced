import { isBlank } from '../../../catalog/values.ts'
/** The length in Unicode code points, as the provider counts. */
export const countCodePoints = (text: string): number => {
  let length = 0
  for (let i = 0; i < text.length; i++, length++) if (text.codePointAt(i)! > 0xffff) i++
  return length
}

/** The number of code points above the maximum; 0 when the text fits. */
export const excessLength = (text: string, max: number): number =>
  text.length <= max ? 0 : Math.max(0, countCodePoints(text) - max)

/** Pictographs, flags and keycaps, but not the signs ©, ® and ™ or plain digits. */
const EMOJI = /(?![©®™])\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3/u

export const hasEmoji = (text: string): boolean => EMOJI.test(text)

/** White space, and characters that show nothing: zero-width, direction and tag characters, blank fillers. */
const INVISIBLE = /^[\s\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\u2800]*$/u

export const isInvisible = (text: string): boolean => INVISIBLE.test(text)

export const hasNewline = (text: string): boolean => /[\n\r]/.test(text)

/** A keycap with its digit, a part of a flag, or a pictograph with its modifiers. */
const WHOLE_EMOJI = new RegExp(
  [
    String.raw`[\d#*]\ufe0f?\u20e3`,
    String.raw`\p{Regional_Indicator}`,
    String.raw`(?![©®™])\p{Extended_Pictographic}[\p{Emoji_Modifier}\ufe0f\u200d]*`,
    String.raw`\u20e3`,
  ].join('|'),
  'gu',
)

export const withoutEmoji = (text: string): string => oneLine(text.replaceAll(WHOLE_EMOJI, ''))

export const oneLine = (text: string): string =>
  text
    .replaceAll(/[\n\r\t]+/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim()

/** Returns the first `max` code points. */
const clip = (text: string, max: number): string => {
  const start = text.slice(0, 2 * max)
  const characters = Array.from(start)
  return characters.length <= max && start.length === text.length
    ? text
    : `${characters.slice(0, max).join('')}…`
}

/** Quotes a value for a message, shortened. */
export const quote = (text: string): string => JSON.stringify(clip(text, 40))

/** Suggests the corrected text; `otherwise` when it is blank or too long to read. */
export const suggest = (corrected: string, otherwise: string): string =>
  isBlank(corrected) || corrected.length > 160 ? otherwise : `Write ${JSON.stringify(corrected)}.`

/** `a, b and c`. */
export const joinWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`

/** Describes white space that no sample may have; undefined without any. */
export const findBadSpace = (text: string): string | undefined =>
  hasNewline(text)
    ? 'a line break'
    : text.includes('\t')
      ? 'a tab'
      : text.includes('     ')
        ? 'more than four spaces in a row'
        : undefined
