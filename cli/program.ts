import { Argument, Command, CommanderError, Option } from 'commander'
import { type Fault, usage } from './fault.ts'
import { exitCodes, groups, local } from './groups.ts'
import { detailsOf, termOf } from './help.ts'
import type { Io } from './io.ts'
import { type Line, readLine, startOf, wordsFor } from './line.ts'
import { type CommandSpec, commandName, type Field, type Manifest, readManifest } from './manifest.ts'
import type { Typed } from './operate.ts'

type Host = {
  readonly io: Io
  readonly manifest: Manifest
  readonly line: Line
  exit: number
  complaint: string
}

const collect = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value]

const plain = (text: string): string => text.replaceAll('`', '')

const describe = (field: Field): string =>
  [
    plain(field.about),
    field.enum ? `One of: ${field.enum.join(', ')}.` : '',
    field.required ? '(required)' : '',
    field.default === undefined ? '' : `(default: ${JSON.stringify(field.default)})`,
  ]
    .filter((part) => part !== '')
    .join(' ')

const addField = (command: Command, field: Field): void => {
  if (field.type === 'boolean') {
    command.addOption(new Option(field.flag, describe(field)))
    command.addOption(new Option(field.flag.replace('--', '--no-')).hideHelp())
    if (field.nullable) command.addOption(new Option(field.flag.replace('--', '--null-')).hideHelp())
  } else {
    command.addOption(new Option(`${field.flag} <${termOf(field)}>`, describe(field)).argParser(collect))
  }
}

const addCommonOptions = (command: Command, spec: CommandSpec): void => {
  if (spec.own) command.optionsGroup(spec.group === 'events' ? 'Follow options:' : 'File options:')
  for (const { flag, value, repeats, about } of spec.own ?? []) {
    const option = new Option(value ? `${flag} <${value}>` : flag, about)
    command.addOption(repeats ? option.argParser(collect) : option)
  }
  command.optionsGroup('Call options:')
  if (spec.fields.length > 0)
    command.option('--input <json>', 'the whole input as a JSON object, @file or -; flags win over it')
  if (spec.output.paged && spec.verb !== 'export') command.option('--all', 'follow the cursors to the end')
  if (spec.writes) {
    command
      .addOption(new Option('--dry-run', 'rehearse: every check runs, nothing changes'))
      .addOption(new Option('--no-dry-run').hideHelp())
    command.option(
      '--idempotency-key <key>',
      'repeat a call safely: the same key never runs twice (default: a new one)',
    )
  }
  if (spec.confirm) command.option('--confirm <verb>', `say "${spec.confirm}" to go on without being asked`)
  command.option('--json', 'print the whole answer; --json=a,b picks fields, --json=? lists them')
  if (!spec.fields.some((f) => f.flag === '--url'))
    command.option('--url <url>', 'base URL of the server (also WCRM_URL)')
  if (!spec.fields.some((f) => f.flag === '--server'))
    command.addOption(new Option('--server <url>').hideHelp())
}

/** A flag's texts under its field's name, booleans among them. */
const flagTexts = (command: Command, spec: CommandSpec): Map<string, string[]> => {
  const texts = new Map<string, string[]>()
  for (const field of spec.fields) {
    const option = command.options.find((o) => o.long === field.flag)
    const value: unknown = option && command.getOptionValue(option.attributeName())
    const none: unknown =
      field.nullable &&
      command.getOptionValue(new Option(field.flag.replace('--', '--null-')).attributeName())
    if (none === true) texts.set(field.name, ['null'])
    else if (Array.isArray(value)) texts.set(field.name, value as string[])
    else if (typeof value === 'boolean') texts.set(field.name, [String(value)])
  }
  return texts
}

/** Texts of the flags that only the command line knows, by name; of one that takes no value, none. */
const ownTexts = (command: Command, spec: CommandSpec): Map<string, string[]> => {
  const values = command.opts<Record<string, unknown>>()
  const given = (spec.own ?? [])
    .map(({ flag }) => [flag.slice(2), values[new Option(flag).attributeName()]] as const)
    .filter(([, value]) => value !== undefined)
  return new Map(given.map(([name, value]) => [name, value === true ? [] : ([value].flat() as string[])]))
}

const typedFrom = (program: Command, command: Command, spec: CommandSpec): Typed => {
  const own = command.opts<Record<string, unknown>>()
  const text = (name: string): string | undefined => (typeof own[name] === 'string' ? own[name] : undefined)
  const above = program.opts<{ url?: string; server?: string }>()
  const urlIsField = spec.fields.some((f) => f.flag === '--url')
  return {
    args: command.args,
    flags: flagTexts(command, spec),
    own: ownTexts(command, spec),
    input: text('input'),
    idempotencyKey: text('idempotencyKey'),
    confirm: text('confirm'),
    dryRun: own['dryRun'] === true,
    all: own['all'] === true,
    url: text('server') ?? (urlIsField ? undefined : text('url')) ?? above.server ?? above.url,
  }
}

const fillCommand = (host: Host, program: Command, command: Command, spec: CommandSpec): void => {
  // With --input the path's fields may be in there.
  const wanted = !host.line.words.some((word) => word === '--input' || word.startsWith('--input='))
  for (const name of spec.args) {
    command.addArgument(
      new Argument(
        wanted ? `<${name}>` : `[${name}]`,
        plain(spec.fields.find((f) => f.name === name)?.about ?? ''),
      ),
    )
  }
  if (spec.word) command.addArgument(new Argument(`[${spec.word.name}]`, spec.word.about))
  const flags = spec.fields.filter((f) => !spec.args.includes(f.name))
  if (flags.length > 0) command.optionsGroup('Fields:')
  for (const field of flags) addField(command, field)
  addCommonOptions(command, spec)
  command.description([plain(spec.summary), plain(spec.about ?? '')].filter((s) => s !== '').join('.\n\n'))
  command.addHelpText('after', detailsOf(spec))
  command.action(async () => {
    const { operate } = await import('./operate.ts')
    host.exit = await operate(
      host.io,
      spec,
      typedFrom(program, command, spec),
      host.line.json,
      host.manifest.version,
    )
  })
}

/**
 * Only the group that was asked for gets its verbs, and only the verb that was asked for its flags: help
 * starts fast.
 */
const addGroup = (host: Host, program: Command, name: string, summary: string): void => {
  const specs = host.manifest.commands.filter((c) => c.group === name)
  if (specs.length === 0) return
  const group = program.command(name).summary(summary).description(`${summary}.`).helpCommand(false)
  if (!host.line.words.includes(name)) return
  const alone = specs.find((c) => c.verb === '')
  if (alone) return fillCommand(host, program, group, alone)
  group.usage('<verb> [arguments] [flags]')
  for (const spec of specs) {
    const command = group.command(spec.verb).summary(plain(spec.summary))
    if (spec === host.line.spec) fillCommand(host, program, command, spec)
  }
}

const addLocal = (host: Host, program: Command): void => {
  program.commandsGroup('This machine:')
  for (const [name, summary] of Object.entries(local))
    program.command(name).summary(summary).description(summary)
  const url = '--url <url>'
  const find = (name: string): Command => program.commands.find((c) => c.name() === name)!
  const above = (): string | undefined => program.opts<{ url?: string }>().url
  find('login')
    .option(url, 'base URL of the server')
    .option('--json', 'print the answer as JSON')
    .addHelpText(
      'after',
      '\nThe key is read from standard input: piped in, or asked for without being shown.\nIt is kept in the keychain, or where there is none in a file that only you can read.',
    )
    .action(async (options: { url?: string }) => {
      host.exit = await (
        await import('./login.ts')
      ).login(host.io, options.url ?? above(), host.line.json.on, host.manifest.version)
    })
  find('logout')
    .option(url, 'base URL of the server')
    .action(async (options: { url?: string }) => {
      host.exit = await (await import('./login.ts')).logout(host.io, options.url ?? above())
    })
  find('completion')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nFor example: wcrm completion bash > ~/.local/share/bash-completion/completions/wcrm',
    )
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      host.io.stdout.write((await import('./completion.ts')).completion(host.manifest, shell))
    })
}

const footer = `
Credentials: WCRM_API_KEY and WCRM_URL, else what "wcrm login" kept.
Exit codes: ${exitCodes.map(([code, about]) => `${code} ${about}`).join('; ')}.
More: wcrm <group> --help, wcrm <group> <verb> --help, man wcrm.`

const build = (host: Host): Command => {
  const program = new Command('wcrm')
    .description('Contacts, tags, groups and custom fields of a workspace, on the command line.')
    .usage('<group> <verb> [arguments] [flags]')
    .version(host.manifest.version, '--version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .enablePositionalOptions()
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .addOption(new Option('--server <url>').hideHelp())
    .option('--json', 'print JSON: the whole answer, or the problem')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => host.io.stdout.write(text),
      writeErr: (text) => {
        host.complaint += text
      },
      getOutHelpWidth: () => host.io.stdout.columns || 100,
      getErrHelpWidth: () => host.io.stderr.columns || 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({
      optionTerm: (option) =>
        option.long && host.line.spec?.fields.some((f) => f.type === 'boolean' && f.flag === option.long)
          ? option.long.replace('--', '--[no-]')
          : option.flags,
    })
    .addHelpText('after', footer)
  for (const { heading, commands } of groups) {
    program.commandsGroup(`${heading}:`)
    for (const [name, summary] of Object.entries(commands)) addGroup(host, program, name, summary)
  }
  addLocal(host, program)
  return program
}

/** Commander's complaint as a problem of ours. */
const complaintFault = (host: Host, error: CommanderError): Fault => {
  const text =
    error.code === 'commander.help'
      ? 'A verb is missing.'
      : host.complaint
          .replace(/^error: /, '')
          .trim()
          .replaceAll('\n', ' ')
  const typed = host.line.words[startOf(host.line.words)] ?? ''
  const known = host.line.spec
    ? commandName(host.line.spec)
    : host.manifest.commands.some((c) => c.group === typed) || typed in local
      ? typed
      : ''
  return Object.assign(usage(text || error.message), { hint: `See: wcrm ${known ? `${known} ` : ''}--help` })
}

/**
 * Runs a command of the manifest, or one of this machine's that needs no server; gives the exit code and
 * never throws.
 */
export const runProgram = async (argv: readonly string[], io: Io): Promise<number> => {
  const manifest = readManifest()
  const line = readLine(argv, manifest.commands)
  const host: Host = { io, manifest, line, exit: 0, complaint: '' }
  try {
    const words = wordsFor(line)
    await build(host).parseAsync(
      words[startOf(words)] === 'help'
        ? [...words.filter((w) => w !== 'help'), '--help']
        : words.length > 0
          ? words
          : ['--help'],
      { from: 'user' },
    )
    return host.exit
  } catch (error) {
    const complaint = error instanceof CommanderError ? error : undefined
    if (complaint?.exitCode === 0) return 0
    if (complaint?.code === 'commander.help' && !line.json.on) {
      io.stderr.write(host.complaint)
      return 2
    }
    const { report } = await import('./report.ts')
    return report(io, complaint ? complaintFault(host, complaint) : error, line.spec, line.json.on)
  }
}
