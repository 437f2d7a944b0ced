import { Command } from 'commander'
import { runCommandTree } from './command-tree.ts'
import { usageError } from './error.ts'
import type { Io } from './io.ts'
import { type CommandSpec, commandName, readOperationCommands } from './manifest.ts'
import { formatTsv } from './text.ts'

/** Finds an operation by its name. Throws a usage error that tells of others. */
export const requireOperation = async (name: string): Promise<CommandSpec> => {
  const spec = readOperationCommands().find(({ operation }) => operation === name)
  if (spec) return spec
  const { suggestOperations } = await import('./find-commands.ts')
  const near = suggestOperations(name)
  throw Object.assign(usageError(`There is no operation ${JSON.stringify(name)}.`), {
    hint: near.length > 0 ? `Did you mean: ${near.join(', ')}?` : 'List them: wcrm ops',
  })
}

const printOperations = (io: Io, json: boolean): void => {
  const rows = readOperationCommands().map((spec) => ({
    operation: spec.operation,
    command: commandName(spec),
    summary: spec.summary,
  }))
  io.stdout.write(
    json ? `${JSON.stringify({ data: rows })}\n` : formatTsv(rows, ['operation', 'command', 'summary']),
  )
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm ops')
    .description(
      'Run an operation by its name, as its command does: "wcrm ops crm_get_contact 42" is "wcrm contacts get 42". ' +
        'Without a name it lists the operations.',
    )
    .usage('[operation] [arguments] [options]')
    .argument('[operation]', 'a name such as crm_get_contact')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nThe options of an operation: wcrm ops <operation> --help')
    .action((_operation: undefined, { json }: { json?: boolean }) => printOperations(io, json === true))

/** `wcrm ops NAME`: runs an operation by its name. Returns the exit code. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  const at = argv.findIndex((word) => !word.startsWith('-'))
  if (at === -1) return await runCommandTree(createCommand(io), argv.length > 0 ? argv : ['--'], io)
  let spec: CommandSpec
  try {
    spec = await requireOperation(argv[at]!)
  } catch (error) {
    const { reportError } = await import('./report-error.ts')
    return reportError(io, error, { json: argv.includes('--json') })
  }
  const { runProgram } = await import('./program.ts')
  return runProgram([...commandName(spec).split(' '), ...argv.slice(0, at), ...argv.slice(at + 1)], io)
}
