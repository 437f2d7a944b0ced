import type { CommandSpec } from './manifest.ts'
import type { ProblemLike } from './fault.ts'

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' }

/**
 * Text from customers made harmless for a terminal: control characters (among them the escapes that move
 * the cursor or set the title) and marks that reverse the direction of writing are shown as codes. Lossless
 * output is `--json`.
 */
export const visible = (text: string): string =>
  text.replace(
    /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (c) => short[c] ?? `\\u${c.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  )

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A thing that its name stands for, such as a tag: nothing but an id and a name. */
const isNamed = (value: unknown): value is { name: unknown; id?: unknown } =>
  isObject(value) &&
  !isObject(value['name']) &&
  'name' in value &&
  Object.keys(value).every((key) => key === 'id' || key === 'name' || key === 'emoji')

/** A list that fits in one cell. */
export const isFlat = (items: readonly unknown[]): boolean =>
  items.every((item) => !(isObject(item) || Array.isArray(item)) || isNamed(item))

/** One value as one line. */
export const cell = (value: unknown): string => {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return visible(value)
  if (Array.isArray(value)) return value.map(cell).join(', ')
  if (isObject(value))
    return 'name' in value && !isObject(value['name'])
      ? cell(value['name'] ?? value['id'])
      : visible(JSON.stringify(value))
  return String(value)
}

/** Rows as tab-separated lines without a header, columns in the order that `--help` names. */
export const tsv = (rows: readonly Record<string, unknown>[], columns: readonly string[]): string =>
  rows.map((row) => `${columns.map((name) => cell(row[name])).join('\t')}\n`).join('')

/**
 * A record as `key: value` lines; keys of nested values are joined with dots. A filter stays the JSON as
 * which it is typed.
 */
export const recordLines = (value: unknown, path = ''): string[] => {
  if (isObject(value) && /(?:^|\.)filter$/.test(path)) return [`${path}: ${visible(JSON.stringify(value))}`]
  if (Array.isArray(value) && !isFlat(value))
    return value.flatMap((item, i) => recordLines(item, `${path}.${i}`))
  if (!isObject(value) || (path && isNamed(value) && !('id' in value)))
    return [`${path}: ${cell(value)}`.trimEnd()]
  return Object.entries(value).flatMap(([key, inner]) =>
    recordLines(inner, path ? `${path}.${visible(key)}` : visible(key)),
  )
}

export type FaultText = {
  readonly title: string
  readonly detail: string
  readonly items: readonly {
    readonly where: string
    readonly detail: string
    readonly fix: string | undefined
  }[]
  readonly mend: string | undefined
  readonly request: string | undefined
}

/** `#/group_ids/0` as the person typed it: `--group-ids (item 0)`. */
const whereOf = (item: NonNullable<ProblemLike['errors']>[number], spec: CommandSpec | undefined): string => {
  const [, name, ...inner] = item.pointer?.split('/') ?? []
  const field = spec?.fields.find((f) => f.name === name)
  if (!field) return visible(item.pointer ?? item.parameter ?? item.header ?? '')
  const typed = spec!.args.includes(field.name) ? `<${field.name}>` : field.flag
  return inner.length > 0 ? `${typed} (${visible(inner.join('/'))})` : typed
}

/** What a person is told about a problem, before it is laid out. */
export const faultText = (
  problem: ProblemLike,
  spec: CommandSpec | undefined,
  mend: string | undefined,
): FaultText => ({
  title: visible(`${problem.title}${problem['reason'] ? ` (${String(problem['reason'])})` : ''}`),
  detail: visible(problem.detail),
  items: (problem.errors ?? []).map((e) => {
    const fix = e.fix === undefined ? undefined : visible(e.fix)
    return e.detail === problem.detail
      ? { where: '', detail: '', fix }
      : { where: whereOf(e, spec), detail: visible(e.detail), fix }
  }),
  mend,
  request: problem.request_id === undefined ? undefined : visible(problem.request_id),
})

export const faultLines = (text: FaultText): string[] => [
  `Error: ${text.title}`,
  ...(text.detail ? [`  ${text.detail}`] : []),
  ...text.items.flatMap((e) => [
    ...(e.detail ? [`  ${e.where ? `${e.where}: ` : ''}${e.detail}`] : []),
    ...(e.fix ? [`    Fix: ${e.fix}`] : []),
  ]),
  ...(text.mend ? [text.mend] : []),
  ...(text.request ? [`Request ${text.request}`] : []),
]
