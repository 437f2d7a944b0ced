import { countWords, minWords } from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { fillSamples, parseVariables, replaceVariables } from '../variables.ts'
import type { DraftBody } from './rule.ts'
import { joinWords } from './text.ts'

/** Samples may have any length; this many characters are enough to check one. */
export const MAX_SAMPLE_LENGTH = 2000

/** Fills the text with its samples. The variable of a blank sample is unchanged. */
export const renderPreview = ({ text, examples }: Pick<DraftBody, 'text' | 'examples'>): string =>
  fillSamples(
    text,
    examples.map((sample) => (isBlank(sample) ? undefined : sample.slice(0, MAX_SAMPLE_LENGTH))),
  )

/** Writes a word for each variable: it counts as one. */
export const spellVariables = (text: string): string => replaceVariables(text, ' variable ')

/** Whether a text has so few words for its variables that it is refused, or may be rejected in review. */
export const wordShortage = ({
  text,
  variables: { names, places },
}: DraftBody): 'refused' | 'risky' | undefined => {
  const n = names.length
  if (n === 0) return undefined
  const words = countWords(spellVariables(text), 3 * n + 1 + places.length)
  return words < minWords(n) ? 'refused' : words - places.length < 3 * n + 1 ? 'risky' : undefined
}

export const clipName = (name: string): string => (name.length > 8 ? `${name.slice(0, 8)}…` : name)

export const formatVariables = (names: readonly string[]): string =>
  joinWords(names.slice(0, 6).map((name) => `{{${clipName(name)}}}`))

/** Rewrites `{{ 1 }}`, `{{01}}` and `{{name}}` as numbered variables; empty when braces remain. */
export const fixBraces = (text: string): string => {
  const names: string[] = []
  const fixed = text.replaceAll(/\{\{([^{}]*)\}\}/g, (_, inner: string) => {
    const name = inner.trim().replace(/^0+(?=\d)/, '')
    if (!names.includes(name)) names.push(name)
    return /^[1-9]\d*$/.test(name) ? `{{${name}}}` : `{{${names.indexOf(name) + 1}}}`
  })
  return parseVariables(fixed).leftover ? '' : fixed
}

/** Returns the text from the first braces that form no variable. */
export const leftoverBraces = (text: string): string => {
  const rest = replaceVariables(text, '…')
  return rest.slice(rest.search(/\{\{|\}\}/))
}

const SHORTENER_HOSTS = ['bit.ly', 'tinyurl.com', 'goo.gl', 't.co', 'wa.me']
const SHORTENERS = new RegExp(
  String.raw`(?<![\p{L}\p{N}._-])(?:www\.)?(${SHORTENER_HOSTS.join('|').replaceAll('.', String.raw`\.`)})` +
    String.raw`(?![\p{L}\p{N}_-]|\.[\p{L}\p{N}])`,
  'iu',
)

/** Returns the host of the first shortened link in a text; undefined without one. */
export const findShortener = (text: string): string | undefined => SHORTENERS.exec(text)?.[1]?.toLowerCase()
