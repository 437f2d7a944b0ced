import { randomUUID } from 'node:crypto'
import { jsonFields, partlyFailed, picked, print, readPicks } from './answer.ts'
import { connection } from './credentials.ts'
import { fault } from './fault.ts'
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
  readonly input?: string | undefined
  readonly dryRun?: boolean | undefined
  readonly idempotencyKey?: string | undefined
  readonly confirm?: string | undefined
  readonly all?: boolean | undefined
  readonly format?: string | undefined
  readonly url?: string | undefined
}

/** `--json` as typed: absent, bare, or with the text after `=`. */
export type Json = { readonly on: boolean; readonly fields?: string | undefined }

/** The input object: `--input` first, then positions and flags, which win over it. */
export const inputOfTyped = async (io: Io, spec: CommandSpec, typed: Typed): Promise<Record<string, unknown>> => {
  const read = textReader(io)
  const input = typed.input === undefined ? {} : await readObject(typed.input, '--input', read)
  spec.args.forEach((name, i) => { if (typed.args[i] !== undefined) input[name] = typed.args[i] })
  for (const field of spec.fields) {
    const texts = typed.flags.get(field.name)
    if (texts) input[field.name] = await readValue(field, texts, read)
  }
  if (typed.dryRun && spec.writes) input['dry_run'] = true
  return input
}

/** The verb that confirms: as given, or typed by a person who is asked. Without a person the server refuses. */
const confirmation = async (io: Io, spec: CommandSpec, typed: Typed, json: Json, rehearsal: boolean): Promise<string | undefined> => {
  if (typed.confirm !== undefined || !spec.confirm || rehearsal || json.on || !isInteractive(io)) return typed.confirm
  const { ask } = await import('./prompt.ts')
  const what = [commandName(spec), ...typed.args.filter((arg) => arg !== undefined)].join(' ')
  const answer = await ask(io, `${spec.summary} (${what}). Type ${spec.confirm} to go on:`)
  if (answer?.trim() === spec.confirm) return spec.confirm
  throw fault(6, { type: 'about:blank', title: 'Not confirmed', code: 'confirm_required', detail: 'Nothing was changed.' })
}

const answerOf = async (io: Io, spec: CommandSpec, typed: Typed, json: Json, to: Connection, input: Record<string, unknown>): Promise<{ body?: string; value: Record<string, unknown> }> => {
  if (typed.all && spec.output.paged) return { value: await allPages(io, to, spec.operation, { ...(spec.fields.some((f) => f.name === 'limit') ? { limit: 100 } : {}), ...input }) }
  if (!spec.writes) return callOperation(io, to, spec.operation, input)
  const confirm = await confirmation(io, spec, typed, json, input['dry_run'] === true)
  return callOperation(io, to, spec.operation, input, { confirm, idempotencyKey: typed.idempotencyKey ?? randomUUID() })
}

/** Runs one operation's command from typed words to printed answer; gives the exit code, throws a fault. */
export const operate = async (io: Io, spec: CommandSpec, typed: Typed, json: Json, version: string): Promise<number> => {
  if (json.fields === '?') {
    io.stdout.write(jsonFields(spec).map((name) => `${name}\n`).join(''))
    return 0
  }
  const picks = json.fields === undefined ? undefined : readPicks(spec, json.fields)
  const input = await inputOfTyped(io, spec, typed)
  const to: Connection = { ...await connection(io.env, typed.url), version, apiVersion: io.env['WCRM_API_VERSION'] }
  if (spec.verb === 'export') return (await import('./export.ts')).exportRows(io, to, spec, input, json.on ? 'json' : typed.format)
  const { body, value } = await answerOf(io, spec, typed, json, to, input)
  if (!json.on) await print(io, spec, value)
  else io.stdout.write(picks ? `${JSON.stringify(picked(spec, value, picks))}\n` : `${body ?? JSON.stringify(value)}\n`)
  return partlyFailed(value) ? 9 : 0
}
