import { Argument, Command, Option } from 'commander'
import { copies } from './backup.ts'
import { channels } from './channels.ts'
import { demos } from './demo.ts'
import { keys } from './keys.ts'
import { reports } from './reports.ts'
import { sla } from './sla.ts'
import { staff, teams } from './staff.ts'
import type { Flags, Group, Verb } from './verb.ts'
import { workspaces } from './workspaces.ts'

/** Every command of `wcrm admin`, in the order in which help lists them. */
export const groups: readonly Group[] = [workspaces, staff, teams, channels, keys, sla, reports]
export const alone: readonly Verb[] = [...copies, ...demos]

export type Act = (verb: Verb, flags: Flags, argument: string) => Promise<void>

const lists = /<(list|ids)>/

/** A flag for several things may be given several times. */
const optionOf = ([flags, about]: readonly [string, string], required: boolean): Option => {
  const option = new Option(flags, about)
  if (lists.test(flags))
    option.argParser((value: string, before: string | undefined) =>
      before === undefined ? value : `${before},${value}`,
    )
  return required ? option.makeOptionMandatory() : option
}

const addVerb = (parent: Command, verb: Verb, act: Act): void => {
  const command = parent
    .command(verb.name)
    .summary(verb.summary)
    .description([`${verb.summary}.`, ...(verb.about ? [verb.about] : [])].join('\n\n'))
  if (verb.argument) command.addArgument(new Argument(...verb.argument))
  for (const option of verb.required ?? [])
    command.addOption(optionOf([option[0], `${option[1]} (required)`], true))
  for (const option of verb.options ?? []) command.addOption(optionOf(option, false))
  command.optionsGroup('Where:')
  if (verb.scoped) command.option('--workspace <id>', 'workspace (default: the only one)')
  command
    .option('--data <dir>', 'folder of the embedded database (also WCRM_DATA; default: .wcrm)')
    .option('--database-url <url>', 'PostgreSQL instead (also WCRM_DATABASE_URL)')
    .optionsGroup('Output:')
    .option('--json', 'print JSON')
  command.action(() => act(verb, command.opts<Flags>(), command.args[0] ?? ''))
}

/** How a command is called, in one line. */
export const usageOf = (group: string, verb: Verb): string =>
  [
    'wcrm admin',
    ...(group ? [group] : []),
    verb.name,
    ...(verb.argument ? [verb.argument[0]] : []),
    ...(verb.required ?? []).map(([flags]) => flags),
    ...(verb.options ?? []).map(([flags]) => `[${flags}]`),
  ].join(' ')

const everything = (): string =>
  [
    '',
    'All commands:',
    ...groups.flatMap((group) => group.verbs.map((verb) => `  ${usageOf(group.name, verb)}`)),
    ...alone.map((verb) => `  ${usageOf('', verb)}`),
    '',
    'All take --json, and --data DIR or --database-url URL; those inside a workspace take --workspace ID.',
    'They work while a server runs, but for restore and move. Exit codes: 0 done, 1 unexpected, 2 invalid, 3 not found, 5 a server is in the way.',
    '',
  ].join('\n')

/** The command tree of `wcrm admin`. */
export const program = (act: Act): Command => {
  const root = new Command('wcrm admin')
    .description(
      "Administer workspaces, staff, teams, channels, keys, service levels and reports, on the server's own machine.",
    )
    .usage('<group> <verb> [flags]')
    .helpCommand(false)
    .exitOverride()
    .addHelpText('after', everything())
  for (const group of groups) {
    const command = root
      .command(group.name)
      .summary(group.summary)
      .description(`${group.summary}.`)
      .usage('<verb> [flags]')
      .helpCommand(false)
    for (const verb of group.verbs) addVerb(command, verb, act)
  }
  for (const verb of alone) addVerb(root, verb, act)
  return root
}
