import { Argument, Command, CommanderError, Option } from 'commander'
import { aliasesOf, describeAliases } from './aliases.ts'
import { type CliError, usageError } from './error.ts'
import { exitCodes, commandGroups, completionInstalls, localCommands } from './groups.ts'
import { describeField, renderHelpDetails, valuePlaceholder, stripBackticks } from './help.ts'
import { type CollectedHelp, collectHelp, LINE_OF_ITEM, writeErrorHelp, writeHelp } from './help-layout.ts'
import type { LocalFlags, ParsedCommand } from './parsed-command.ts'
import type { Io } from './io.ts'
import { type CommandLine, parseCommandLine, findGroupIndex, commanderWords } from './command-line.ts'
import { type CommandIndex, type CommandSpec, commandName, type Field, readCommandIndex } from './manifest.ts'

type ProgramContext = {
  readonly io: Io
  readonly index: CommandIndex
  readonly line: CommandLine
  exitCode: number
  texts: CollectedHelp
}

const appendValue = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value]

const addField = (command: Command, spec: CommandSpec, field: Field): void => {
  const about = describeField(spec, field).join(LINE_OF_ITEM)
  if (field.type === 'boolean') {
    command.addOption(new Option(field.flag, about))
    command.addOption(new Option(field.flag.replace('--', '--no-')).hideHelp())
    if (field.nullable) command.addOption(new Option(field.flag.replace('--', '--null-')).hideHelp())
  } else {
    command.addOption(new Option(`${field.flag} <${valuePlaceholder(field)}>`, about).argParser(appendValue))
    if (field.names?.flag)
      command.addOption(
        new Option(`${field.names.flag} <name>`, `as ${field.flag}, by name`).argParser(appendValue),
      )
  }
}

const addAnswerOptions = (command: Command, spec: CommandSpec): void => {
  command.option(
    '--jq <expression>',
    'print the result of a jq expression on the JSON response, or on each row with --ndjson',
  )
  if (!spec.fields.some((f) => f.flag === '--template' || f.names?.flag === '--template'))
    command.option(
      '--template <text>',
      'print this text for the record, or for each row: {field.path}, \\t, \\n',
    )
  command.option('--quiet', 'print only ids: of each row, or of the record created or changed')
}

const addCommonOptions = (command: Command, spec: CommandSpec): void => {
  if (spec.own) command.optionsGroup(spec.group === 'events' ? 'Follow options:' : 'File options:')
  for (const { flag, value, repeats, about } of spec.own ?? []) {
    const option = new Option(value ? `${flag} <${value}>` : flag, about)
    command.addOption(repeats ? option.argParser(appendValue) : option)
  }
  command.optionsGroup('Call options:')
  if (spec.fields.length > 0)
    command.option('--input <json>', 'the whole input as a JSON object, @file or -; flags override it')
  if (spec.output.paged && spec.verb !== 'export') command.option('--all', 'fetch all pages')
  if (spec.writes) {
    command
      .addOption(new Option('--dry-run', 'run every check, but change nothing'))
      .addOption(new Option('--no-dry-run').hideHelp())
    command.option('--plan <file>', 'write the plan of the change to a file, for wcrm diff and wcrm apply')
    command.option(
      '--idempotency-key <key>',
      'make retries safe: a call with the same key never runs twice (default: a new key)',
    )
  }
  command.option(
    '--retry <times>',
    'retry when the service is unavailable or rate limited, after Retry-After; --retry alone: 5 times',
  )
  if (spec.writes && !spec.fields.some((f) => f.flag === '--reason'))
    command.option('--reason <text>', "the reason, shown to the person who approves an AI agent's call")
  if (spec.confirm) command.option('--confirm <verb>', `"${spec.confirm}" confirms without a prompt`)
  if (spec.output.list && spec.verb !== 'export') {
    command.option('--ndjson', 'print one line of JSON for each row; with --all page by page')
    command.option('--csv', 'print the columns as CSV with a header; with --all page by page')
    command.option('--header', 'print the column names before tab-separated lines')
    command.option('--columns <names>', 'show these columns; a terminal shows those that fit')
    command.option('--wide', 'show all columns, whatever the width of the terminal')
  }
  if (spec.verb !== 'export') addAnswerOptions(command, spec)
  command.option('--utc', "show times in UTC instead of the workspace's time zone")
  command.option('--json', 'print the response as JSON; --json=a,b selects fields, --json=? lists them')
  if (!spec.fields.some((f) => f.flag === '--url'))
    command.option('--url <url>', 'base URL of the server (also WCRM_URL)')
  if (!spec.fields.some((f) => f.flag === '--server'))
    command.addOption(new Option('--server <url>').hideHelp())
}

const optionName = (flag: string): string => new Option(flag).attributeName()

/** Returns the values of the field flags, booleans included, by field name. */
const readFieldFlags = (command: Command, spec: CommandSpec): Map<string, string[]> => {
  const texts = new Map<string, string[]>()
  for (const field of spec.fields) {
    const option = command.options.find((o) => o.long === field.flag)
    const value: unknown = option && command.getOptionValue(option.attributeName())
    const isNull: unknown =
      field.nullable &&
      command.getOptionValue(new Option(field.flag.replace('--', '--null-')).attributeName())
    const named: unknown = field.names?.flag && command.getOptionValue(optionName(field.names.flag))
    if (isNull === true) texts.set(field.name, ['null'])
    else if (Array.isArray(value) || Array.isArray(named))
      texts.set(field.name, [value ?? [], named ?? []].flat() as string[])
    else if (typeof value === 'boolean') texts.set(field.name, [String(value)])
  }
  return texts
}

/** Returns the values of the flags that exist only on the command line; empty for a flag that takes none. */
const readCliFlags = (command: Command, spec: CommandSpec): Map<string, string[]> => {
  const values = command.opts<Record<string, unknown>>()
  const given = (spec.own ?? [])
    .map(({ flag }) => [flag.slice(2), values[new Option(flag).attributeName()]] as const)
    .filter(([, value]) => value !== undefined)
  return new Map(given.map(([name, value]) => [name, value === true ? [] : ([value].flat() as string[])]))
}

const toParsedCommand = (program: Command, command: Command, spec: CommandSpec): ParsedCommand => {
  const options = command.opts<Record<string, unknown>>()
  const text = (name: string): string | undefined => {
    const value = options[name]
    return typeof value === 'string' ? value : undefined
  }
  const globalOptions = program.opts<{ url?: string; server?: string }>()
  const urlIsField = spec.fields.some((f) => f.flag === '--url')
  return {
    args: command.args,
    flags: readFieldFlags(command, spec),
    cliFlags: readCliFlags(command, spec),
    input: text('input'),
    idempotencyKey: text('idempotencyKey'),
    plan: spec.writes ? text('plan') : undefined,
    confirm: text('confirm'),
    reason: spec.fields.some((f) => f.flag === '--reason') ? undefined : text('reason'),
    dryRun: options['dryRun'] === true,
    all: options['all'] === true,
    retries: text('retry'),
    formats: (['ndjson', 'csv', 'header'] as const).filter((name) => options[name] === true),
    jq: text('jq'),
    template: spec.fields.some((f) => f.flag === '--template') ? undefined : text('template'),
    quiet: options['quiet'] === true,
    view: { wide: options['wide'] === true, utc: options['utc'] === true, columns: text('columns') },
    url:
      text('server') ?? (urlIsField ? undefined : text('url')) ?? globalOptions.server ?? globalOptions.url,
  }
}

const configureCommand = (
  context: ProgramContext,
  { program, command }: { program: Command; command: Command },
  spec: CommandSpec,
): void => {
  // Path fields may be part of --input.
  const requireArguments = !context.line.words.some(
    (word) => word === '--input' || word.startsWith('--input='),
  )
  for (const name of spec.args) {
    const field = spec.fields.find((f) => f.name === name)
    command.addArgument(
      new Argument(
        requireArguments && field?.required ? `<${name}>` : `[${name}]`,
        stripBackticks(field?.about ?? ''),
      ),
    )
  }
  if (spec.word) command.addArgument(new Argument(`[${spec.word.name}]`, spec.word.about))
  const flags = spec.fields.filter((f) => !spec.args.includes(f.name))
  if (flags.length > 0) command.optionsGroup('Fields:')
  for (const field of flags) addField(command, spec, field)
  addCommonOptions(command, spec)
  command.description(
    [stripBackticks(spec.summary), stripBackticks(spec.about ?? '')].filter((s) => s !== '').join('.\n\n'),
  )
  command.addHelpText('after', renderHelpDetails(spec))
  command.action(async () => {
    const { runOperationCommand } = await import('./operation-command.ts')
    context.exitCode = await runOperationCommand(context.io, {
      command: spec,
      parsed: toParsedCommand(program, command, spec),
      json: context.line.json,
      version: context.index.version,
    })
  })
}

/**
 * Adds a group: with its verbs where it is on the command line, or with the verb that is there, which alone has flags.
 * Each command that is added takes time at every start.
 */
const addGroup = (
  context: ProgramContext,
  program: Command,
  [name, summary]: readonly [string, string],
): void => {
  const { index, line } = context
  const entries = index.entries.filter((entry) => entry.group === name)
  if (entries.length === 0) return
  const group = program.command(name).summary(summary).description(`${summary}.`).helpCommand(false)
  if (line.group !== name) return
  if (line.spec?.verb === '') return configureCommand(context, { program, command: group }, line.spec)
  const verbs = entries.map(({ verb }) => verb)
  group.usage('<verb> [arguments] [options]').addHelpText('after', describeAliases(verbs))
  for (const { verb, summary: about } of entries) {
    if (line.spec && line.spec.verb !== verb) continue
    const command = group.command(verb).aliases(aliasesOf(verb, verbs)).summary(stripBackticks(about))
    if (line.spec) configureCommand(context, { program, command }, line.spec)
  }
}

const addLocalCommands = (context: ProgramContext, program: Command): void => {
  program.commandsGroup('This machine:')
  for (const [name, summary] of Object.entries(localCommands))
    program.command(name).summary(summary).description(`${summary}.`)
  const url = '--url <url>'
  const find = (name: string): Command => program.commands.find((c) => c.name() === name)!
  const globalUrl = (): string | undefined => program.opts<{ url?: string }>().url
  const localFlags = ({ url = globalUrl() }: { url?: string }): LocalFlags => ({
    url,
    json: context.line.json.on,
    version: context.index.version,
  })
  addPlanCommands(context, find, localFlags)
  find('login')
    .option(url, 'base URL of the server')
    .option('--profile <name>', 'a name for the key (default: the address of the server)')
    .option('--with-token', 'read the key from standard input, never from a prompt')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      '\nThe key is read from standard input: piped in, or typed at a prompt without echo. ' +
        'It is stored in the keychain or, where there is none, in a file that only you can read.',
    )
    .action(async (options: { url?: string; withToken?: boolean }) => {
      const flags = { ...localFlags(options), withToken: options.withToken === true }
      context.exitCode = await (await import('./login.ts')).login(context.io, flags)
    })
  find('logout')
    .option(url, 'base URL of the server')
    .action(async (options: { url?: string }) => {
      context.exitCode = await (await import('./login.ts')).logout(context.io, options.url ?? globalUrl())
    })
  find('login-code')
    .option(url, 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print the code as JSON')
    .addHelpText(
      'after',
      '\nThe code is valid once, for 10 minutes. The client gets at most the scopes of your key.',
    )
    .action(async (options: { url?: string }) => {
      const { printLoginCode } = await import('./login-code.ts')
      context.exitCode = await printLoginCode(context.io, localFlags(options))
    })
  find('doctor')
    .option(url, 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print the findings as JSON')
    .addHelpText(
      'after',
      '\nExit code 0 without problems, also with warnings; 1 with a problem. The findings are printed either way.',
    )
    .action(async (options: { url?: string }) => {
      context.exitCode = await (await import('./doctor.ts')).doctor(context.io, localFlags(options))
    })
  find('completion')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      ['\nInstall it with one of these, and start a new shell:', ...completionInstalls].join('\n  '),
    )
    .action(async (shell: 'bash' | 'zsh' | 'fish') => {
      context.io.stdout.write((await import('./completion.ts')).renderCompletion(shell))
    })
}

const footer = `
Credentials: -p NAME, WCRM_API_KEY and WCRM_URL, else those stored by "wcrm login".
Exit codes: ${exitCodes.map(([code, about]) => `${code} ${about}`).join('; ')}.
More: wcrm <group> --help, wcrm <group> <verb> --help, man wcrm.`

/** Builds the program with the command on the line, or with all commands. */
const buildProgram = (context: ProgramContext): Command => {
  const program = new Command('wcrm')
    .description('Answer customers, and manage the contacts, templates and webhooks of a workspace.')
    .usage('<group> <verb> [arguments] [options]')
    .version(context.index.version, '--version')
    .helpCommand(false)
    .enablePositionalOptions()
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .addOption(new Option('--server <url>').hideHelp())
    .option('-p, --profile <name>', 'the stored key to use (also WCRM_PROFILE); see wcrm profiles')
    .option('--json', 'print JSON: the response, or the problem')
    .addHelpText('after', footer)
  const { group: asked, words } = context.line
  // Flags before the group may ask for the help of all commands.
  const group = findGroupIndex(words) === 0 ? asked : undefined
  for (const { heading, commands } of commandGroups) {
    program.commandsGroup(`${heading}:`)
    for (const [name, summary] of Object.entries(commands))
      if (group === undefined || group === name) addGroup(context, program, [name, summary])
  }
  if (group === undefined) addLocalCommands(context, program)
  const isBoolean = (flag: string): boolean =>
    context.line.spec?.fields.some((f) => f.type === 'boolean' && f.flag === flag) === true
  context.texts = collectHelp(program, {
    optionTerm: ({ long, flags }) => (long && isBoolean(long) ? long.replace('--', '--[no-]') : flags),
  })
  return program
}

/** The program with the commands that it has beside the operations, for their manual pages. */
export const createProgram = (io: Io): Command => {
  const index = readCommandIndex()
  const line = parseCommandLine([], [])
  return buildProgram({ io, index, line, exitCode: 0, texts: { out: '', error: '' } })
}

/** Converts an error of commander to a usage error with a hint. */
const toUsageError = async (context: ProgramContext, error: CommanderError): Promise<CliError> => {
  const text =
    error.code === 'commander.help'
      ? 'The verb is missing.'
      : context.texts.error
          .replace(/^error: /, '')
          .trim()
          .replaceAll('\n', ' ')
  const group = context.line.words[findGroupIndex(context.line.words)] ?? ''
  const known = context.line.spec
    ? commandName(context.line.spec)
    : context.line.group === group || group in localCommands
      ? group
      : ''
  const help = `See: wcrm ${known ? `${known} ` : ''}--help`
  const habit = findHabitHint(context.line, error)
  if (habit !== undefined || error.code !== 'commander.unknownCommand')
    return Object.assign(usageError(text || error.message), { hint: habit ?? help })
  const { suggestCommands } = await import('./find-commands.ts')
  const suggested = suggestCommands(text, context.line.words)
  return Object.assign(usageError(suggested?.detail ?? text), {
    hint: suggested ? `Did you mean: ${suggested.names.join(', ')}? ${help}` : help,
  })
}

/** Runs a command of the manifest, or a local one. Returns the exit code and never throws. */
export const runProgram = async (argv: readonly string[], io: Io): Promise<number> => {
  const index = readCommandIndex()
  const line = parseCommandLine(argv, index.entries)
  const context: ProgramContext = { io, index, line, exitCode: 0, texts: { out: '', error: '' } }
  try {
    const words = commanderWords(line)
    const program = buildProgram(context)
    refuseFlagsAsValues(program, words)
    await program.parseAsync(
      words[findGroupIndex(words)] === 'help'
        ? [...words.filter((w) => w !== 'help'), '--help']
        : words.length > 0
          ? words
          : ['--help'],
      { from: 'user' },
    )
    return context.exitCode
  } catch (error) {
    const usage = error instanceof CommanderError ? error : undefined
    if (usage?.exitCode === 0) {
      await writeHelp(io, context.texts)
      return 0
    }
    if (usage?.code === 'commander.help' && !line.json.on) {
      await writeErrorHelp(io, context.texts)
      return 2
    }
    const { reportError } = await import('./report-error.ts')
    const failure = usage ? await toUsageError(context, usage) : error
    return reportError(io, failure, { spec: line.spec, json: line.json.on, words: argv })
  }
}

/**
 * Throws a usage error where the value of a flag is another flag of the command, as after an empty variable without
 * quotes: `--text $MSG --dry-run` would write `--dry-run`, and make the change.
 */
const refuseFlagsAsValues = (program: Command, words: readonly string[]): void => {
  let command = program
  const end = words.includes('--') ? words.indexOf('--') : words.length
  for (let at = 0; at < end; at++) {
    const word = words[at]!
    const option = command.options.find(({ long, short }) => word === long || word === short)
    command = (option ? undefined : command.commands.find((one) => one.name() === word)) ?? command
    if (!option?.required) continue
    const value = words[++at] ?? ''
    const [name] = value.split('=', 1)
    if (value.startsWith('--') && command.options.some(({ long }) => long === name))
      throw usageError(
        `${word} has no value.`,
        word,
        `Give ${word} a value; for this text itself: ${word}=${value}`,
      )
  }
}

const VERSION = 'The version of this program: wcrm --version'

/** Commands that other programs have, and what does it here. */
const otherCommands: Readonly<Record<string, string>> = {
  version: VERSION,
  start: 'To start the server: wcrm serve',
  init: 'To make a workspace, on the machine of the server: wcrm admin init --help',
}

/** Returns the equivalent of a word or an option of other programs; undefined when there is none. */
const findHabitHint = (
  { spec, group }: Pick<CommandLine, 'spec' | 'group'>,
  { code, message }: CommanderError,
): string | undefined => {
  if (code === 'commander.unknownCommand') {
    const name = /'([^']+)'/.exec(message)?.[1] ?? ''
    return group === undefined && Object.hasOwn(otherCommands, name) ? otherCommands[name] : undefined
  }
  if (code === 'commander.excessArguments')
    return spec?.args.length === 0 && spec.fields.some(({ flag }) => flag === '--query')
      ? `To find by text: wcrm ${commandName(spec)} --query TEXT`
      : undefined
  if (code !== 'commander.unknownOption') return undefined
  const flag = /'(-[^']+)'/.exec(message)?.[1] ?? ''
  if (/^-[vV]$/.test(flag)) return VERSION
  if (!/^(?:-[yf]|--yes|--force)$/.test(flag)) return undefined
  return spec?.confirm ? `To confirm, add: --confirm ${spec.confirm}` : 'Leave it out: it asks nothing.'
}

/** Adds the flags and actions of `diff` and `apply`. */
const addPlanCommands = (
  context: ProgramContext,
  find: (name: string) => Command,
  localFlags: (options: { url?: string }) => LocalFlags,
): void => {
  const { io } = context
  find('diff')
    .argument('<file>', 'a plan, as --plan FILE of a command writes it')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print the plan as JSON')
    .addHelpText('after', '\nExit code 5 if a step no longer applies.')
    .action(async (file: string, options: { url?: string }) => {
      context.exitCode = await (await import('./plan/apply.ts')).showPlan(io, file, localFlags(options))
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
          import('./plan/apply.ts'),
          import('./operation-command.ts'),
        ])
        context.exitCode = await applyPlan(io, file, {
          ...localFlags(options),
          confirm: options.confirm ?? [],
          reason: options.reason,
          retries: parseRetries(options.retry),
        })
      },
    )
}
