import { isObject } from '../../catalog/values.ts'
import { aliasesOf } from '../aliases.ts'
import type { CommandSpec, Field } from '../manifest.ts'
import { type Lookup, lookupOf } from './lookups.ts'

/** What a flag or an argument takes. A list of words are its choices; `text` is anything. */
export type Kind =
  | 'text'
  | 'file'
  | 'folder'
  | 'profile'
  | 'operation'
  | 'event'
  | 'path'
  | 'toolset'
  | 'field'
  | Lookup
  | readonly string[]

export type Slot = {
  readonly about?: string
  /** Absent: a flag that takes no value. */
  readonly kind?: Kind
  /** Several, separated by commas; the flag may be repeated. */
  readonly list?: true
  /** `@file` may stand for the value. */
  readonly at?: true
  /** The value follows `=` or is left out: the next word is none. */
  readonly attached?: true
  /** It takes a value that begins with `@` alone. */
  readonly onlyAt?: true
  /** One letter, such as `-p`. */
  readonly short?: string
  /** Also as `--no-…`. */
  readonly negatable?: true
}

/** A command, or a group of them. Flags by their names with dashes, and the arguments in their order. */
export type CommandNode = {
  readonly about?: string
  readonly verbs?: Readonly<Record<string, CommandNode>>
  readonly args?: readonly Slot[]
  readonly flags?: Readonly<Record<string, Slot>>
  /** Another name of a verb, which is offered once its beginning is typed. */
  readonly alias?: true
}

type Verbs = Readonly<Record<string, CommandNode>>

/** Adds the other names of verbs. */
export const withAliases = (verbs: Verbs): Verbs => ({
  ...verbs,
  ...Object.fromEntries(
    Object.entries(verbs).flatMap(([verb, node]) =>
      aliasesOf(verb, Object.keys(verbs)).map((alias) => [alias, { ...node, alias: true as const }]),
    ),
  ),
})

/** What `scripts/completions.ts` generates: what only the modules of the server and the catalog know. */
export type GeneratedCompletions = {
  readonly commands: Readonly<Record<string, CommandNode>>
  readonly events: readonly string[]
  readonly toolsets: readonly string[]
  readonly paths: readonly string[]
}

/** True for choices: the words that a value is one of. */
export const isChoices = (kind: Kind | undefined): kind is readonly string[] => Array.isArray(kind)
export const isLookup = (kind: Kind | undefined): kind is Lookup => isObject(kind)

const MAX_ABOUT = 60

/** The first sentence, on one line and cut to what fits beside a word. */
export const shorten = (text: string): string => {
  const [sentence = ''] = text.replaceAll('`', '').split(/[.;](?=\s|$)/)
  // Cut inside of parentheses, it ends before them.
  const first = sentence.replace(/\s*\([^)]*$/, '')
  return first.length > MAX_ABOUT ? `${first.slice(0, MAX_ABOUT - 1)}…` : first
}

const EVENT_FIELDS = ['event_types', 'event_type_id', 'types']

const kindOf = (field: Field, operation: string): Kind => {
  if (field.enum) return field.enum
  if (EVENT_FIELDS.includes(field.name)) return 'event'
  if (operation === 'audit_list' && field.name === 'operation') return 'operation'
  return lookupOf(field) ?? 'text'
}

const slotOf = (field: Field, operation: string): Slot => {
  const about = shorten(field.about)
  if (field.type === 'boolean')
    return {
      about,
      kind: field.nullable ? ['true', 'false', 'null'] : ['true', 'false'],
      attached: true,
      negatable: true,
    }
  return {
    about,
    kind: kindOf(field, operation),
    ...(field.type === 'list' ? { list: true as const } : {}),
    ...(field.text || !['string', 'integer', 'number'].includes(field.type) ? { at: true as const } : {}),
    ...(field.type === 'base64' ? { onlyAt: true as const } : {}),
  }
}

const FILE_VALUES = ['file']

const ownSlots = ({ own = [] }: CommandSpec): [string, Slot][] =>
  own.map(({ flag, value, enum: choices, about, repeats }) => [
    flag,
    {
      about: shorten(about),
      ...(value === undefined ? {} : { kind: choices ?? (FILE_VALUES.includes(value) ? 'file' : 'text') }),
      ...(repeats ? { list: true } : {}),
    },
  ])

const listSlots = ({ output }: CommandSpec): [string, Slot][] => [
  ['--ndjson', { about: 'print each row as JSON on a line of its own' }],
  ['--csv', { about: 'print the columns as CSV with a header' }],
  ['--header', { about: 'print the column names before tab-separated lines' }],
  ['--columns', { about: 'show these columns', kind: output.fields.map(({ name }) => name), list: true }],
  ['--wide', { about: 'show all columns, whatever the width of the terminal' }],
]

const writeSlots: readonly [string, Slot][] = [
  ['--dry-run', { about: 'run every check, but change nothing', kind: ['true', 'false'], attached: true }],
  ['--plan', { about: 'write what it would do to a file', kind: 'file' }],
  ['--idempotency-key', { about: 'a call with the same key never runs twice', kind: 'text' }],
  ['--reason', { about: 'why, for the person who approves a call', kind: 'text' }],
]

const answerSlots: readonly [string, Slot][] = [
  ['--jq', { about: 'print what this jq expression makes of the answer', kind: 'text' }],
  ['--template', { about: 'print this text for the answer, or for each row', kind: 'text' }],
  ['--quiet', { about: 'print ids alone' }],
]

export const urlSlot: Slot = { about: 'base URL of the server (also WCRM_URL)', kind: 'text' }
export const jsonSlot: Slot = { about: 'print JSON' }
export const helpSlot: Slot = { about: 'show help', short: '-h' }

/** The flags and arguments of an operation's command, as `program.ts` adds them. */
export const nodeOf = (spec: CommandSpec): CommandNode => {
  const isExport = spec.verb === 'export'
  const fields = spec.fields.filter((field) => !spec.args.includes(field.name))
  const { fields: row, envelope } = spec.output
  const jsonFields = [...row, ...envelope].map(({ name }) => name).filter((name) => name !== 'next_cursor')
  // The name of an argument that is an id is no flag, but help leaves the common flag out then.
  const isName = (flag: string): boolean => spec.fields.some(({ names }) => names?.flag === flag)
  const flags: [string, Slot][] = [
    ...(spec.fields.length > 0
      ? [['--input', { about: 'the whole input as a JSON object', kind: 'text', at: true }] as [string, Slot]]
      : []),
    ...(spec.output.paged && !isExport
      ? [['--all', { about: 'fetch all pages', kind: ['true', 'false'], attached: true }] as [string, Slot]]
      : []),
    ...(spec.writes ? writeSlots : []),
    ['--retry', { about: 'try again when the service is unavailable', kind: 'text', attached: true }],
    ...(spec.confirm
      ? [['--confirm', { about: 'confirms without a prompt', kind: [spec.confirm] }] as [string, Slot]]
      : []),
    ...(spec.output.list && !isExport ? listSlots(spec) : []),
    ...(isExport ? [] : answerSlots.filter(([flag]) => !isName(flag))),
    ['--utc', { about: 'show times in UTC' }],
    ['--json', { about: 'print the response as JSON', kind: jsonFields, list: true, attached: true }],
    ['--url', urlSlot],
    ['--help', helpSlot],
    ...ownSlots(spec),
    // Fields come last: where one has the name of a common flag, it is the field.
    ...fields.flatMap((field): [string, Slot][] => {
      const slot = slotOf(field, spec.operation)
      const named = field.names?.flag
      return [[field.flag, slot], ...(named ? [[named, slot] as [string, Slot]] : [])]
    }),
  ]
  return {
    about: spec.summary,
    args: [
      ...spec.args.map((name) =>
        slotOf(
          spec.fields.find((field) => field.name === name)!,
          spec.operation,
        ),
      ),
      ...(spec.word ? [{ about: shorten(spec.word.about), kind: 'file' as const }] : []),
    ],
    flags: Object.fromEntries(flags),
  }
}
