import { type Command, CommanderError } from 'commander'
import { usageError } from './error.ts'
import type { Io } from './io.ts'
import { reportError } from './report-error.ts'

/**
 * Runs a tree of commands that are not operations. Errors are reported as problems on the caller's streams;
 * `convertError` may replace them first. Returns the exit code.
 */
export const runCommandTree = async (
  root: Command,
  argv: readonly string[],
  io: Io,
  convertError: (error: unknown) => unknown = (error) => error,
): Promise<number> => {
  const json = argv.includes('--json')
  let errorText = ''
  configureOutput(root, io, (text) => {
    errorText += text
  })
  try {
    await root.parseAsync(argv.length > 0 ? argv : ['--help'], { from: 'user' })
    return 0
  } catch (error) {
    if (!(error instanceof CommanderError)) return await reportError(io, convertError(error), undefined, json)
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help' && !json) {
      io.stderr.write(errorText)
      return 2
    }
    const detail =
      error.code === 'commander.help'
        ? 'The verb is missing.'
        : errorText
            .replace(/^error: /, '')
            .trim()
            .replaceAll('\n', ' ')
    return await reportError(
      io,
      Object.assign(usageError(detail), { hint: `See: ${root.name()} --help` }),
      undefined,
      json,
    )
  }
}

/** Sets the output of a command and of all its subcommands, which do not inherit it. */
const configureOutput = (command: Command, io: Io, writeError: (text: string) => void): void => {
  command.exitOverride().configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: writeError,
    getOutHelpWidth: () => io.stdout.columns || 100,
    getErrHelpWidth: () => io.stderr.columns || 100,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  })
  for (const subcommand of command.commands) configureOutput(subcommand, io, writeError)
}
