import { isBlank } from '../../../../catalog/values.ts'
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
