import { randomUUID } from 'node:crypto'
import { jsonFields, partlyFailed, picked, print, readPicks } from './answer.ts'
import { connection } from './credentials.ts'
import { fault, usage } from './fault.ts'
import { type Io, isInteractive } from './io.ts'
import { type CommandSpec, commandName } from './manifest.ts'
import { allPages } from './pages.ts'
import { callOperation, type Connection } from './remote.ts'
import { readObject, readValue, textReader } from './values.ts'

/** What was typed after `<group> <verb>`, before it is understood. */
export type Typed = {
  readonly args: readonly (string | undefined)[]
  /** The texts of each flag, by field name. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  /**
   * Texts of the flags that only the command line knows, by name without dashes; of one that takes no
   * value, none.
   */
  readonly own: ReadonlyMap<string, readonly string[]>
  readonly input?: string | undefined
  readonly dryRun?: boolean | undefined
  readonly idempotencyKey?: string | undefined
  readonly confirm?: string | undefined
  readonly all?: boolean | undefined
  readonly url?: string | undefined
}

/** `--json` as typed: absent, bare, or with the text after `=`. */
export type Json = { readonly on: boolean; readonly fields?: string | undefined }

/** The input object: `--input` first, then positions and flags, which win over it. */
const inputOfTyped = async (io: Io, spec: CommandSpec, typed: Typed): Promise<Record<string, unknown>> => {
  const read = textReader(io)
  const input = typed.input === undefined ? {} : await readObject(typed.input, '--input', read)
  spec.args.forEach((name, i) => {
    if (typed.args[i] !== undefined) input[name] = typed.args[i]
  })
  for (const field of spec.fields) {
    const texts = typed.flags.get(field.name)
    if (texts) input[field.name] = await readValue(field, texts, read)
  }
  if (typed.dryRun && spec.writes) input['dry_run'] = true
  return input
}

/**
 * The verb that confirms: as given, or typed by a person who is asked. Without a person the server refuses.
 */
const confirmation = async (
  io: Io,
  spec: CommandSpec,
  typed: Typed,
  json: Json,
  rehearsal: boolean,
): Promise<string | undefined> => {
  if (typed.confirm !== undefined || !spec.confirm || rehearsal || json.on || !isInteractive(io))
    return typed.confirm
  const { ask } = await import('./prompt.ts')
  const what = [commandName(spec), ...typed.args.filter((arg) => arg !== undefined)].join(' ')
  const answer = await ask(io, `${spec.summary} (${what}). Type ${spec.confirm} to go on:`)
  if (answer?.trim() === spec.confirm) return spec.confirm
  throw fault(6, {
    type: 'about:blank',
    title: 'Not confirmed',
    code: 'confirm_required',
    detail: 'Nothing was changed.',
  })
}

const answerOf = async (
  io: Io,
  spec: CommandSpec,
  typed: Typed,
  json: Json,
  to: Connection,
  input: Record<string, unknown>,
): Promise<{ body?: string; value: Record<string, unknown> }> => {
  if (typed.all && spec.output.paged)
    return {
      value: await allPages(io, to, spec.operation, {
        ...(spec.fields.some((f) => f.name === 'limit') ? { limit: 100 } : {}),
        ...input,
      }),
    }
  if (!spec.writes) return callOperation(io, to, spec.operation, input)
  const confirm = await confirmation(io, spec, typed, json, input['dry_run'] === true)
  return callOperation(io, to, spec.operation, input, {
    confirm,
    idempotencyKey: typed.idempotencyKey ?? randomUUID(),
  })
}

/** The command as it is meant when a file is named; without one, its input must be given. */
const readFileWord = async (
  spec: CommandSpec,
  typed: Typed,
): Promise<{ spec: CommandSpec; fromFile: boolean }> => {
  if (!spec.word) return { spec, fromFile: false }
  const given = typed.input !== undefined || typed.flags.size > 0
  const fromFile = typed.args[0] !== undefined
  const fields = ['--input', ...spec.fields.map((f) => f.flag)].join(' or ')
  if (fromFile === given)
    throw usage(
      given ? `Name a file, or give ${fields}, not both.` : 'Nothing to read.',
      spec.word.name,
      `Name a file, - for standard input, or give ${fields}.`,
    )
  if (!fromFile && typed.own.size > 0)
    throw usage(`--${[...typed.own.keys()][0]} is for a file.`, `--${[...typed.own.keys()][0]}`)
  return { spec: fromFile ? (await import('./import.ts')).forFile(spec) : spec, fromFile }
}

/** Runs one operation's command from typed words to printed answer; gives the exit code, throws a fault. */
export const operate = async (
  io: Io,
  command: CommandSpec,
  typed: Typed,
  json: Json,
  version: string,
): Promise<number> => {
  const { spec, fromFile } = await readFileWord(command, typed)
  if (json.fields === '?') {
    io.stdout.write(
      jsonFields(spec)
        .map((name) => `${name}\n`)
        .join(''),
    )
    return 0
  }
  const picks = json.fields === undefined ? undefined : readPicks(spec, json.fields)
  const input = await inputOfTyped(io, spec, typed)
  const to: Connection = {
    ...(await connection(io.env, typed.url)),
    version,
    apiVersion: io.env['WCRM_API_VERSION'],
  }
  if (spec.verb === 'export')
    return (await import('./export.ts')).exportRows(io, to, spec, input, {
      format: json.on ? 'json' : typed.own.get('format')?.at(-1),
      output: typed.own.get('output')?.at(-1),
    })
  if (typed.own.has('follow'))
    return (await import('./follow.ts')).followEvents(io, to, spec, input, { json: json.on, picks })
  const { body, value } = fromFile
    ? { value: await (await import('./import.ts')).importFile(io, to, spec, typed) }
    : await answerOf(io, spec, typed, json, to, input)
  if (!json.on) await print(io, spec, value)
  else
    io.stdout.write(
      picks ? `${JSON.stringify(picked(spec, value, picks))}\n` : `${body ?? JSON.stringify(value)}\n`,
    )
  return partlyFailed(value) ? 9 : 0
}
