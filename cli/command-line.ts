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

/** Long flags that every command of an operation may have. */
const COMMON_FLAGS =
  '--dry-run --idempotency-key --confirm --reason --plan --input --all --retry --url --json --quiet'.split(
    ' ',
  )

/**
 * Throws a usage error where the value of a flag is a flag of the command, as after an empty variable without quotes:
 * `--text $MSG --dry-run` would write `--dry-run`, and make the change.
 */
const refuseFlagsAsValues = (words: readonly string[], spec: CommandSpec): void => {
  const withValue = [
    ...spec.fields.filter(({ type }) => type !== 'boolean').map(({ flag }) => flag),
    ...spec.fields.flatMap(({ names }) => names?.flag ?? []),
    '--input',
    '--idempotency-key',
    '--confirm',
    '--reason',
    '--plan',
    '--template',
    '--jq',
    '--columns',
  ]
  const known = [...COMMON_FLAGS, ...withValue, ...spec.fields.map(({ flag }) => flag)]
  const end = words.includes('--') ? words.indexOf('--') : words.length
  for (let at = 0; at < end; at += 1) {
    const [flag, value = ''] = [words[at]!, words[at + 1]]
    if (!withValue.includes(flag)) continue
    if (known.includes(value.split('=')[0]!) && value.startsWith('--'))
      throw usageError(
        `${flag} has no value.`,
        flag,
        `Give ${flag} a value; for this text itself: ${flag}=${value}`,
      )
    at += 1
  }
}

/** Returns the words for commander. Throws a usage error for a boolean flag with another value. */
export const commanderWords = (line: CommandLine): string[] => {
  if (!line.spec) return line.words
  refuseFlagsAsValues(line.words, line.spec)
  return rewriteBooleanFlags(line.words, line.spec)
}
