import type { RecordedAnswer } from './preload.ts'

/**
 * Makes answers of two runs equal in what changes with every run: ids, times, keys, addresses. Ids that are plain
 * numbers are known by where they stand: a string of digits in the request or the answer is one, and is then replaced
 * in the texts beside it.
 */

/** What changes with every run and is known by its form. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?/g, '<time>'],
  [/\d{4}-\d\d-\d\d/g, '<date>'],
  [/\b\d\d:\d\d(:\d\d)?\b/g, '<clock>'],
  [/\b[a-z]+_[0-9A-HJKMNP-TV-Z]{26}\b/g, '<ulid>'],
  [/\bwc_(live|test)_\w+/g, '<key>'],
  [/\bwhsec_[\w+/=]+/g, '<secret>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/https?:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+/g, '<server>'],
  [/\b(127\.0\.0\.1|localhost):\d+/g, '<server>'],
  [/(?<![\w/.-])\/(?:[\w.-]+\/)*wcrm-[\w/.-]+/g, '<path>'],
  [/\b(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{16,}={0,2}/g, '<token>'],
  [/\b\d{5,}\b/g, '<number>'],
]

/** Members whose values are measured, or random. */
const MEASURED =
  /"(\w*(?:_ms|_seconds|duration|took|elapsed|request_id|cursor|next_cursor))":\s*("[^"]*"|-?[\d.]+)/g

/** Where digits are an id: a string of their own, or a segment of a path. */
const ID = /(?<=")\d{1,19}(?=")|(?<=\/)\d{1,19}(?=[/?\s]|$)/g

/** Of a file that was downloaded this is enough, and a regular expression does not get through megabytes. */
const MAX_LENGTH = 400_000

const equalizeForms = (text: string): string =>
  FORMS.reduce(
    (rest, [form, name]) => rest.replaceAll(form, name),
    text.slice(0, MAX_LENGTH).replaceAll(MEASURED, '"$1":"<measured>"'),
  )

const HEADER = /^[a-z-]+: /

/** Returns an answer as one text in which what changes with every run has equal names. */
export const equalize = ({ asked, body, status, answer }: RecordedAnswer): string => {
  const parts = [asked, ...answer].map(equalizeForms)
  const ids = new Set([...parts, equalizeForms(body)].flatMap((part) => part.match(ID) ?? []))
  return [`${status}`, ...parts]
    .map((part, n) =>
      n === 0 || HEADER.test(part)
        ? part
        : part.replaceAll(/(?<!":)\b\d{1,19}\b/g, (digits) => (ids.has(digits) ? '<id>' : digits)),
    )
    .join(' | ')
}
