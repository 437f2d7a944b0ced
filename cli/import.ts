import { randomUUID } from 'node:crypto'
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { csvRecords, delimiterOf } from './import/csv.ts'
import { type Columns, type Field, nearestOf, readColumns } from './import/columns.ts'
import { ndjsonLines } from './import/ndjson.ts'
import { type Row, rowOfCells, rowOfJson } from './import/rows.ts'
import { type Batch, batchesOf, insist, sendInOrder } from './import/send.ts'
import { type Format, formatOf, headOf, newDigest, openSource, type Source } from './import/source.ts'
import { readState, removeState, type State, statePath, writeState } from './import/state.ts'
import { importProgress } from './import/progress.ts'
import { usage } from './fault.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import type { Typed } from './operate.ts'
import { allPages } from './pages.ts'
import { callOperation, type Connection } from './remote.ts'

type Failure = { line: number; row: unknown; code: string; message: string; errors: readonly object[] }
type Answer = {
  created: number
  updated: number
  unchanged: number
  dry_run?: true
  failures: readonly { row: number; code: string; message: string; errors: readonly { pointer: string }[] }[]
}

const summary = {
  rows: 'Rows of the file.',
  created: 'Contacts created.',
  updated: 'Rows that changed a contact.',
  unchanged: 'Rows whose contact was so already.',
  failed: 'Rows that failed.',
  seconds: 'How long it took.',
  dry_run: 'Present on a rehearsal: nothing was changed.',
}

/** The command as `--json` and views see it when it reads a file: its answer is a summary. */
export const forFile = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  output: {
    fields: Object.entries(summary).map(([name, about]) => ({ name, type: 'integer', about })),
    envelope: [],
    columns: [],
  },
})

/** Reads a file's rows as often as is asked. */
type Reader = {
  readonly rows: (onBytes?: (bytes: Buffer) => void) => AsyncIterable<Row>
  readonly ignored: () => readonly string[]
}

const csvReader = async (
  source: Source,
  head: string,
  fields: readonly Field[],
  own: Typed['own'],
): Promise<Reader> => {
  const delimiter = delimiterOf(head)
  let columns: Columns | undefined
  for await (const { cells } of csvRecords(source, delimiter)) {
    columns = readColumns(cells, fields, { map: own.get('map') ?? [], ignore: own.get('ignore') ?? [] })
    break
  }
  return {
    rows: async function* (onBytes) {
      let isHeader = true
      for await (const { line, cells } of csvRecords(source, delimiter, onBytes)) {
        if (!isHeader) yield rowOfCells(line, cells, columns!, own.has('clear-empty'))
        isHeader = false
      }
    },
    ignored: () => columns!.ignored,
  }
}

const ndjsonReader = (source: Source, fields: readonly Field[], own: Typed['own']): Reader => {
  for (const flag of ['map', 'ignore', 'clear-empty'])
    if (own.has(flag)) throw usage(`--${flag} is for CSV.`, `--${flag}`, 'Rename fields with jq.')
  const ignored = new Set<string>()
  return {
    rows: async function* (onBytes) {
      for await (const { line, text } of ndjsonLines(source, onBytes))
        yield rowOfJson(line, text, fields, ignored)
    },
    ignored: () => [...ignored],
  }
}

const readerOf = async (
  source: Source,
  format: Format,
  head: string,
  fields: readonly Field[],
  own: Typed['own'],
): Promise<Reader> =>
  format === 'csv' ? await csvReader(source, head, fields, own) : ndjsonReader(source, fields, own)

/** Reads all of the file before anything is sent: what is in it, and which groups it names. */
const scan = async (
  reader: Reader,
  onBytes: (bytes: number) => void,
): Promise<{ rows: number; sha256: string; groups: string[] }> => {
  const digest = newDigest()
  const groups = new Set<string>()
  let [rows, read] = [0, 0]
  const onChunk = (bytes: Buffer) => {
    digest.update(bytes)
    onBytes((read += bytes.length))
  }
  for await (const { draft } of reader.rows(onChunk)) {
    rows++
    for (const name of draft.groups ?? []) groups.add(name)
  }
  return { rows, sha256: digest.digest('hex'), groups: [...groups] }
}

const listAll = async <T>(io: Io, to: Connection, operation: string): Promise<T[]> =>
  (await allPages(io, to, operation, { limit: 100 }))['data'] as T[]

/** Ids of groups given by name, ignoring case, or by id; null for one that a rehearsal would create. */
const findGroups = async (
  io: Io,
  to: Connection,
  names: readonly string[],
  { create, rehearse }: { create: boolean; rehearse: boolean },
): Promise<Map<string, string | null>> => {
  const known = names.length > 0 ? await listAll<{ id: string; name: string }>(io, to, 'crm_list_groups') : []
  const fold = (text: string): string => text.normalize('NFC').toLowerCase()
  const byName = new Map(known.map((group) => [fold(group.name), group.id]))
  const ids = new Map<string, string | null>(
    names.flatMap((name) => {
      const id = byName.get(fold(name)) ?? known.find((group) => group.id === name)?.id
      return id === undefined ? [] : [[name, id] as const]
    }),
  )
  const unknown = names.filter((name) => !ids.has(name))
  if (unknown.length > 0 && !create) {
    const near = nearestOf(
      unknown[0]!,
      known.map((group) => group.name),
    )
    throw usage(
      `There is no group ${unknown
        .slice(0, 10)
        .map((name) => `"${name}"`)
        .join(', ')}${unknown.length > 10 ? ` and ${unknown.length - 10} more` : ''}.`,
      'file',
      `${near === undefined ? '' : `Did you mean ${near}? `}--create-groups creates what is missing.`,
    )
  }
  for (const name of unknown) {
    const { value } = await insist(
      () =>
        callOperation(
          io,
          to,
          'crm_create_group',
          { name, ...(rehearse ? { dry_run: true } : {}) },
          { idempotencyKey: randomUUID() },
        ),
      () => {},
      () => false,
    )
    ids.set(name, (value['group'] as { id: string | null }).id)
  }
  return ids
}

/** The row as it is sent: groups by their ids. */
const sentRow = (
  { draft: { groups, ...row } }: Row,
  ids: ReadonlyMap<string, string | null>,
): Record<string, unknown> =>
  groups === undefined
    ? row
    : {
        ...row,
        group_ids: [
          ...((row['group_ids'] ?? []) as unknown[]),
          ...groups.map((name) => ids.get(name)).filter((id) => id !== null),
        ],
      }

/**
 * Failures of a batch in the order of the file: rows that were not sent, and those that the server refused,
 * pointing into the row.
 */
const failuresOf = (
  batch: Batch,
  sent: readonly Row[],
  answer: Answer,
  ids: ReadonlyMap<string, string | null>,
): Failure[] =>
  [
    ...batch.rows.flatMap((row) =>
      row.wrong ? [{ line: row.line, row: sentRow(row, ids), ...row.wrong }] : [],
    ),
    ...answer.failures.map(({ row, code, message, errors }) => ({
      line: sent[row]!.line,
      row: sentRow(sent[row]!, ids),
      code,
      message,
      errors: errors.map((error) => ({ ...error, pointer: error.pointer.replace(`#/rows/${row}`, '#') })),
    })),
  ].toSorted((a, b) => a.line - b.line)

const SHOWN_FAILURES = 20

/** Opens the file of failures with as much in it as stands. */
const openFailures = (path: string, source: Source, stands: number): number => {
  if (resolve(path) === source.path)
    throw usage('--failures would overwrite the file that is read.', '--failures', 'Name another file.')
  try {
    const file = openSync(path, stands > 0 ? 'r+' : 'w', 0o600)
    ftruncateSync(file, stands)
    return file
  } catch (error) {
    throw usage(
      `Cannot write ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}.`,
      '--failures',
      'Name a file that can be written.',
    )
  }
}

/** Where failures go: all of them to a file, or the first ones to stderr. */
const failureSink = (
  path: string | undefined,
  source: Source,
  state: State,
  tell: (line: string) => void,
) => {
  const file = path === undefined ? undefined : openFailures(path, source, state.failuresBytes)
  let shown = 0
  return {
    /** How many bytes of the file stand afterwards. */
    take: (failures: readonly Failure[]): number => {
      if (file === undefined)
        for (const failure of failures.slice(0, SHOWN_FAILURES - shown))
          tell(`Line ${failure.line}: ${failure.message}`)
      shown = Math.min(SHOWN_FAILURES, shown + failures.length)
      if (file === undefined || failures.length === 0) return state.failuresBytes
      return (
        state.failuresBytes +
        writeSync(
          file,
          failures.map((failure) => `${JSON.stringify(failure)}\n`).join(''),
          state.failuresBytes,
        )
      )
    },
    close: () => {
      if (file !== undefined) closeSync(file)
    },
  }
}

/**
 * The state to begin with: that of the import that was broken off, when it is to be resumed and nothing has
 * changed.
 */
const beginning = (io: Io, path: string, typed: Typed, found: { sha256: string; options: string }): State => {
  const before = readState(path)
  if (before && !typed.own.has('resume'))
    io.stderr.write(
      `An import of this file was broken off after ${before.totals.rows} rows; --resume would have gone on from there.\n`,
    )
  if (before && typed.own.has('resume')) {
    if (before.sha256 !== found.sha256)
      throw usage(
        'The file has changed since its import was broken off.',
        '--resume',
        'Leave --resume out: rows that are there already are left as they are.',
      )
    if (before.options !== found.options)
      throw usage(
        'The import was broken off with other flags.',
        '--resume',
        'Give the same flags, or leave --resume out.',
      )
    return before
  }
  return {
    ...found,
    run: typed.idempotencyKey ?? randomUUID(),
    batches: 0,
    totals: { rows: 0, created: 0, updated: 0, unchanged: 0, failed: 0 },
    failuresBytes: 0,
  }
}

/** Flags that decide what a row becomes. */
const optionsOf = ({ own }: Typed): string =>
  JSON.stringify(['format', 'map', 'ignore', 'clear-empty', 'failures'].map((name) => own.get(name) ?? null))

/**
 * Imports a file: reads it whole, then sends it in batches, each under a key of its own, and notes what is
 * done. Gives the summary that is printed. What stops it (a key that is refused, a server that stays away)
 * is thrown; `--resume` then goes on.
 */
export const importFile = async (
  io: Io,
  to: Connection,
  spec: CommandSpec,
  typed: Typed,
): Promise<Record<string, unknown>> => {
  const began = performance.now()
  const rehearse = typed.dryRun === true
  if (rehearse && typed.own.has('resume')) throw usage('A rehearsal has nothing to resume.', '--resume')
  const source = await openSource(io, typed.args[0]!)
  try {
    const head = await headOf(source)
    const format = formatOf(source, head, typed.own.get('format')?.at(-1))
    const reader = await readerOf(
      source,
      format,
      head,
      await listAll<Field>(io, to, 'crm_list_custom_fields'),
      typed.own,
    )
    const progress = await importProgress(io)
    const found = await scan(reader, (bytes) => progress.reading(bytes, source.size)).finally(progress.end)
    if (reader.ignored().length > 0)
      io.stderr.write(`Left out, since it cannot be set: ${reader.ignored().join(', ')}.\n`)
    const groups = await findGroups(io, to, found.groups, {
      create: typed.own.has('create-groups'),
      rehearse,
    })
    const { value: who } = await callOperation(io, to, 'workspace_whoami', {})
    const path = statePath(
      io.env,
      to.url,
      (who['workspace'] as { id: string }).id,
      typed.args[0] === '-' ? '-' : source.path,
    )
    const state = beginning(io, path, typed, { sha256: found.sha256, options: optionsOf(typed) })
    const kept = typed.own.get('failures')?.at(-1)
    const sink = failureSink(kept, source, state, progress.line)
    const sentOf = (batch: Batch): Row[] => batch.rows.filter((row) => !row.wrong)
    let stopped = false
    let rehearsed = false

    const send = async (batch: Batch): Promise<Answer> => {
      const rows = sentOf(batch).map((row) => sentRow(row, groups))
      if (batch.at < state.batches || rows.length === 0)
        return { created: 0, updated: 0, unchanged: 0, failures: [] }
      const key = newDigest()
        .update(JSON.stringify([state.run, batch.at, rows]))
        .digest('hex')
      try {
        const { value } = await insist(
          () =>
            callOperation(
              io,
              to,
              spec.operation,
              { rows, ...(rehearse ? { dry_run: true } : {}) },
              { idempotencyKey: key },
            ),
          progress.wait,
          () => stopped,
        )
        return value as unknown as Answer
      } catch (error) {
        stopped = true
        throw error
      }
    }
    const settle = (batch: Batch, answer: Answer): void => {
      if (batch.at < state.batches) return
      const failures = failuresOf(batch, sentOf(batch), answer, groups)
      rehearsed ||= answer.dry_run === true
      const { totals } = state
      state.failuresBytes = sink.take(failures)
      state.batches = batch.at + 1
      state.totals = {
        rows: totals.rows + batch.rows.length,
        created: totals.created + answer.created,
        updated: totals.updated + answer.updated,
        unchanged: totals.unchanged + answer.unchanged,
        failed: totals.failed + failures.length,
      }
      if (!rehearse) writeState(path, state)
      progress.tell(state.totals, found.rows)
    }

    try {
      if (!rehearse) writeState(path, state)
      await sendInOrder(batchesOf(reader.rows()), send, settle)
    } catch (error) {
      throw rehearse
        ? error
        : Object.assign(error as Error, {
            hint: `Stopped after ${state.totals.rows} of ${found.rows} rows. To go on: the same command with --resume`,
          })
    } finally {
      progress.end()
      sink.close()
    }
    if (!rehearse) removeState(path)
    const { failed } = state.totals
    if (failed > 0 && kept !== undefined) io.stderr.write(`The rows that failed are in ${kept}.\n`)
    else if (failed > SHOWN_FAILURES)
      io.stderr.write(`${failed - SHOWN_FAILURES} more rows failed: --failures FILE keeps all of them.\n`)
    return {
      ...state.totals,
      seconds: Math.round((performance.now() - began) / 100) / 10,
      ...(rehearse || rehearsed ? { dry_run: true } : {}),
    }
  } finally {
    await source.file.close()
  }
}
