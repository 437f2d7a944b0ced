import { normalizeText } from '../../../catalog/text.ts'
import type { SearchTerm } from '../../../storage/messages/search-terms.ts'
import { clipText } from '../messaging/view.ts'

/** Words of scripts without spaces are single characters, as in `message_words`. */
const UNSPACED =
  '[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3041-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff]'
const WORDS = new RegExp(`${UNSPACED}\\p{M}*|(?:(?!${UNSPACED})[\\p{L}\\p{N}\\p{M}])+`, 'gu')
const STROKES: Readonly<Record<string, string>> = { ł: 'l', ø: 'o', đ: 'd', ı: 'i', ς: 'σ', ß: 'ss' }

/**
 * Folds a word nearly as the database does (`message_words`), which decides what is found: where the two differ, a
 * word is found and not marked.
 */
const foldWord = (word: string): string =>
  normalizeText(word, 'NFKD')
    .toLowerCase()
    .replace(/[łøđıςß]/g, (letter) => STROKES[letter]!)
    .replace(/[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u3099\u309a]/g, '')

/** Longer ones are no words that anybody looks for. */
const MAX_WORD = 200
const BEFORE = 60
const LENGTH = 200

/** What stems lose at the end of a word, at most. */
const ENDING = 5

/** Tells nearly whether a word is a form of another by its stems. */
const hasForm = (word: string, forms: readonly string[]): boolean =>
  forms.some((form) => form.length > 2 && word.startsWith(form) && word.length <= form.length + ENDING)

/** Returns the text around the first word that was found, with `**` before and after each of them. */
export const toExcerpt = (text: string, terms: readonly SearchTerm[]): string => {
  const whole = new Set(terms.flatMap(({ words }) => words))
  const spans = Array.from(text.matchAll(WORDS), ({ 0: word, index }) => ({
    from: index,
    to: index + word.length,
    folded: word.length <= MAX_WORD ? foldWord(word) : '',
  }))
  const found = spans.filter(
    ({ folded }) => whole.has(folded) || terms.some(({ forms }) => forms && hasForm(folded, forms)),
  )
  const first = found[0]?.from ?? 0
  const start = first <= BEFORE ? 0 : (spans.find(({ from }) => from >= first - BEFORE)?.from ?? first)
  const shown = clipText(text.slice(start), LENGTH)
  const end = start + shown.text.length
  let marked = ''
  let at = start
  for (const { from, to } of found.filter((span) => span.from >= start && span.to <= end)) {
    marked += `${text.slice(at, from)}**${text.slice(from, to)}**`
    at = to
  }
  return `${start > 0 ? '…' : ''}${marked}${text.slice(at, end)}${shown.truncated ? '…' : ''}`
}
