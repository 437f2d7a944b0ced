import { readFileSync } from 'node:fs'
import type { NameLookup, Operation } from '../catalog/operation.ts'
import { aliasesOf } from './aliases.ts'

/** How the text of a flag is converted to an input value. */
export type FieldType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'list' | 'any' | 'base64'

export type Field = {
  readonly name: string
  readonly flag: string
  readonly type: FieldType
  /** Type of a list's items. */
  readonly items?: FieldType
  readonly enum?: readonly string[]
  readonly required?: true
  readonly nullable?: true
  readonly default?: unknown
  /** A time, or a day, which a phrase may stand for. */
  readonly time?: 'time' | 'day'
  /** A long text, which may come from a file or standard input. */
  readonly text?: true
  /** Ids: of the list that finds them by name, and the flag that takes a name. */
  readonly names?: FieldNames
  /** A list of ids; the number of them in one call. */
  readonly ids?: number
  /** Of a field that takes JSON: what it looks like, in a line, and a value that it takes. */
  readonly json?: { readonly shape: string; readonly example?: unknown }
  readonly about: string
}

/** How a name becomes an id (see `NameLookup`). `pattern`: what is an id, or a word that the server knows. */
export type FieldNames = Omit<NameLookup, 'fields'> & {
  readonly operation: string
  readonly command: string
  readonly flag?: string
  readonly pattern: string
}

export type OutputField = { readonly name: string; readonly type: string; readonly about: string }

/** A flag that exists only on the command line; without `value` it takes none. */
type OwnFlag = {
  readonly flag: string
  readonly value?: string
  readonly enum?: readonly string[]
  readonly repeats?: true
  readonly about: string
}

export type CommandSpec = {
  /** The operation on `/v1/ops`. */
  readonly operation: string
  readonly group: string
  /** Empty for a command without a group, such as `whoami`. */
  readonly verb: string
  /** Other names of the verb. */
  readonly aliases?: readonly string[]
  readonly summary: string
  /** What people call the operation (`words` in its declaration). */
  readonly words: string
  readonly about?: string
  readonly beta?: true
  readonly scope: string
  readonly writes?: true
  readonly confirm?: string
  /** The list of ids that is sent in batches where it comes from a file or standard input. */
  readonly batch?: string
  /** The text that an editor asks for. */
  readonly compose?: string
  /** Names of the fields that are positional, in path order; they are in `fields` too. */
  readonly args: readonly string[]
  readonly fields: readonly Field[]
  /**
   * What the command line adds to the operation: an optional positional argument, and flags that are not
   * fields of the input.
   */
  readonly word?: { readonly name: string; readonly about: string }
  readonly own?: readonly OwnFlag[]
  readonly output: {
    /** The response is `{data: [...]}`: `fields` are those of a row, `envelope` those beside `data`. */
    readonly list?: true
    /** The next page is requested with `cursor`. */
    readonly paged?: true
    readonly fields: readonly OutputField[]
    readonly envelope: readonly OutputField[]
    /** Row fields shown in tab-separated lines, and on a terminal where there is no `view`. */
    readonly columns: readonly string[]
    readonly view?: Operation['view']
    /** Path of the id in a row, or in the answer where it is no list. */
    readonly id?: string
  }
  readonly examples: readonly { readonly title: string; readonly command: string }[]
}

export type Manifest = { readonly version: string; readonly commands: readonly CommandSpec[] }

/** What is known of a command before its line of the manifest is parsed, which `read` does. */
export type CommandEntry = Pick<CommandSpec, 'group' | 'verb' | 'summary'> & {
  readonly read: () => CommandSpec
}

export type CommandIndex = Pick<Manifest, 'version'> & { readonly entries: readonly CommandEntry[] }

// Read as text: the compiler would parse an import of this size a second time.
const readText = (): string => readFileSync(new URL('./manifest.json', import.meta.url), 'utf8')

/** Reads the commands that were generated from the catalog. */
export const readManifest = (): Manifest => JSON.parse(readText()) as Manifest

/** The command of each operation: an export is another one of its list. */
export const readOperationCommands = (): readonly CommandSpec[] =>
  readManifest().commands.filter(({ verb }) => verb !== 'export')

const TEXT = String.raw`("(?:[^"\\]|\\.)*")`
const HEAD = new RegExp(String.raw`^\{"version":${TEXT},"commands":\[\n`)
const COMMAND = new RegExp(
  String.raw`\{"operation":"\w+","group":${TEXT},"verb":${TEXT},"summary":${TEXT},`,
  'y',
)

/**
 * Reads which commands there are, in a fraction of the time of the whole manifest: a command that starts needs one of
 * them. Throws where the file is not as `npm run generate` writes it, a line for each command.
 */
export const readCommandIndex = (): CommandIndex => {
  const text = readText()
  const [head, version] = HEAD.exec(text) ?? []
  if (head === undefined) throw new Error('cli/manifest.json has another form: run npm run generate.')
  const parse = (json: string): string => JSON.parse(json) as string
  const entries: CommandEntry[] = []
  for (let at = head.length; ;) {
    COMMAND.lastIndex = at
    const [found, group, verb, summary] = COMMAND.exec(text) ?? []
    if (found === undefined) break
    const [start, end] = [at, text.indexOf('\n', at)]
    entries.push({
      group: parse(group!),
      verb: parse(verb!),
      summary: parse(summary!),
      read: () => JSON.parse(text.slice(start, end).replace(/,$/, '')) as CommandSpec,
    })
    at = end + 1
  }
  return { version: parse(version!), entries }
}

/** Finds the command of a group and a verb, which may be an alias; a group without verbs is a command itself. */
export const findCommand = <Entry extends { readonly group: string; readonly verb: string }>(
  commands: readonly Entry[],
  group: string | undefined,
  verb: string | undefined,
): Entry | undefined => {
  const ofGroup = commands.filter((each) => each.group === group)
  const verbs = ofGroup.map((each) => each.verb)
  return (
    ofGroup.find((each) => each.verb === '' || each.verb === verb) ??
    ofGroup.find((each) => aliasesOf(each.verb, verbs).includes(verb ?? ''))
  )
}

/** Returns what a user types after `wcrm`. */
export const commandName = (spec: CommandSpec): string =>
  spec.verb ? `${spec.group} ${spec.verb}` : spec.group
