import { type Command, CommanderError } from 'commander'
import { usageError } from './error.ts'
import { collectHelp, writeErrorHelp, writeHelp } from './help-layout.ts'
import type { Io } from './io.ts'
import { reportError } from './report-error.ts'

/** Returns the name of the command that the first words name: that of its deepest verb. */
const nameCommand = (root: Command, argv: readonly string[]): string => {
  let command = root
  let name = root.name()
  for (const word of argv) {
    const next = command.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (!next) break
    command = next
    name += ` ${next.name()}`
  }
  return name
}

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
  const texts = collectHelp(root)
  try {
    await root.parseAsync(argv.length > 0 ? argv : ['--help'], { from: 'user' })
    return 0
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      const words = [...root.name().split(' ').slice(1), ...argv]
      return await reportError(io, convertError(error), { json, words })
    }
    if (error.exitCode === 0) {
      await writeHelp(io, texts)
      return 0
    }
    if (error.code === 'commander.help' && !json) {
      await writeErrorHelp(io, texts)
      return 2
    }
    const detail =
      error.code === 'commander.help'
        ? 'The verb is missing.'
        : texts.error
            .replace(/^error: /, '')
            .trim()
            .replaceAll('\n', ' ')
    return await reportError(
      io,
      Object.assign(usageError(detail), { hint: `See: ${nameCommand(root, argv)} --help` }),
      { json },
    )
  }
}

/** Runs a command without verbs, whose action passes its exit code to `exit`. Returns the exit code. */
export const runOneCommand = async (
  create: (io: Io, exit: (code: number) => void) => Command,
  argv: readonly string[],
  io: Io,
): Promise<number> => {
  let exitCode = 0
  const command = create(io, (code) => {
    exitCode = code
  })
  const failure = await runCommandTree(command, argv.length > 0 ? argv : ['--'], io)
  return failure === 0 ? exitCode : failure
}
