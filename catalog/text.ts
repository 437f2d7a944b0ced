import type { z } from 'zod'
import { mark, type Marks } from './marks.ts'

/** The keyword of JSON Schema that says it to readers of the OpenAPI document. */
export const UNTRUSTED = 'x-untrusted'

/**
 * Marks an output field that holds what customers or other outsiders wrote: the texts in it are data, whatever they
 * say. `others`: its other marks. Answers over MCP list such fields. Every other field of text is listed as trusted in
 * tests/mcp/untrusted.test.ts.
 */
export const untrusted = <T extends z.ZodType>(schema: T, others: Marks = {}): T =>
  mark(schema.meta({ [UNTRUSTED]: true }), { untrusted: true, ...others })

/** Scripts in which a joiner between two letters is spelling. */
const JOINED_SCRIPTS =
  '\\p{sc=Arab}\\p{sc=Syrc}\\p{sc=Mong}\\p{sc=Nkoo}\\p{sc=Deva}\\p{sc=Beng}\\p{sc=Guru}\\p{sc=Gujr}' +
  '\\p{sc=Orya}\\p{sc=Taml}\\p{sc=Telu}\\p{sc=Knda}\\p{sc=Mlym}\\p{sc=Sinh}\\p{sc=Khmr}\\p{sc=Mymr}'
const toTags = (letters: string): string =>
  Array.from(letters, (letter) => `\\u{${(0xe0000 + letter.codePointAt(0)!).toString(16)}}`).join('')
/** What follows the black flag in the flags of England, Scotland and Wales, the only ones that are written so. */
const FLAG_TAGS = ['gbeng', 'gbsct', 'gbwls'].map(toTags).join('|')
/** Joiners, variation selectors and tags that belong to what is seen: emoji, and letters of those scripts. */
const VISIBLE =
  `(?<=\\u{1f3f4})(?:${FLAG_TAGS})\\u{e007f}|` +
  '(?<=[\\p{Extended_Pictographic}\\p{EMod}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})|' +
  `(?<=[${JOINED_SCRIPTS}])[\\u200c\\u200d](?=[${JOINED_SCRIPTS}])|(?<=[\\p{Emoji}])[\\ufe0e\\ufe0f]`
/** Format characters that are seen: signs before numbers in Arabic, Syriac and Kaithi. */
const SIGNS = '[\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u{110bd}\\u{110cd}]'
/**
 * A pattern (`v`) of what nobody sees, and of what moves the eye: format characters such as zero-width and
 * direction ones, tags (U+E0000…), variation selectors, fillers, and separators of lines that are no line breaks.
 * The first group is what only looks like it.
 */
export const HIDDEN = `(${VISIBLE})|[[\\p{Cf}\\p{DI}\\u2028\\u2029]--${SIGNS}]`

const HIDDEN_TEXT = new RegExp(`${HIDDEN}|(?![\\n\\t])\\p{Cc}`, 'gv')

/**
 * Writes the characters of a text that nobody sees, and those that turn its direction, as `\u{202e}`, so that a
 * person judges what is there. Line breaks stay, and what belongs to emoji and to joined scripts.
 */
export const showHidden = (text: string): string =>
  text.replace(HIDDEN_TEXT, (found: string, visible: string | undefined) =>
    visible !== undefined ? found : `\\u{${found.codePointAt(0)!.toString(16)}}`,
  )

/** Returns each of those characters that a text has, as `showHidden` writes it, and how often. */
export const listHidden = (text: string): { shown: string; count: number }[] => {
  const counts = new Map<string, number>()
  for (const [found, visible] of text.matchAll(HIDDEN_TEXT))
    if (visible === undefined) counts.set(found, (counts.get(found) ?? 0) + 1)
  return [...counts].map(([found, count]) => ({ shown: showHidden(found), count }))
}

/**
 * What nobody sees by itself: controls, spaces, format characters such as zero-width and bidi ones, tags, and
 * fillers, which Unicode counts as letters or symbols.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** Whether a text shows at least one character. */
export const hasVisibleText = (text: string): boolean => text.replace(INVISIBLE, '') !== ''

const MAX_EMAIL_CHARACTERS = 255
/** RFC 5321: the longest path is 256 octets, with its angle brackets. */
const MAX_EMAIL_OCTETS = 254
const MAX_LOCAL_OCTETS = 64

const countOctets = (text: string): number => new TextEncoder().encode(text).length

/** A dot-atom, whose characters may be those of any script (RFC 6531). */
const LOCAL_PART = /^[^\s\p{C}\p{Z}"(),:;<>@[\\\].]+(?:\.[^\s\p{C}\p{Z}"(),:;<>@[\\\].]+)*$/u
const ASCII_LABEL = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/
const TOP_LABEL = /^(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})$/

/** Converts a domain name to ASCII; undefined when it is none. */
const toAsciiDomain = (domain: string): string | undefined =>
  /[\s/?#@:\\[\]%]|(?:^|\.)-|-(?:\.|$)/.test(domain) ? undefined : URL.parse(`http://${domain}/`)?.hostname

/** Whether a text is an international email address (RFC 6531, RFC 5890), such as `用户@例え.jp`. */
export const isInternationalEmail = (text: string): boolean => {
  if (text.length > MAX_EMAIL_CHARACTERS || countOctets(text) > MAX_EMAIL_OCTETS) return false
  const at = text.lastIndexOf('@')
  const local = text.slice(0, Math.max(0, at))
  if (countOctets(local) > MAX_LOCAL_OCTETS || !LOCAL_PART.test(local)) return false
  const labels = toAsciiDomain(text.slice(at + 1))?.split('.') ?? []
  return (
    labels.length > 1 && labels.every((label) => ASCII_LABEL.test(label)) && TOP_LABEL.test(labels.at(-1)!)
  )
}

/**
 * Normalizes text (UAX #15). Of a run of combining marks the first thirty count, as in its Stream-Safe Text Format:
 * sorting them takes time that grows with the square of their number, seconds for ten thousands.
 */
export const normalizeText = (text: string, form: 'NFC' | 'NFKC' | 'NFKD'): string =>
  text.replace(/(\p{M}{30})\p{M}+/gu, '$1').normalize(form)
