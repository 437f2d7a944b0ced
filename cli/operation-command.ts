import { randomUUID } from 'node:crypto'
import {
  listJsonFields,
  getResponseExitCode,
  pickFields,
  printResponse,
  parsePickedFields,
} from './output.ts'
import { loadCredentials } from './credentials.ts'
import { cliError, usageError } from './error.ts'
import { type Io, isInteractive } from './io.ts'
import { type CommandSpec, commandName } from './manifest.ts'
import { fetchAllPages } from './pages.ts'
import { callOperation, type ServerConnection } from './remote.ts'
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
  readonly all?: boolean | undefined
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
 * Returns the confirmation: as given, or typed at a prompt. Without a terminal the call is sent unconfirmed
 * and the server refuses it.
 */
const confirmCall = async (
  io: Io,
  spec: CommandSpec,
  parsed: ParsedCommand,
  json: JsonFlag,
  dryRun: boolean,
): Promise<string | undefined> => {
  if (parsed.confirm !== undefined || !spec.confirm || dryRun || json.on || !isInteractive(io))
    return parsed.confirm
  const { promptUser } = await import('./prompt.ts')
  const command = [commandName(spec), ...parsed.args.filter((arg) => arg !== undefined)].join(' ')
  const answer = await promptUser(io, `${spec.summary} (${command}). Type ${spec.confirm} to continue:`)
  if (answer?.trim() === spec.confirm) return spec.confirm
  throw cliError(6, {
    type: 'about:blank',
    title: 'Not confirmed',
    code: 'confirm_required',
    detail: 'Nothing was changed.',
  })
}

const callCommand = async (
  io: Io,
  spec: CommandSpec,
  parsed: ParsedCommand,
  json: JsonFlag,
  to: ServerConnection,
  input: Record<string, unknown>,
): Promise<{ body?: string; value: Record<string, unknown> }> => {
  if (parsed.all && spec.output.paged)
    return {
      value: await fetchAllPages(io, to, spec.operation, {
        ...(spec.fields.some((f) => f.name === 'limit') ? { limit: 100 } : {}),
        ...input,
      }),
    }
  if (!spec.writes) return callOperation(io, to, spec.operation, input)
  const confirm = await confirmCall(io, spec, parsed, json, input['dry_run'] === true)
  return callOperation(io, to, spec.operation, input, {
    confirm,
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
  const input = await buildInput(io, spec, parsed)
  const to: ServerConnection = {
    ...(await loadCredentials(io.env, parsed.url, (message) => io.stderr.write(message))),
    version,
    apiVersion: io.env['WCRM_API_VERSION'],
  }
  if (spec.verb === 'export')
    return (await import('./export.ts')).exportRows(io, to, spec, input, {
      format: json.on ? 'json' : parsed.cliFlags.get('format')?.at(-1),
      output: parsed.cliFlags.get('output')?.at(-1),
    })
  if (parsed.cliFlags.has('follow'))
    return (await import('./follow.ts')).followEvents(io, to, spec, input, { json: json.on, picks: fields })
  const { body, value } = fromFile
    ? { value: await (await import('./import.ts')).importFile(io, to, spec, parsed) }
    : await callCommand(io, spec, parsed, json, to, input)
  if (!json.on) await printResponse(io, spec, value)
  else
    io.stdout.write(
      fields ? `${JSON.stringify(pickFields(spec, value, fields))}\n` : `${body ?? JSON.stringify(value)}\n`,
    )
  return getResponseExitCode(value)
}
