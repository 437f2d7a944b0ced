import { type Command, Option } from 'commander'
import type { CommandLine } from '../command-line.ts'
import type { Io } from '../io.ts'
import type { CommandIndex } from '../manifest.ts'

type PlanContext = {
  readonly io: Io
  readonly index: Pick<CommandIndex, 'version'>
  readonly line: CommandLine
  exitCode: number
}

/** Adds the flags and actions of `diff` and `apply`. */
export const addPlanCommands = (
  context: PlanContext,
  find: (name: string) => Command,
  globalUrl: () => string | undefined,
): void => {
  const { io, index, line } = context
  find('diff')
    .argument('<file>', 'a plan, as --plan FILE of a command writes it')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print the plan as JSON')
    .addHelpText('after', '\nExit code 5 if a step no longer applies.')
    .action(async (file: string, options: { url?: string }) => {
      context.exitCode = await (
        await import('./apply.ts')
      ).showPlan(io, file, {
        json: line.json.on,
        url: options.url ?? globalUrl(),
        version: index.version,
      })
    })
  find('apply')
    .argument('<file>', 'a plan, as --plan FILE of a command writes it')
    .addOption(
      new Option('--confirm <verb>', 'confirms steps that need this verb; may be repeated').argParser(
        (value: string, before?: string[]) => [...(before ?? []), value],
      ),
    )
    .option('--reason <text>', "the reason, shown to the person who approves an AI agent's call")
    .option('--retry <times>', 'retry when the service is unavailable or rate limited')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print the answers as JSON')
    .addHelpText(
      'after',
      '\nEach step does exactly what the plan says; otherwise it does nothing, shows what has changed, ' +
        'and exits with 5. Applied steps are noted in the file and skipped, so it is safe to repeat.',
    )
    .action(
      async (
        file: string,
        options: { confirm?: string[]; reason?: string; retry?: string; url?: string },
      ) => {
        const [{ applyPlan }, { parseRetries }] = await Promise.all([
          import('./apply.ts'),
          import('../operation-command.ts'),
        ])
        context.exitCode = await applyPlan(io, file, {
          json: line.json.on,
          confirm: options.confirm ?? [],
          reason: options.reason,
          retries: parseRetries(options.retry),
          url: options.url ?? globalUrl(),
          version: index.version,
        })
      },
    )
}
