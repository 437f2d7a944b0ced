import { randomUUID } from 'node:crypto'
import type { Answer } from './answer.ts'
import { type CliError, cliError, usageError } from './error.ts'
import { isAskedError } from './import/asked.ts'
import type { ImportField } from './import/columns.ts'
import { createFileSink, createPrintingSink, MAX_PRINTED_FAILURES } from './import/failures.ts'
import { resolveImportGroups } from './import/groups.ts'
import { createImportProgress } from './import/progress.ts'
import { createReader, type ImportScan, scanFile } from './import/reader.ts'
import { detectFormat, type ImportSource, openSource, readHead } from './import/source.ts'
import { type ImportState, readState, removeState, statePath, writeState } from './import/state.ts'
import { uploadRows } from './import/upload.ts'
import { withSignals } from './interruption.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import type { ParsedCommand } from './parsed-command.ts'
import { fetchAllPages } from './pages.ts'
import { callOperation, type ServerConnection } from './remote.ts'
import { formatCell } from './text.ts'

const summaryFields = {
  rows: 'Rows in the file.',
  created: 'Contacts created.',
  updated: 'Rows that changed a contact.',
  unchanged: 'Rows that matched their contact already.',
  failed: 'Rows that failed.',
  seconds: 'Duration in seconds.',
  dry_run: 'Present on a dry run: nothing was changed.',
}

/** Returns the spec of the command when it reads a file: its output is a summary. */
export const toFileImportSpec = (spec: CommandSpec): CommandSpec => ({
  ...spec,
  output: {
    fields: Object.entries(summaryFields).map(([name, about]) => ({ name, type: 'integer', about })),
    envelope: [],
    columns: [],
  },
})

/** Flags that affect how a row is imported. */
const ROW_FLAGS = ['format', 'map', 'ignore', 'clear-empty', 'failures']

/**
 * Imports a file: reads it once to check it, then sends it in batches and records the progress on disk.
 * Returns the summary, or the request for the approval of a person where the next rows need one. Throws when a call
 * fails for good, such as a refused key or an unavailable server. In both cases `--resume` continues the import.
 */
export const importFile = async (
  to: ServerConnection,
  spec: CommandSpec,
  parsed: ParsedCommand,
): Promise<Answer> => {
  const { io } = to
  const startedAt = performance.now()
  if (parsed.dryRun === true && parsed.cliFlags.has('resume'))
    throw usageError('A dry run cannot be resumed.', '--resume', 'Leave --resume or --dry-run out.')
  const source = await openSource(io, parsed.args[0]!)
  try {
    const summary = await importSource({ to, operation: spec.operation }, parsed, source)
    const value = {
      ...summary.totals,
      seconds: Math.round((performance.now() - startedAt) / 100) / 10,
      ...(summary.dryRun ? { dry_run: true } : {}),
    }
    return { value }
  } catch (error) {
    if (!isAskedError(error)) throw error
    io.stderr.write('After approval, run the same command with --resume to continue the import.\n')
    return error.asked
  } finally {
    await source.file.close()
  }
}

const importSource = async (
  { to, operation }: { to: ServerConnection; operation: string },
  parsed: ParsedCommand,
  source: ImportSource,
): Promise<{ totals: ImportState['totals']; dryRun: boolean }> => {
  const { io } = to
  const { cliFlags } = parsed
  const { workspace, key } = (await callOperation(to, 'workspace_whoami', {})).value as {
    workspace: { id: string }
    key: { test: boolean }
  }
  // What a test key does is no progress of the import, which a live key could then take for done.
  const dryRun = parsed.dryRun === true || key.test
  if (dryRun && cliFlags.has('resume'))
    throw usageError('With a test key every import is a dry run, which cannot be resumed.', '--resume')
  const format = detectFormat(source, await readHead(source), cliFlags.get('format')?.at(-1))
  const { value: fields } = await fetchAllPages(to, 'crm_list_custom_fields', { limit: 100 })
  const reader = await createReader({ source, format }, fields['data'] as ImportField[], cliFlags)
  const progress = await createImportProgress(io)
  const scan = await scanFile(reader, (bytes) => progress.showBytesRead(bytes, source.size)).finally(
    progress.end,
  )
  if (reader.ignored().length > 0)
    io.stderr.write(`Ignored, because these fields are read-only: ${formatCell(reader.ignored())}.\n`)
  const groupIds = await resolveImportGroups(to, scan.groups, {
    create: cliFlags.has('create-groups'),
    dryRun,
  })
  const path = statePath(io.env, [to.url, workspace.id, parsed.args[0] === '-' ? '-' : source.path])
  const state = loadState({ io, path }, parsed, scan)
  const failuresPath = cliFlags.get('failures')?.at(-1)
  const failures =
    failuresPath === undefined
      ? createPrintingSink(progress.printLine)
      : createFileSink(failuresPath, source, state.failuresBytes)
  let repeated: number
  try {
    repeated = await withSignals(
      (exitCode) => toInterruption(exitCode, dryRun),
      (signal) =>
        uploadRows({
          to,
          operation,
          rows: reader.rows(),
          totalRows: scan.rows,
          groupIds,
          dryRun,
          signal,
          progress,
          failures,
          state,
          saveState: dryRun ? () => {} : (current) => writeState(path, current),
        }),
    )
  } catch (error) {
    const done = `${state.totals.rows} of ${scan.rows} rows`
    const hint = `Stopped after ${done}. To continue, run the same command with --resume`
    throw dryRun ? error : Object.assign(error as Error, { hint })
  } finally {
    progress.end()
    failures.close()
  }
  if (!dryRun) removeState(path)
  printFailureNote(io, state.totals.failed, failuresPath)
  if (repeated > 0)
    io.stderr.write(
      `Rows that repeat a phone or external id of earlier rows: ${repeated}. A dry run cannot predict ` +
        'their result, because it keeps nothing of the earlier rows.\n',
    )
  return { totals: state.totals, dryRun }
}

/**
 * Returns the state to start with: with `--resume` that of the interrupted import, otherwise a new one.
 * Throws a usage error when the file or the flags differ from those of the interrupted import.
 */
const loadState = (
  { io, path }: { io: Io; path: string },
  parsed: ParsedCommand,
  { sha256 }: ImportScan,
): ImportState => {
  const options = JSON.stringify(ROW_FLAGS.map((name) => parsed.cliFlags.get(name) ?? null))
  const interrupted = readState(path)
  if (!interrupted || !parsed.cliFlags.has('resume')) {
    if (interrupted)
      io.stderr.write(
        `An import of this file was interrupted after ${interrupted.totals.rows} rows; ` +
          '--resume would have continued it.\n',
      )
    return {
      sha256,
      options,
      run: parsed.idempotencyKey ?? randomUUID(),
      batches: 0,
      totals: { rows: 0, created: 0, updated: 0, unchanged: 0, failed: 0 },
      failuresBytes: 0,
    }
  }
  if (interrupted.sha256 !== sha256)
    throw usageError(
      'The file has changed since its import was interrupted.',
      '--resume',
      'Leave --resume out: rows that were already imported remain unchanged.',
    )
  if (interrupted.options !== options)
    throw usageError(
      'The interrupted import had different flags.',
      '--resume',
      'Use the same flags, or leave --resume out.',
    )
  return interrupted
}

const toInterruption = (exitCode: number, dryRun: boolean): CliError =>
  cliError(exitCode, {
    type: 'about:blank',
    title: 'Interrupted',
    code: 'interrupted',
    detail: dryRun
      ? 'Nothing was changed.'
      : 'Rows in flight may have been imported; --resume imports none of them twice.',
  })

const printFailureNote = (io: Io, failed: number, failuresPath: string | undefined): void => {
  if (failed > 0 && failuresPath !== undefined) io.stderr.write(`The failed rows are in ${failuresPath}.\n`)
  else if (failed > MAX_PRINTED_FAILURES)
    io.stderr.write(
      `${failed - MAX_PRINTED_FAILURES} more rows failed: --failures FILE writes all of them to a file.\n`,
    )
}
