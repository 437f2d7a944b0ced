import { BATCH_FAILURES, createPatientPolicy, type ServerConnection } from '../remote.ts'
import { callUnlessAsked } from './asked.ts'
import type { FailureSink, RowFailure } from './failures.ts'
import type { GroupIds } from './groups.ts'
import type { ImportProgress } from './progress.ts'
import type { ParsedRow } from './rows.ts'
import { createBatches, type ImportBatch, sendInOrder } from './send.ts'
import { createSha256 } from './source.ts'
import type { ImportState } from './state.ts'

type BatchResponse = {
  created: number
  updated: number
  unchanged: number
  failures: readonly { row: number; code: string; message: string; errors: readonly { pointer: string }[] }[]
}

export type UploadOptions = {
  readonly to: ServerConnection
  readonly operation: string
  readonly rows: AsyncIterable<ParsedRow>
  readonly totalRows: number
  readonly groupIds: GroupIds
  readonly dryRun: boolean
  /** Ends the upload; its reason is thrown. */
  readonly signal: AbortSignal
  readonly progress: ImportProgress
  readonly failures: FailureSink
  /** Updated after each batch. Its first batches were done before and are skipped. */
  readonly state: ImportState
  readonly saveState: (state: ImportState) => void
}

/**
 * Sends the rows in batches, each under an idempotency key of its own, and records the progress in `state`. Returns how
 * many rows of a dry run may end otherwise in the import, because they name contacts of earlier batches.
 */
export const uploadRows = async (options: UploadOptions): Promise<number> => {
  const { to, operation, dryRun, progress, state } = options
  const countRepeats = createRepeatCounter()
  let stopped = false
  let repeated = 0

  const send = async (batch: ImportBatch): Promise<BatchResponse> => {
    const rows = sendableRows(batch).map((row) => toRequestRow(row, options.groupIds))
    if (batch.index < state.batches || rows.length === 0)
      return { created: 0, updated: 0, unchanged: 0, failures: [] }
    const idempotencyKey = createSha256()
      .update(JSON.stringify([state.run, batch.index, rows]))
      .digest('hex')
    const input = { rows, ...(dryRun ? { dry_run: true } : {}) }
    try {
      const isStopped = (): boolean => stopped
      const policy = createPatientPolicy(to, {
        onWait: progress.showWait,
        failures: BATCH_FAILURES,
        isStopped,
      })
      const value = await callUnlessAsked(to, operation, input, {
        idempotencyKey,
        policy,
        signal: options.signal,
      })
      return value as unknown as BatchResponse
    } catch (error) {
      stopped = true
      throw error
    }
  }

  const complete = (batch: ImportBatch, response: BatchResponse): void => {
    if (batch.index < state.batches) return
    const failures = collectFailures(batch, response, options.groupIds)
    if (dryRun) repeated += countRepeats(batch)
    const { totals } = state
    state.failuresBytes = options.failures.write(failures)
    state.batches = batch.index + 1
    state.totals = {
      rows: totals.rows + batch.rows.length,
      created: totals.created + response.created,
      updated: totals.updated + response.updated,
      unchanged: totals.unchanged + response.unchanged,
      failed: totals.failed + failures.length,
    }
    options.saveState(state)
    progress.showTotals(state.totals, options.totalRows)
  }

  options.saveState(state)
  await sendInOrder(createBatches(options.rows), send, complete)
  return repeated
}

const sendableRows = (batch: ImportBatch): ParsedRow[] => batch.rows.filter((row) => !row.rejection)

/** Replaces the names of groups by their ids. */
const toRequestRow = (
  { draft: { groups, ...row } }: ParsedRow,
  groupIds: GroupIds,
): Record<string, unknown> => {
  if (groups === undefined) return row
  const ids = groups.map((name) => groupIds.get(name)).filter((id) => id !== null)
  return { ...row, group_ids: [...((row['group_ids'] ?? []) as unknown[]), ...ids] }
}

/** Returns the rejected rows and those that the server refused, in file order, with pointers into the row. */
const collectFailures = (batch: ImportBatch, response: BatchResponse, groupIds: GroupIds): RowFailure[] => {
  const sent = sendableRows(batch)
  const rejected = batch.rows.flatMap((row) =>
    row.rejection ? [{ line: row.line, row: toRequestRow(row, groupIds), ...row.rejection }] : [],
  )
  const refused = response.failures.map(({ row, code, message, errors }) => ({
    line: sent[row]!.line,
    row: toRequestRow(sent[row]!, groupIds),
    code,
    message,
    errors: errors.map((error) => ({ ...error, pointer: error.pointer.replace(`#/rows/${row}`, '#') })),
  }))
  return [...rejected, ...refused].toSorted((a, b) => a.line - b.line)
}

/** What names the contact of a row: numbers are phones, which take less memory than texts. */
const listKeys = ({ draft: { phone, external_id: externalId } }: ParsedRow): (number | string)[] => {
  const digits =
    typeof phone === 'string' || typeof phone === 'number' ? String(phone).replaceAll(/\D/g, '') : ''
  return [
    ...(digits === '' ? [] : [Number(digits)]),
    ...(typeof externalId === 'string' && externalId !== '' ? [externalId] : []),
  ]
}

/**
 * Returns a function that counts the rows of a batch that name a contact of an earlier batch. A dry run leaves nothing
 * of that for the later one to find.
 */
const createRepeatCounter = (): ((batch: ImportBatch) => number) => {
  const seen = new Set<number | string>()
  return ({ rows }) => {
    const keys = rows.filter((row) => !row.rejection).map(listKeys)
    const repeated = keys.filter((ofRow) => ofRow.some((key) => seen.has(key))).length
    for (const key of keys.flat()) seen.add(key)
    return repeated
  }
}
