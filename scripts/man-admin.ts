import { writeFileSync } from 'node:fs'
import { alone, groups, usageOf } from '../cli/admin/program.ts'
import type { Verb } from '../cli/admin/verb.ts'
import { readManifest } from '../cli/manifest.ts'
import { bold, italic, item, roff } from './man.ts'

// Writes man/wcrm-admin.1 from the commands of `wcrm admin`.

const FILE = new URL('../man/wcrm-admin.1', import.meta.url)

const sentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`

const flagItem = ([flags, about]: readonly [string, string], required: boolean): string => {
  const [flag, term] = flags.split(' ')
  return item(
    `${bold(flag!)}${term ? ` ${italic(term.replaceAll(/[<>]/g, ''))}` : ''}`,
    roff(sentence(about) + (required ? ' Required.' : '')),
  )
}

const verbSection = (group: string, verb: Verb): string =>
  [
    `.SS ${bold(['wcrm admin', group, verb.name].filter((s) => s !== '').join(' '))}${verb.argument ? ` ${italic(verb.argument[0].replaceAll(/[<>]/g, ''))}` : ''}`,
    `${roff(verb.summary)}.`,
    ...(verb.about ? ['.PP', roff(verb.about)] : []),
    ...(verb.required ?? []).map((flag) => flagItem(flag, true)),
    ...(verb.options ?? []).map((flag) => flagItem(flag, false)),
    ...(verb.scoped ? ['.PP', `Takes ${bold('--workspace')}.`] : []),
    ...(verb.columns ? ['.PP', roff(`Columns when piped: ${verb.columns.join(', ')}.`)] : []),
  ].join('\n')

const common: readonly (readonly [string, string])[] = [
  ['--workspace <id>', 'the workspace to work in; the only one when there is one'],
  ['--data <dir>', 'folder of the embedded database, also WCRM_DATA; .wcrm when nothing is said'],
  ['--database-url <url>', 'PostgreSQL instead, also WCRM_DATABASE_URL'],
  ['--json', 'print the record, or {"data": […]} for a list, as JSON; problems too'],
]

/** The page as it should be committed. */
export const manPage = (): string =>
  `${[
    '.\\" Made by scripts/man-admin.ts from cli/admin/.',
    `.TH WCRM\\-ADMIN 1 "" "wcrm ${readManifest().version}" "wcrm manual"`,
    '.SH NAME',
    "wcrm\\-admin \\- administer workspaces, staff, teams, channels, keys and service levels on the server's own machine",
    '.SH SYNOPSIS',
    '.nf',
    ...groups.flatMap((group) => group.verbs.map((verb) => roff(usageOf(group.name, verb)))),
    ...alone.map((verb) => roff(usageOf('', verb))),
    '.fi',
    '.SH DESCRIPTION',
    `No API key can do these things. The commands open the database themselves, also while a server runs on it; ${bold('restore')} and ${bold('move')} want it stopped.`,
    '.SH COMMANDS',
    ...groups.flatMap((group) => group.verbs.map((verb) => verbSection(group.name, verb))),
    ...alone.map((verb) => verbSection('', verb)),
    '.SH FLAGS OF ALL COMMANDS',
    ...common.map((flag) => flagItem(flag, false)),
    '.SH EXIT STATUS',
    item(bold('0'), 'Done.'),
    item(bold('1'), 'Unexpected error.'),
    item(bold('2'), 'Invalid input or usage.'),
    item(bold('3'), 'Not found.'),
    item(bold('5'), 'A server is running where none may.'),
    '.SH SEE ALSO',
    `${bold('wcrm')}(1)`,
  ].join('\n')}\n`

if (import.meta.main) writeFileSync(FILE, manPage())
