import { usageError } from './error.ts'
import { type CommandEntry, type CommandSpec, findCommand } from './manifest.ts'
import type { JsonFlag } from './parsed-command.ts'

/** A command line from which what commander cannot parse was removed or rewritten. */
export type CommandLine = {
  readonly words: string[]
  readonly json: JsonFlag
  /** The group of operations that is asked for, where there is one of this name, and the command. */
  readonly group: string | undefined
  readonly spec: CommandSpec | undefined
}

/** Options of the program itself that take a value; they precede the group. */
const GLOBAL_FLAGS_WITH_VALUE = ['--url', '--server']

/** Returns the index of the group, which follows the program's own options. */
export const findGroupIndex = (words: readonly string[]): number => {
  let at = 0
  while (words[at]?.startsWith('-')) at += GLOBAL_FLAGS_WITH_VALUE.includes(words[at]!) ? 2 : 1
  return at
}

/**
 * Removes `--json` before commander parses the words: it may occur anywhere and must not consume the word
 * after it.
 */
const extractJsonFlag = (argv: readonly string[]): { words: string[]; json: JsonFlag } => {
  const end = argv.indexOf('--') === -1 ? argv.length : argv.indexOf('--')
  const isJson = (word: string, i: number): boolean =>
    i < end && (word === '--json' || word.startsWith('--json='))
  const fields = argv
    .filter(isJson)
    .map((word) => word.slice('--json='.length))
    .filter((text) => text !== '')
    .at(-1)
  return {
    words: argv.filter((word, i) => !isJson(word, i)),
    json: { on: argv.some(isJson), ...(fields === undefined ? {} : { fields }) },
  }
}

/**
 * Rewrites `--starred=false` to `--no-starred`: for commander a flag takes a value either always or never.
 */
const rewriteBooleanFlags = (words: readonly string[], spec: CommandSpec): string[] => {
  const flags = [...spec.fields.filter((f) => f.type === 'boolean').map((f) => f.flag), '--dry-run', '--all']
  return words.map((word) => {
    // As `--json`, it must not consume the word after it.
    if (word === '--retry') return '--retry=5'
    const [flag, value] = [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]
    if (!word.includes('=') || !flags.includes(flag)) return word
    if (value === 'true') return flag
    if (value === 'false') return flag.replace('--', '--no-')
    if (value === 'null' && spec.fields.some((f) => f.flag === flag && f.nullable))
      return flag.replace('--', '--null-')
    throw usageError(
      `${flag} must be true or false, not "${value}".`,
      flag,
      `Use ${flag}, ${flag}=false or ${flag.replace('--', '--no-')}.`,
    )
  })
}

export const parseCommandLine = (argv: readonly string[], commands: readonly CommandEntry[]): CommandLine => {
  const { words, json } = extractJsonFlag(argv)
  const at = findGroupIndex(words) + (words[findGroupIndex(words)] === 'help' ? 1 : 0)
  const command = findCommand(commands, words[at], words[at + 1])
  const group = commands.find((entry) => entry.group === words[at])?.group
  return { words, json, group, spec: command?.read() }
}

/**
 * Makes arguments of the flags that the fields in the path would have: who knows an operation by its fields cannot
 * tell which of them are in the path. All of them or none: an argument is known by its place.
 */
const rewritePathFlags = (words: readonly string[], spec: CommandSpec): string[] => {
  const flags = spec.args.map((name) => spec.fields.find((field) => field.name === name)!.flag)
  const values = new Map<string, string>()
  const others: string[] = []
  const end = words.indexOf('--') === -1 ? words.length : words.indexOf('--')
  for (let at = 0; at < end; at++) {
    const [flag = '', inline] = words[at]!.split(/=(.*)/s)
    if (!flags.includes(flag)) {
      others.push(words[at]!)
      continue
    }
    const value = inline ?? words[++at]
    if (value === undefined || at >= end || (inline === undefined && value.startsWith('--')))
      throw usageError(`${flag} has no value.`, flag)
    if (values.has(flag)) throw usageError(`${flag} is given twice.`, flag, 'Give it once.')
    values.set(flag, value)
  }
  if (flags.length === 0 || values.size < flags.length) return [...words]
  return [...others, '--', ...flags.map((flag) => values.get(flag)!), ...words.slice(end + 1)]
}

/** Returns the words for commander. Throws a usage error for a flag whose value cannot be. */
export const commanderWords = (line: CommandLine): string[] =>
  line.spec ? rewritePathFlags(rewriteBooleanFlags(line.words, line.spec), line.spec) : line.words
