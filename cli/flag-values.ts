import type { Command } from 'commander'
import { usageError } from './error.ts'

/**
 * Throws a usage error where the value of a flag is another flag of the command, as after an empty variable without
 * quotes: `--text $MSG --dry-run` would write `--dry-run`, and make the change.
 */
export const refuseFlagsAsValues = (program: Command, words: readonly string[]): void => {
  let command = program
  const end = words.includes('--') ? words.indexOf('--') : words.length
  for (let at = 0; at < end; at++) {
    const word = words[at]!
    const option = command.options.find(({ long, short }) => word === long || word === short)
    command = (option ? undefined : command.commands.find((one) => one.name() === word)) ?? command
    if (!option?.required) continue
    const value = words[++at] ?? ''
    const [name] = value.split('=', 1)
    if (value.startsWith('--') && command.options.some(({ long }) => long === name))
      throw usageError(
        `${word} has no value.`,
        word,
        `Give ${word} a value; for this text itself: ${word}=${value}`,
      )
  }
}
