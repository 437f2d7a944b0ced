import { printResult } from './result.ts'
import type { Io } from './io.ts'
import { createSandboxClient } from './sandbox/client.ts'
import { runCommandTree } from './command-tree.ts'
import { Argument, Command, Option } from 'commander'
import { type SandboxFlags, formatSandboxUsage, type SandboxVerb, sandboxVerbs } from './sandbox/verbs.ts'

/** `wcrm sandbox`: controls the sandbox of a server, or runs a standalone one. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> =>
  runCommandTree(
    createSandboxProgram(async (verb, flags, words) => {
      const url = typeof flags['url'] === 'string' ? flags['url'] : undefined
      const result = await verb.run({ io, flags, words, call: createSandboxClient(io, url) })
      if (result) await printResult(io, result, { columns: verb.columns, json: flags['json'] === true })
    }),
    argv,
    io,
  )

type RunSandboxVerb = (verb: SandboxVerb, flags: SandboxFlags, words: readonly string[]) => Promise<void>

const addVerb = (parent: Command, name: string, verb: SandboxVerb, run: RunSandboxVerb): void => {
  const command = parent
    .command(name)
    .summary(verb.summary)
    .description([`${verb.summary}.`, ...(verb.about ? [verb.about] : [])].join('\n\n'))
  for (const [term, about] of verb.positionals ?? []) command.addArgument(new Argument(term, about))
  for (const [flags, about] of verb.required ?? [])
    command.addOption(new Option(flags, `${about} (required)`).makeOptionMandatory())
  for (const [flags, about] of verb.options ?? []) command.addOption(new Option(flags, about))
  command.optionsGroup('Call options:')
  if (!verb.alone) command.option('--url <url>', 'base URL of the server (also WCRM_URL)')
  command.option('--json', 'print JSON')
  command.action(() => run(verb, command.opts<SandboxFlags>(), command.args))
}

const renderCommandList = (): string =>
  [
    '',
    'All commands:',
    ...sandboxVerbs.map((verb) => `  ${formatSandboxUsage(verb)}`),
    '',
    'All commands take --json, use the API key of the other commands (WCRM_API_KEY or wcrm login), ' +
      "which must be an owner's or admin's, and affect only its workspace. A server uses the sandbox " +
      'with the embedded database or with WCRM_PROVIDER=sandbox.',
  ].join('\n')

const GROUP_SUMMARIES: Readonly<Record<string, string>> = {
  clock: 'Business time of the workspace',
  fault: 'Simulated failures of the provider',
}

/** Creates the command tree of `wcrm sandbox`; `run` runs the selected command. */
const createSandboxProgram = (run: RunSandboxVerb): Command => {
  const root = new Command('wcrm sandbox')
    .description(
      'Control the sandbox, which simulates the messaging provider: customers, template review, the ' +
        'clock and ' +
        'failures.',
    )
    .usage('<verb> [arguments] [options]')
    .helpCommand(false)
    .exitOverride()
    .addHelpText('after', renderCommandList())
  const parents = new Map<string, Command>()
  for (const verb of sandboxVerbs) {
    const [first, second] = verb.name.split(' ') as [string, string | undefined]
    if (second === undefined) addVerb(root, first, verb, run)
    else {
      const parent =
        parents.get(first) ??
        root
          .command(first)
          .summary(GROUP_SUMMARIES[first]!)
          .description(`${GROUP_SUMMARIES[first]}.`)
          .usage('<verb> [options]')
          .helpCommand(false)
      parents.set(first, parent)
      addVerb(parent, second, verb, run)
    }
  }
  return root
}
