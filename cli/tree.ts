import { type Command, CommanderError } from 'commander'
import { usage } from './fault.ts'
import type { Io } from './io.ts'
import { report } from './report.ts'

/**
 * Runs a tree of commands that are not operations: its complaints are told as problems, on the caller's
 * streams. Gives the exit code.
 */
export const runTree = async (
  root: Command,
  argv: readonly string[],
  io: Io,
  plain: (error: unknown) => unknown = (error) => error,
): Promise<number> => {
  const json = argv.includes('--json')
  let complaint = ''
  quietly(root, io, (text) => {
    complaint += text
  })
  try {
    await root.parseAsync(argv.length > 0 ? argv : ['--help'], { from: 'user' })
    return 0
  } catch (error) {
    if (!(error instanceof CommanderError)) return await report(io, plain(error), undefined, json)
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help' && !json) {
      io.stderr.write(complaint)
      return 2
    }
    const detail =
      error.code === 'commander.help'
        ? 'A verb is missing.'
        : complaint
            .replace(/^error: /, '')
            .trim()
            .replaceAll('\n', ' ')
    return await report(
      io,
      Object.assign(usage(detail), { hint: `See: ${root.name()} --help` }),
      undefined,
      json,
    )
  }
}

/** Settings reach the commands below only when they are set on each. */
const quietly = (command: Command, io: Io, complain: (text: string) => void): void => {
  command.exitOverride().configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: complain,
    getOutHelpWidth: () => io.stdout.columns || 100,
    getErrHelpWidth: () => io.stderr.columns || 100,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  })
  for (const below of command.commands) quietly(below, io, complain)
}
