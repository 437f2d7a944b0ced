import { showHidden } from '../catalog/text.ts'
import { isObject } from '../catalog/values.ts'
import type { CommandSpec } from './manifest.ts'
import type { CliProblem } from './error.ts'

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' }

/**
 * Makes customers' text safe for a terminal, and honest: control characters (such as escape sequences that move the
 * cursor or set the title) and all that nobody sees or that turns the direction are written as in the questions of
 * approvals (`\u{202e}`), line breaks and tabs as `\n` and `\t`. `--json` prints them unchanged.
 */
export const escapeControlCharacters = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) ? text : showHidden(text.replace(/[\n\t\r]/g, (c) => SHORT_ESCAPES[c]!))

/** Names are the same when they differ in case, in the form of their characters, or in spaces around them. */
export const foldName = (text: string): string => text.normalize('NFKC').trim().toLowerCase()

/** True for an object that its name can represent, such as a tag: it has only an id, a name and an emoji. */
const isNameOnly = (value: unknown): value is { name: unknown; id?: unknown } =>
  isObject(value) &&
  !isObject(value['name']) &&
  'name' in value &&
  Object.keys(value).every((key) => key === 'id' || key === 'name' || key === 'emoji')

/** True when a list can be shown in one cell. */
export const fitsOneCell = (items: readonly unknown[]): boolean =>
  items.every((item) => !(isObject(item) || Array.isArray(item)) || isNameOnly(item))

/** True for texts that a line of their own keeps apart: joined by commas, one could pose as several. */
export const areSentences = (items: readonly unknown[]): boolean =>
  items.some((item) => typeof item === 'string' && item.includes(', '))

/** Creates a formatter of values as one text: lists joined by commas, objects by their name or as JSON. */
const createCellFormat = (write: (text: string) => string): ((value: unknown) => string) => {
  const format = (value: unknown): string => {
    if (value === null || value === undefined) return ''
    if (typeof value === 'string') return write(value)
    if (Array.isArray(value)) return value.map(format).join(', ')
    if (isObject(value))
      return 'name' in value && !isObject(value['name'])
        ? format(value['name'] ?? value['id'])
        : write(JSON.stringify(value))
    return String(value)
  }
  return format
}

/** Formats a value as one line for people. */
export const formatCell = createCellFormat(escapeControlCharacters)

/** Formats a value for a cell of CSV, whose quotes hold line breaks and tabs. */
export const formatCsvCell = createCellFormat((text) => text)

/** Formats a value between tabs. A backslash is written twice, so that escaped and typed characters differ. */
const formatTsvCell = createCellFormat((text) => escapeControlCharacters(text.replaceAll('\\', '\\\\')))

/**
 * Returns the value at a path such as `contact.name`, `messages.last.text` for the last of a list, or `options.label`
 * for all of one; undefined where there is none.
 */
export const readPath = (row: Readonly<Record<string, unknown>>, path: string): unknown => {
  const read = (value: unknown, name: string): unknown => {
    if (isObject(value)) return value[name]
    if (!Array.isArray(value)) return undefined
    return name === 'last' ? value.at(-1) : value.map((item) => read(item, name))
  }
  return path.split('.').reduce<unknown>(read, row)
}

/** Formats rows as tab-separated lines without a header, columns in the order that `--help` names. */
export const formatTsv = (rows: readonly Record<string, unknown>[], columns: readonly string[]): string =>
  rows.map((row) => `${columns.map((path) => formatTsvCell(readPath(row, path))).join('\t')}\n`).join('')

/**
 * Formats a record as `key: value` lines; keys of nested values are joined with dots. A filter stays JSON, as
 * it is typed.
 */
export const formatRecord = (value: unknown, path = ''): string[] => {
  if (isObject(value) && /(?:^|\.)filter$/.test(path))
    return [`${path}: ${escapeControlCharacters(JSON.stringify(value))}`]
  if (Array.isArray(value) && (!fitsOneCell(value) || areSentences(value)))
    return value.flatMap((item, i) => formatRecord(item, `${path}.${i}`))
  if (!isObject(value) || (path && isNameOnly(value) && !('id' in value)))
    return [`${path}: ${formatCell(value)}`.trimEnd()]
  return Object.entries(value).flatMap(([key, inner]) =>
    formatRecord(inner, path ? `${path}.${escapeControlCharacters(key)}` : escapeControlCharacters(key)),
  )
}

export type ProblemText = {
  readonly title: string
  readonly detail: string
  readonly items: readonly {
    readonly where: string
    readonly detail: string
    readonly fix: string | undefined
  }[]
  readonly fix: string | undefined
  readonly request: string | undefined
}

/** Formats `#/group_ids/0` as the user typed it: `--group-ids (0)`. */
const formatLocation = (
  item: NonNullable<CliProblem['errors']>[number],
  spec: CommandSpec | undefined,
): string => {
  const [, name, ...inner] = item.pointer?.split('/') ?? []
  const field = spec?.fields.find((f) => f.name === name)
  if (!field) return escapeControlCharacters(item.pointer ?? item.parameter ?? item.header ?? '')
  const argument = spec!.args.includes(field.name) ? `<${field.name}>` : field.flag
  return inner.length > 0 ? `${argument} (${escapeControlCharacters(inner.join('/'))})` : argument
}

/** Returns the texts of a problem, before layout. */
export const toProblemText = (
  problem: CliProblem,
  spec: CommandSpec | undefined,
  fix: string | undefined,
): ProblemText => ({
  title: escapeControlCharacters(
    `${problem.title}${problem['reason'] ? ` (${String(problem['reason'])})` : ''}`,
  ),
  detail: escapeControlCharacters(problem.detail),
  items: (problem.errors ?? []).map((e) => {
    const fix = e.fix === undefined ? undefined : escapeControlCharacters(e.fix)
    return e.detail === problem.detail
      ? { where: '', detail: '', fix }
      : { where: formatLocation(e, spec), detail: escapeControlCharacters(e.detail), fix }
  }),
  fix,
  request: problem.request_id === undefined ? undefined : escapeControlCharacters(problem.request_id),
})

export const formatProblem = (text: ProblemText): string[] => [
  `Error: ${text.title}`,
  ...(text.detail ? [`  ${text.detail}`] : []),
  ...text.items.flatMap((e) => [
    ...(e.detail ? [`  ${e.where ? `${e.where}: ` : ''}${e.detail}`] : []),
    ...(e.fix ? [`    Fix: ${e.fix}`] : []),
  ]),
  ...(text.fix ? [text.fix] : []),
  ...(text.request ? [`Request ${text.request}`] : []),
]
