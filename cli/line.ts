import { usage } from './fault.ts'
import type { CommandSpec } from './manifest.ts'
import type { Json } from './operate.ts'

/** A command line with what commander cannot read taken out or rewritten. */
export type Line = { readonly words: string[]; readonly json: Json; readonly spec: CommandSpec | undefined }

/** Options of the program itself that take a value; they stand before the group. */
const globalWithValue = ['--url', '--server']

/** Where the group is: behind the program's own options. */
export const startOf = (words: readonly string[]): number => {
  let at = 0
  while (words[at]?.startsWith('-')) at += globalWithValue.includes(words[at]!) ? 2 : 1
  return at
}

/**
 * `--json` may stand anywhere and must not swallow the word behind it, so it is taken out before commander
 * reads.
 */
const takeJson = (argv: readonly string[]): { words: string[]; json: Json } => {
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

/** `--starred=false` becomes `--no-starred`: commander knows a flag either with a value or without. */
const plainBooleans = (words: readonly string[], spec: CommandSpec): string[] => {
  const flags = [...spec.fields.filter((f) => f.type === 'boolean').map((f) => f.flag), '--dry-run', '--all']
  return words.map((word) => {
    const [flag, value] = [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]
    if (!word.includes('=') || !flags.includes(flag)) return word
    if (value === 'true') return flag
    if (value === 'false') return flag.replace('--', '--no-')
    if (value === 'null' && spec.fields.some((f) => f.flag === flag && f.nullable))
      return flag.replace('--', '--null-')
    throw usage(
      `${flag} is true or false, not "${value}".`,
      flag,
      `Say ${flag}, ${flag}=false or ${flag.replace('--', '--no-')}.`,
    )
  })
}

export const readLine = (argv: readonly string[], commands: readonly CommandSpec[]): Line => {
  const { words, json } = takeJson(argv)
  const at = startOf(words) + (words[startOf(words)] === 'help' ? 1 : 0)
  const spec = commands.find((c) => c.group === words[at] && (c.verb === '' || c.verb === words[at + 1]))
  return { words, json, spec }
}

/** The words as commander is to read them; throws a usage fault. */
export const wordsFor = (line: Line): string[] =>
  line.spec ? plainBooleans(line.words, line.spec) : line.words
