import {
  type Answer,
  type AnswerFormat,
  createStreamWriter,
  parseAnswerFormat,
  printAnswer,
  printList,
} from './answer.ts'
import { loadCredentials } from './credentials.ts'
import {
  APPROVAL_EXIT_CODE,
  cliError,
  type CommandMeaning,
  interruptedError,
  isCliError,
  usageError,
} from './error.ts'
import { withInterruption } from './interruption.ts'
import { type Io, isInteractive } from './io.ts'
import { formatAskedHint, getResponseExitCode, listJsonFields, printDryRun } from './output.ts'
import type { JsonFlag, ParsedCommand } from './parsed-command.ts'
import { printResult } from './result.ts'
import { type CommandSpec, commandName } from './manifest.ts'
import { fetchAllPages, fetchPages } from './pages.ts'
import { callOperation, type CallHeaders, type ServerConnection } from './remote.ts'
import { toFlag } from './argv.ts'
import { withNamedDetail, withOtherDetail } from './row-detail.ts'
import { parseObjectArgument, parseFieldValue, createArgumentReader, isIndirect } from './values.ts'

/** The input as the words give it: `given` are the values of arguments and flags, which override `--input`. */
type CommandInput = {
  readonly input: Readonly<Record<string, unknown>>
  readonly given: Readonly<Record<string, unknown>>
}

/** A command as the words give it, whom it calls, and how it prints the answer. */
type CommandRun = {
  readonly to: ServerConnection
  readonly spec: CommandSpec
  readonly parsed: ParsedCommand
  readonly format: AnswerFormat
}

/** Reads the input from the words, files and standard input. */
const readInput = async (io: Io, spec: CommandSpec, parsed: ParsedCommand): Promise<CommandInput> => {
  const read = createArgumentReader(io)
  const input = parsed.input === undefined ? {} : await parseObjectArgument(parsed.input, '--input', read)
  const given: Record<string, unknown> = {}
  spec.args.forEach((name, i) => {
    if (parsed.args[i] !== undefined) given[name] = parsed.args[i]
  })
  for (const field of spec.fields) {
    const values = parsed.flags.get(field.name)
    if (values) given[field.name] = await parseFieldValue(field, values, read)
  }
  return { input, given }
}

/** Returns the fields that `--since` stands for. */
const readStart = async (
  to: ServerConnection,
  text: string | undefined,
): Promise<Record<string, unknown>> => {
  if (text === undefined) return {}
  const since = (await import('./since.ts')).parseSince(text)
  if (since === 'now') return { after: 'now' }
  if ('after' in since) return since
  const { now } = await (await import('./phrases.ts')).readServerClock(to)
  return { from: new Date(now - since.agoMs).toISOString() }
}

/** Opens an editor for the text that a command is about, on a terminal, where nothing else was given. */
const composeText = async ({
  to: { io },
  spec,
  parsed,
  format,
}: CommandRun): Promise<Record<string, unknown>> => {
  const isAsked = spec.compose !== undefined && parsed.flags.size === 0 && parsed.input === undefined
  if (!isAsked || format.json || !isInteractive(io)) return {}
  const { writeInEditor } = await import('./editor.ts')
  const words = [commandName(spec), ...parsed.args.filter((arg) => arg !== undefined)]
  return { [spec.compose!]: await writeInEditor(io, `${spec.summary} (wcrm ${words.join(' ')}).`) }
}

/**
 * Builds the input object. What `--input` holds is sent as it is; arguments and flags may be names, and phrases for
 * times, which are replaced by ids and times.
 */
const buildInput = async (
  { to, spec, parsed }: CommandRun,
  { input, given }: CommandInput,
): Promise<Record<string, unknown>> => {
  const built: Record<string, unknown> = { ...input, ...given }
  for (const field of spec.fields)
    if (field.names && field.name in given) {
      const { resolveNames } = await import('./names.ts')
      built[field.name] = await resolveNames({ to, spec }, field, given[field.name])
    }
  if (spec.fields.some((field) => field.time && field.name in given))
    Object.assign(built, await (await import('./phrases.ts')).resolveTimes(to, spec, given))
  if (parsed.dryRun && spec.writes) built['dry_run'] = true
  return built
}

/**
 * Returns the confirmation: as given, or typed at a prompt, which shows what a dry run of the call answered.
 * Without a terminal the call is sent unconfirmed and the server refuses it.
 */
const confirmCall = async (
  { to: { io }, spec, parsed, format }: CommandRun,
  dryRun: (() => Promise<Answer>) | undefined,
): Promise<string | undefined> => {
  if (parsed.confirm !== undefined || !spec.confirm || !dryRun || format.json || !isInteractive(io))
    return parsed.confirm
  await printDryRun(io, await dryRun())
  const { promptUser } = await import('./prompt.ts')
  const command = [commandName(spec), ...parsed.args.filter((arg) => arg !== undefined)].join(' ')
  const answer = await promptUser(io, `${spec.summary} (${command}). Type ${spec.confirm} to continue:`)
  if (answer === undefined) throw interruptedError()
  if (answer.trim() === spec.confirm) return spec.confirm
  throw cliError(6, {
    type: 'about:blank',
    title: 'Not confirmed',
    code: 'confirm_required',
    detail: 'Nothing was changed.',
  })
}

const withLargePages = (spec: CommandSpec, input: Record<string, unknown>): Record<string, unknown> => ({
  ...(spec.fields.some((f) => f.name === 'limit') ? { limit: 100 } : {}),
  ...input,
})

/** Calls a change: at once, or in batches for a long list of ids from a file or standard input. */
const callChange = async (
  { to, spec, parsed }: CommandRun,
  input: Record<string, unknown>,
  headers: CallHeaders,
): Promise<Answer> => {
  const field = spec.fields.find((f) => f.name === spec.batch)
  const ids = field && input[field.name]
  const isPiped = field && parsed.flags.get(field.name)?.some(isIndirect)
  if (!isPiped || !Array.isArray(ids) || ids.length <= field.ids!)
    return await callOperation(to, spec.operation, input, headers)
  const { callInBatches } = await import('./batches.ts')
  const batches = { operation: spec.operation, field: field.name, size: field.ids! }
  return await callInBatches(to, batches, input, { ...headers, plan: undefined })
}

const callCommand = async (run: CommandRun, input: Record<string, unknown>): Promise<Answer> => {
  const { to, spec, parsed } = run
  if (parsed.all && spec.output.paged)
    return await fetchAllPages(to, spec.operation, withLargePages(spec, input))
  if (!spec.writes) return await callOperation(to, spec.operation, input)
  const dryRun = () => callChange(run, { ...input, dry_run: true }, { plan: 'show' })
  const confirm = await confirmCall(run, input['dry_run'] === true ? undefined : dryRun)
  const idempotencyKey = parsed.idempotencyKey ?? (await import('node:crypto')).randomUUID()
  return await withInterruption(idempotencyKey, (signal) =>
    callChange(run, input, { confirm, reason: parsed.reason, idempotencyKey, signal }),
  )
}

/** Returns the command as it is with an optional file argument, or with its input from flags. */
const resolveFileArgument = async (spec: CommandSpec, parsed: ParsedCommand): Promise<CommandSpec> => {
  if (!spec.word) return spec
  const hasInput = parsed.input !== undefined || parsed.flags.size > 0
  const fromFile = parsed.args[0] !== undefined
  const fields = ['--input', ...spec.fields.map((f) => f.flag)].join(' or ')
  if (fromFile === hasInput)
    throw usageError(
      hasInput ? `Name a file or give ${fields}, not both.` : 'No input was given.',
      spec.word.name,
      `Name a file or - for standard input, or give ${fields}.`,
    )
  if (!fromFile && parsed.cliFlags.size > 0)
    throw usageError(
      `--${[...parsed.cliFlags.keys()][0]} requires a file.`,
      `--${[...parsed.cliFlags.keys()][0]}`,
    )
  return fromFile ? (await import('./import.ts')).toFileImportSpec(spec) : spec
}

/** Returns how often `--retry` tries again. Throws a usage error. */
export const parseRetries = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  if (/^\d{1,3}$/.test(text)) return Number(text)
  throw usageError(`--retry must be a number of times, not "${text}".`, '--retry', 'For example --retry=3.')
}

/** Prints a call that a person has to approve, and says how to wait for it. Returns the exit code. */
const printAsked = async (io: Io, { value, body }: Answer, format: AnswerFormat): Promise<number> => {
  const { id } = value['approval'] as { id: string }
  if (format.json) io.stdout.write(`${body ?? JSON.stringify(value)}\n`)
  else {
    // A program that reads one field of the answer must not take the request for the answer.
    if (!format.quiet && !format.jq && !format.template)
      await printResult(io, value['approval'] as Record<string, unknown>)
    io.stderr.write(formatAskedHint(id))
  }
  return APPROVAL_EXIT_CODE
}

/** Whether the input comes from a file that the words name. */
const isFromFile = (spec: CommandSpec, parsed: ParsedCommand): boolean =>
  spec.word !== undefined && parsed.args[0] !== undefined

/** Throws a usage error for the first of these flags: it would be ignored. */
const refuseFlags = (flags: readonly string[], beside: string): void => {
  const [flag] = flags
  if (flag !== undefined) throw usageError(`${flag} has no effect with ${beside}.`, flag, 'Leave it out.')
}

/** Runs the commands of operations that do more than call and print. Returns undefined for any other. */
const runOwnCommand = async (
  { to, spec, parsed, format }: CommandRun,
  input: Record<string, unknown>,
): Promise<number | undefined> => {
  const { json, picks } = format
  const flag = (name: string): string | undefined => parsed.cliFlags.get(name)?.at(-1)
  // Of a plan and of an export, which are printed in forms of their own.
  const ignored = format.flags.filter((name) => name !== '--json')
  if (parsed.plan !== undefined) {
    if (isFromFile(spec, parsed)) throw usageError('Imports of files have no plan; use --dry-run.', '--plan')
    refuseFlags(ignored, '--plan')
    const { makePlan } = await import('./plan/make.ts')
    return await makePlan({ to, spec }, input, { path: parsed.plan, key: parsed.idempotencyKey, json })
  }
  if (spec.verb === 'export') {
    refuseFlags(ignored, 'an export')
    const { exportRows } = await import('./export.ts')
    return await exportRows(to, input, { format: json ? 'json' : flag('format'), output: flag('output') })
  }
  if (parsed.cliFlags.has('follow')) {
    const ofPages = ['limit', 'cursor'].filter((name) => parsed.flags.has(name)).map((name) => `--${name}`)
    refuseFlags([...(parsed.all ? ['--all'] : []), ...ofPages], '--follow')
    const { followEvents } = await import('./follow.ts')
    const writer = createStreamWriter(to.io, spec, format)
    return await followEvents({ to, spec }, input, { json, picks, writer })
  }
  return undefined
}

const fetchAnswer = async (run: CommandRun, input: Record<string, unknown>): Promise<Answer> => {
  const { to, spec, parsed } = run
  if (isFromFile(spec, parsed)) return await (await import('./import.ts')).importFile(to, spec, parsed)
  const hasFile = spec.operation === 'messaging_get_media' || spec.operation === 'crm_get_export'
  const output = hasFile ? parsed.cliFlags.get('output')?.at(-1) : undefined
  return output === undefined
    ? await callCommand(run, input)
    : await (await import('./media.ts')).saveFile(to, { operation: spec.operation, input }, output)
}

/** Makes the call of a command and prints the answer. Returns the exit code. */
const callAndPrint = async (run: CommandRun, input: Record<string, unknown>): Promise<number> => {
  const { to, spec, parsed, format } = run
  const ended = await runOwnCommand(run, input)
  if (ended !== undefined) return ended
  const pages =
    parsed.all && spec.output.paged
      ? { all: true, read: () => fetchPages(to, spec.operation, withLargePages(spec, input)) }
      : { all: false, read: async () => [await callOperation(to, spec.operation, input)] }
  const print = async (io: Io): Promise<number> => {
    const target = { io, spec, format }
    if (await printList(target, pages)) return 0
    const answer = await fetchAnswer(run, input)
    if (answer.approvalId !== undefined) return await printAsked(to.io, answer, format)
    if (parsed.cliFlags.get('output')?.at(-1) !== '-') await printAnswer(target, answer)
    return getResponseExitCode(answer.value)
  }
  const { json, rows, jq, template, quiet } = format
  const isForPrograms = json || rows || jq || template || quiet
  // Output for programs, and of commands that may prompt, is never shown in a pager.
  return spec.output.list && !spec.writes && !isForPrograms && isInteractive(to.io)
    ? await (await import('./pager.ts')).withPager(to.io, print)
    : await print(to.io)
}

/**
 * Adds to a failure what its command means now: a phrase for a time means another one later, and a text that was
 * written in an editor stands nowhere else.
 */
const withMeaning = (
  error: unknown,
  { spec }: CommandRun,
  { given, composed, input }: Record<'given' | 'composed' | 'input', Readonly<Record<string, unknown>>>,
): unknown => {
  const times = spec.fields.filter((field) => field.time && given[field.name] !== input[field.name])
  const meaning: CommandMeaning = {
    replaced: times.map((field) => [field.flag, String(given[field.name]), String(input[field.name])]),
    added: spec.fields.flatMap((field) =>
      field.name in composed ? toFlag(field, composed[field.name]) : [],
    ),
  }
  return isCliError(error) ? Object.assign(error, { meaning }) : error
}

type OperationCommand = {
  readonly command: CommandSpec
  readonly parsed: ParsedCommand
  readonly json: JsonFlag
  readonly version: string
}

/** Runs the command of an operation and prints the response. Returns the exit code; throws a CLI error. */
export const runOperationCommand = async (
  io: Io,
  { command, parsed, json, version }: OperationCommand,
): Promise<number> => {
  const spec = await resolveFileArgument(command, parsed)
  if (json.fields === '?') {
    io.stdout.write(
      listJsonFields(spec)
        .map((name) => `${name}\n`)
        .join(''),
    )
    return 0
  }
  const format = await parseAnswerFormat(spec, parsed, json)
  const words = await readInput(io, spec, parsed)
  const to: ServerConnection = {
    io,
    ...(await loadCredentials(io.env, parsed.url, (message) => io.stderr.write(message))),
    version,
    retries: parseRetries(parsed.retries),
    apiVersion: io.env['WCRM_API_VERSION'],
  }
  const run: CommandRun = { to, spec, parsed, format }
  const composed = await composeText(run)
  const given = { ...words.given, ...composed }
  const input = withNamedDetail(
    { io, spec, format },
    {
      ...(await buildInput(run, { ...words, given })),
      ...(await readStart(to, parsed.cliFlags.get('since')?.at(-1))),
    },
  )
  try {
    return await callAndPrint(run, input).catch((error: unknown) => {
      const other = withOtherDetail(spec, { given, input }, error)
      if (other === undefined) throw error
      return callAndPrint(run, other)
    })
  } catch (error) {
    throw withMeaning(error, run, { given, composed, input })
  }
}
