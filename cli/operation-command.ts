import { randomUUID } from 'node:crypto'
import {
  formatNotes,
  isDrawnByPages,
  listJsonFields,
  printPages,
  getResponseExitCode,
  pickFields,
  printResponse,
  parseColumns,
  parsePickedFields,
  printRehearsal,
  type ViewFlags,
} from './output.ts'
import { loadCredentials } from './credentials.ts'
import { APPROVAL_EXIT_CODE, cliError, interruptedError, usageError } from './error.ts'
import { type Io, isInteractive } from './io.ts'
import { printResult } from './result.ts'
import { type CommandSpec, commandName } from './manifest.ts'
import { fetchAllPages, fetchPages } from './pages.ts'
import { type ApiResponse, callOperation, type ServerConnection } from './remote.ts'
import type { RowFormat } from './row-formats.ts'
import { parseObjectArgument, parseFieldValue, createArgumentReader } from './values.ts'

/** The words after `<group> <verb>`, split into arguments and flags, with values still as text. */
export type ParsedCommand = {
  readonly args: readonly (string | undefined)[]
  /** The values of each flag, by field name. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  /**
   * The values of flags that exist only on the command line, by name without dashes; empty for a flag that
   * takes none.
   */
  readonly cliFlags: ReadonlyMap<string, readonly string[]>
  readonly input?: string | undefined
  readonly dryRun?: boolean | undefined
  readonly idempotencyKey?: string | undefined
  readonly confirm?: string | undefined
  readonly reason?: string | undefined
  readonly all?: boolean | undefined
  /** `--columns` is still text. */
  readonly view?: { readonly wide: boolean; readonly utc: boolean; readonly columns?: string | undefined }
  /** Of `--ndjson`, `--csv` and `--header` those that were given. */
  readonly formats?: readonly ('ndjson' | 'csv' | 'header')[]
  /** `--retry`, still as text. */
  readonly retries?: string | undefined
  readonly url?: string | undefined
}

/** `--json`: absent, alone, or with the text after `=`. */
export type JsonFlag = { readonly on: boolean; readonly fields?: string | undefined }

/** Builds the input object. Arguments and flags override `--input`. */
const buildInput = async (
  io: Io,
  spec: CommandSpec,
  parsed: ParsedCommand,
): Promise<Record<string, unknown>> => {
  const read = createArgumentReader(io)
  const input = parsed.input === undefined ? {} : await parseObjectArgument(parsed.input, '--input', read)
  spec.args.forEach((name, i) => {
    if (parsed.args[i] !== undefined) input[name] = parsed.args[i]
  })
  for (const field of spec.fields) {
    const values = parsed.flags.get(field.name)
    if (values) input[field.name] = await parseFieldValue(field, values, read)
  }
  if (parsed.dryRun && spec.writes) input['dry_run'] = true
  return input
}

/**
 * Returns the confirmation: as given, or typed at a prompt, which shows what a dry run of the call answered.
 * Without a terminal the call is sent unconfirmed and the server refuses it.
 */
const confirmCall = async (
  io: Io,
  spec: CommandSpec,
  parsed: ParsedCommand,
  json: JsonFlag,
  rehearse: (() => Promise<ApiResponse>) | undefined,
): Promise<string | undefined> => {
  if (parsed.confirm !== undefined || !spec.confirm || !rehearse || json.on || !isInteractive(io))
    return parsed.confirm
  await printRehearsal(io, await rehearse())
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

const callCommand = async (
  io: Io,
  spec: CommandSpec,
  parsed: ParsedCommand,
  json: JsonFlag,
  to: ServerConnection,
  input: Record<string, unknown>,
): Promise<Pick<ApiResponse, 'value' | 'clock' | 'approvalId'> & { body?: string }> => {
  if (parsed.all && spec.output.paged)
    return await fetchAllPages(io, to, spec.operation, withLargePages(spec, input))
  if (!spec.writes) return callOperation(io, to, spec.operation, input)
  const rehearse = () => callOperation(io, to, spec.operation, { ...input, dry_run: true })
  const confirm = await confirmCall(io, spec, parsed, json, input['dry_run'] === true ? undefined : rehearse)
  return callOperation(io, to, spec.operation, input, {
    confirm,
    reason: parsed.reason,
    idempotencyKey: parsed.idempotencyKey ?? randomUUID(),
  })
}

/** Decides whether a command with an optional file argument reads a file or takes its input from flags. */
const resolveFileArgument = async (
  spec: CommandSpec,
  parsed: ParsedCommand,
): Promise<{ spec: CommandSpec; fromFile: boolean }> => {
  if (!spec.word) return { spec, fromFile: false }
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
  return { spec: fromFile ? (await import('./import.ts')).toFileImportSpec(spec) : spec, fromFile }
}

const parseRetries = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  if (/^\d{1,3}$/.test(text)) return Number(text)
  throw usageError(`--retry must be a number of times, not "${text}".`, '--retry', 'For example --retry=3.')
}

/** Returns the format of the rows, if one was asked for. Throws a usage error for two that exclude each other. */
const parseRowFormat = ({ formats = [] }: ParsedCommand, json: JsonFlag): RowFormat | undefined => {
  const given = [...formats.map((name) => `--${name}`), ...(json.on ? ['--json'] : [])]
  if (formats.length > 0 && given.length > 1)
    throw usageError(`${given.join(' and ')} exclude each other.`, given[0]!, 'Give one of them.')
  return formats[0] === 'header' ? 'tsv' : formats[0]
}

const toViewFlags = (spec: CommandSpec, { view }: ParsedCommand): ViewFlags => ({
  wide: view?.wide ?? false,
  utc: view?.utc ?? false,
  columns: view?.columns === undefined ? undefined : parseColumns(spec, view.columns),
})

/** Prints a call that a person has to approve, and says how to wait for it. Returns the exit code. */
const printAsked = async (
  io: Io,
  value: Record<string, unknown>,
  json: string | undefined,
): Promise<number> => {
  const { id } = value['approval'] as { id: string }
  if (json !== undefined) io.stdout.write(`${json}\n`)
  else {
    await printResult(io, {}, value['approval'] as Record<string, unknown>, false)
    io.stderr.write(
      `A person decides on this call. Wait for it: wcrm approvals get ${id} --wait-seconds 30\n`,
    )
  }
  return APPROVAL_EXIT_CODE
}

/** Runs the command of an operation and prints the response. Returns the exit code; throws a CLI error. */
export const runOperationCommand = async (
  io: Io,
  command: CommandSpec,
  parsed: ParsedCommand,
  json: JsonFlag,
  version: string,
): Promise<number> => {
  const { spec, fromFile } = await resolveFileArgument(command, parsed)
  if (json.fields === '?') {
    io.stdout.write(
      listJsonFields(spec)
        .map((name) => `${name}\n`)
        .join(''),
    )
    return 0
  }
  const fields = json.fields === undefined ? undefined : parsePickedFields(spec, json.fields)
  const view = toViewFlags(spec, parsed)
  const format = parseRowFormat(parsed, json)
  const input = await buildInput(io, spec, parsed)
  const to: ServerConnection = {
    ...(await loadCredentials(io.env, parsed.url, (message) => io.stderr.write(message))),
    version,
    retries: parseRetries(parsed.retries),
    apiVersion: io.env['WCRM_API_VERSION'],
  }
  if (spec.verb === 'export')
    return (await import('./export.ts')).exportRows(io, to, spec, input, {
      format: json.on ? 'json' : parsed.cliFlags.get('format')?.at(-1),
      output: parsed.cliFlags.get('output')?.at(-1),
    })
  if (parsed.cliFlags.has('follow'))
    return (await import('./follow.ts')).followEvents(io, to, spec, input, { json: json.on, picks: fields })
  if (format) {
    const fetched = withLargePages(spec, input)
    const pages = parsed.all
      ? fetchPages(io, to, spec.operation, fetched)
      : [await callOperation(io, to, spec.operation, input)]
    const last = await (await import('./row-formats.ts')).writeRows(io, spec, pages, format, view.columns)
    io.stderr.write(formatNotes(spec, last))
    return 0
  }
  if (parsed.all && spec.output.paged && !json.on && isDrawnByPages(io, spec)) {
    await printPages(io, spec, fetchPages(io, to, spec.operation, withLargePages(spec, input)), view)
    return 0
  }
  const { body, value, clock, approvalId } = fromFile
    ? { value: await (await import('./import.ts')).importFile(io, to, spec, parsed) }
    : await callCommand(io, spec, parsed, json, to, input)
  if (approvalId !== undefined) return await printAsked(io, value, json.on ? body : undefined)
  if (!json.on) await printResponse(io, spec, value, view, clock)
  else
    io.stdout.write(
      fields ? `${JSON.stringify(pickFields(spec, value, fields))}\n` : `${body ?? JSON.stringify(value)}\n`,
    )
  return getResponseExitCode(value)
}
