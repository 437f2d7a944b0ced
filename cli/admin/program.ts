import { Argument, Command, Option } from 'commander'
import { aliasesOf, describeAliases } from '../aliases.ts'
import { accountsGroup } from './accounts.ts'
import { backupVerbs } from './backup.ts'
import { channelsGroup } from './channels.ts'
import { demoVerbs } from './demo.ts'
import { doctorVerb } from './doctor.ts'
import { initVerb } from './init.ts'
import { keysGroup } from './keys.ts'
import { loginCodeVerb } from './login-code.ts'
import { mediaGroup } from './media.ts'
import { migrateVerb } from './migrate.ts'
import { reportsGroup } from './reports.ts'
import { retentionVerb } from './retention.ts'
import { secretGroup } from './secret.ts'
import { slaGroup } from './sla.ts'
import { staffGroup, teamsGroup } from './staff.ts'
import type { AdminFlags, AdminGroup, AdminVerb } from './verb.ts'
import { workspacesGroup } from './workspaces.ts'

/** All commands of `wcrm admin`, in the order of help. */
export const adminGroups: readonly AdminGroup[] = [
  workspacesGroup,
  staffGroup,
  teamsGroup,
  channelsGroup,
  accountsGroup,
  keysGroup,
  secretGroup,
  slaGroup,
  reportsGroup,
  mediaGroup,
]
export const ungroupedAdminVerbs: readonly AdminVerb[] = [
  initVerb,
  loginCodeVerb,
  ...backupVerbs,
  ...demoVerbs,
  migrateVerb,
  doctorVerb,
  retentionVerb,
]

export type RunAdminVerb = (verb: AdminVerb, flags: AdminFlags, argument: string) => Promise<void>

const LIST_VALUE = /<(list|ids)>/

/** Creates an option. One that takes a list may be repeated. */
const createOption = ([flags, about]: readonly [string, string], required: boolean): Option => {
  const option = new Option(flags, about)
  if (LIST_VALUE.test(flags))
    option.argParser((value: string, previous: string | undefined) =>
      previous === undefined ? value : `${previous},${value}`,
    )
  return required ? option.makeOptionMandatory() : option
}

const namesOf = (verbs: readonly AdminVerb[]): string[] => verbs.map(({ name }) => name)

const addVerb = (parent: Command, verb: AdminVerb, verbs: readonly AdminVerb[], run: RunAdminVerb): void => {
  // `backup verify` is a command below `backup`, which comes before it.
  const [name, below] = verb.name.split(' ') as [string, string?]
  const owner = below === undefined ? parent : parent.commands.find((command) => command.name() === name)!
  const command = owner
    .command(below ?? name)
    .aliases(below === undefined ? aliasesOf(name, namesOf(verbs)) : [])
    .summary(verb.summary)
    .description([`${verb.summary}.`, ...(verb.about ? [verb.about] : [])].join('\n\n'))
  if (verb.argument) command.addArgument(new Argument(...verb.argument))
  for (const option of verb.required ?? [])
    command.addOption(createOption([option[0], `${option[1]} (required)`], true))
  for (const option of verb.options ?? []) command.addOption(createOption(option, false))
  command.optionsGroup('Database options:')
  if (verb.scoped) command.option('--workspace <id>', 'workspace (default: the only one)')
  if (verb.access !== 'none')
    command
      .option('--data <dir>', 'folder of the embedded database (also WCRM_DATA; default: .wcrm)')
      .option('--database-url <url>', 'PostgreSQL database (also WCRM_DATABASE_URL)')
  command.optionsGroup('Output options:').option('--json', 'print JSON')
  command.action(() => run(verb, command.opts<AdminFlags>(), command.args[0] ?? ''))
}

/** Formats the usage of a command in one line. */
export const formatAdminUsage = (group: string, verb: AdminVerb): string =>
  [
    'wcrm admin',
    ...(group ? [group] : []),
    verb.name,
    ...(verb.argument ? [verb.argument[0]] : []),
    ...(verb.required ?? []).map(([flags]) => flags),
    ...(verb.options ?? []).map(([flags]) => `[${flags}]`),
  ].join(' ')

const renderCommandList = (): string =>
  [
    '',
    'All commands:',
    ...adminGroups.flatMap((group) => group.verbs.map((verb) => `  ${formatAdminUsage(group.name, verb)}`)),
    ...ungroupedAdminVerbs.map((verb) => `  ${formatAdminUsage('', verb)}`),
    '',
    'All take --json, and --data DIR or --database-url URL; commands of a workspace take --workspace ID.',
    'All except restore and move of a database work while a server is running.',
    'Exit codes: 0 done, 1 unexpected or problems found, 2 invalid, 3 not found, 5 a server is running, or the',
    'schema of the database does not fit this version.',
  ].join('\n')

/** Creates the command tree of `wcrm admin`; `run` runs the selected command. */
export const createAdminProgram = (run: RunAdminVerb): Command => {
  const root = new Command('wcrm admin')
    .description(
      'Administer workspaces, staff, teams, channels, accounts at the provider, keys, the secret, service ' +
        "levels and reports, on the server's own machine.",
    )
    .usage('<group> <verb> [options]')
    .helpCommand(false)
    // So that the flags behind `backup verify` are not those of `backup`.
    .enablePositionalOptions()
    .exitOverride()
    .addHelpText('after', renderCommandList())
  for (const group of adminGroups) {
    const command = root
      .command(group.name)
      .summary(group.summary)
      .description(`${group.summary}.`)
      .usage('<verb> [options]')
      .helpCommand(false)
      .addHelpText('after', describeAliases(namesOf(group.verbs)))
    for (const verb of group.verbs) addVerb(command, verb, group.verbs, run)
  }
  for (const verb of ungroupedAdminVerbs) addVerb(root, verb, ungroupedAdminVerbs, run)
  return root
}
