import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { exitCodes, groups, local } from '../cli/groups.ts'
import { termOf } from '../cli/help.ts'
import { type CommandSpec, commandName, type Field, type Manifest } from '../cli/manifest.ts'

// Writes man/: one page for the program and one for each group, from cli/manifest.json.

/** Text as roff shows it literally; a dash that is typed stays a dash. */
export const roff = (text: string): string =>
  text
    .replaceAll('`', '')
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .split('\n')
    .map((line) => (/^[.']/.test(line) ? `\\&${line}` : line))
    .join('\n')

export const bold = (text: string): string => `\\fB${roff(text)}\\fR`
export const italic = (text: string): string => `\\fI${roff(text)}\\fR`
export const item = (term: string, text: string): string => `.TP\n${term}\n${text}`

const header = (name: string, version: string): string =>
  `.\\" Made by scripts/man.ts from cli/manifest.json.\n.TH ${roff(name.toUpperCase())} 1 "" "wcrm ${version}" "wcrm manual"`

const fieldItem = (field: Field): string => {
  const boolean = field.type === 'boolean'
  const term = `${bold(boolean ? field.flag.replace('--', '--[no-]') : field.flag)}${boolean ? '' : ` ${italic(termOf(field))}`}`
  const more = [
    field.required ? 'Required.' : '',
    field.enum ? `One of: ${field.enum.join(', ')}.` : '',
    field.default === undefined ? '' : `Default: ${JSON.stringify(field.default)}.`,
  ]
  return item(term, roff([field.about, ...more].filter((s) => s !== '').join(' ') || 'See the example.'))
}

const needs = (spec: CommandSpec): string =>
  [
    `Scope: ${spec.scope}.`,
    `Operation: ${spec.operation}.`,
    spec.writes ? 'Takes --dry-run and --idempotency-key.' : '',
    spec.confirm ? `Wants --confirm ${spec.confirm}.` : '',
    spec.output.paged && spec.verb !== 'export' ? 'Takes --all.' : '',
    spec.beta ? 'Beta: may change.' : '',
  ]
    .filter((s) => s !== '')
    .join(' ')

const commandSection = (spec: CommandSpec): string =>
  [
    `.SS ${bold(`wcrm ${commandName(spec)}`)}${spec.args.map((name) => ` ${italic(name)}`).join('')}${spec.word ? ` [${italic(spec.word.name)}]` : ''}`,
    `${roff(spec.summary)}.`,
    ...(spec.about ? ['.PP', roff(spec.about)] : []),
    ...(spec.word ? [item(italic(spec.word.name), roff(spec.word.about))] : []),
    ...(spec.own ?? []).map((f) =>
      item(`${bold(f.flag)}${f.value ? ` ${italic(f.value)}` : ''}`, roff(f.about)),
    ),
    ...spec.fields.map((f) =>
      spec.args.includes(f.name) ? item(italic(f.name), roff(f.about)) : fieldItem(f),
    ),
    '.PP',
    roff(needs(spec)),
    ...(spec.output.list && spec.verb !== 'export'
      ? ['.PP', roff(`Columns when piped: ${spec.output.columns.join(', ')}.`)]
      : []),
    ...spec.examples.flatMap((e) => [
      '.PP',
      `${roff(e.title)}:`,
      '.PP',
      '.nf',
      `.RS 4\n${roff(e.command)}\n.RE`,
      '.fi',
    ]),
  ].join('\n')

const groupPage = (manifest: Manifest, name: string, summary: string): string =>
  `${[
    header(`wcrm-${name}`, manifest.version),
    `.SH NAME\nwcrm\\-${roff(name)} \\- ${roff(summary)}`,
    '.SH COMMANDS',
    ...manifest.commands.filter((c) => c.group === name).map(commandSection),
    '.SH SEE ALSO',
    `${bold('wcrm')}(1), for flags that all commands take, how values are given, and exit codes.`,
  ].join('\n')}\n`

const values = `Fields of the path are words in their places; every other field is a flag. Objects are JSON, ${bold('@file')} or ${bold('-')} for standard input. \
Lists are words parted by commas, repeated flags, a JSON array, ${bold('@file')} or ${bold('-')} with one item a line; a word that starts with @ or holds a comma wants the JSON array. \
A flag that is true or false is ${bold('--flag')} or ${bold('--no-flag')}. The word ${bold('null')} clears a field that may be empty.`

const output = `On a terminal, answers are drawn as tables and records. Into a pipe, lists are tab\\-separated lines without a header and records are ${italic('key: value')} lines, \
control characters shown as codes. ${bold('--json')} prints the answer as the server gave it; ${bold('--json=a,b')} picks fields (of a list: of its rows), ${bold('--json=?')} lists them. \
On any failure standard output is empty and the problem is on standard error, as JSON with ${bold('--json')}. With ${bold('--json')}, or without a terminal, nothing is ever asked.`

const mainPage = (manifest: Manifest): string =>
  `${[
    header('wcrm', manifest.version),
    '.SH NAME',
    'wcrm \\- contacts, tags, groups and custom fields of a workspace',
    '.SH SYNOPSIS',
    `${bold('wcrm')} ${italic('group')} ${italic('verb')} [${italic('arguments')}] [${italic('flags')}]`,
    '.SH COMMANDS',
    ...groups.flatMap(({ heading, commands }) => [
      `.SS ${roff(heading)}`,
      ...Object.entries(commands)
        .filter(([name]) => manifest.commands.some((c) => c.group === name))
        .map(([name, about]) => item(bold(name), `${roff(about)}.`)),
    ]),
    '.SS This machine',
    ...Object.entries(local).map(([name, about]) => item(bold(name), `${roff(about)}.`)),
    '.SH VALUES',
    values,
    '.SH OUTPUT',
    output,
    '.SH FLAGS OF ALL COMMANDS',
    item(
      `${bold('--url')} ${italic('url')}`,
      'Base URL of the server. For a command with a field of that name, say it before the group.',
    ),
    item(bold('--json'), 'Print JSON.'),
    item(
      `${bold('--input')} ${italic('json')}`,
      roff('The whole input as a JSON object, @file or -; flags win over it.'),
    ),
    item(bold('--dry-run'), 'On changes: every check runs, nothing changes.'),
    item(
      `${bold('--idempotency-key')} ${italic('key')}`,
      'On changes: the same key never runs twice. A new one is made when none is given.',
    ),
    item(
      `${bold('--confirm')} ${italic('verb')}`,
      'On changes that cannot be undone or that customers see: go on without being asked.',
    ),
    item(bold('--all'), 'On lists: follow the cursors to the end.'),
    '.SH ENVIRONMENT',
    item(bold('WCRM_API_KEY'), `The API key; wins over the one that ${bold('wcrm login')} kept.`),
    item(bold('WCRM_URL'), 'Base URL of the server.'),
    item(bold('WCRM_API_VERSION'), 'API version to ask for, instead of the one that the key is pinned to.'),
    item(bold('WCRM_KEYCHAIN'), `${bold('off')}: keep keys in the file, not in the keychain.`),
    item(bold('NO_COLOR'), 'Set to anything: no colour.'),
    '.SH FILES',
    item(
      roff('$XDG_CONFIG_HOME/wcrm/credentials.json'),
      'Where logged in to, and the keys where there is no keychain. Only its owner can read it.',
    ),
    '.SH EXIT STATUS',
    ...exitCodes.map(([code, about]) =>
      item(bold(String(code)), roff(`${about[0]!.toUpperCase()}${about.slice(1)}.`)),
    ),
    '.SH SEE ALSO',
    groups
      .flatMap(({ commands }) => Object.keys(commands))
      .filter((name) => manifest.commands.some((c) => c.group === name))
      .map((name) => `${bold(`wcrm-${name}`)}(1)`)
      .join(',\n'),
  ].join('\n')}\n`

/** Every page by file name, as it should be committed. */
export const manPages = (): Map<string, string> => {
  const manifest = JSON.parse(
    readFileSync(new URL('../cli/manifest.json', import.meta.url), 'utf8'),
  ) as Manifest
  const pages = new Map([['wcrm.1', mainPage(manifest)]])
  for (const { commands } of groups) {
    for (const [name, about] of Object.entries(commands))
      if (manifest.commands.some((c) => c.group === name))
        pages.set(`wcrm-${name}.1`, groupPage(manifest, name, about))
  }
  return pages
}

if (import.meta.main) {
  mkdirSync(new URL('../man/', import.meta.url), { recursive: true })
  for (const [name, text] of manPages()) writeFileSync(new URL(`../man/${name}`, import.meta.url), text)
}
