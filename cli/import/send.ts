import { MAX_ROW_CHARACTERS } from './source.ts'
import type { ParsedRow } from './rows.ts'

/** Rows in file order, rejected ones included. `index` counts from 0. */
export type ImportBatch = { readonly index: number; readonly rows: readonly ParsedRow[] }

const MAX_BATCH_ROWS = 500
/** Two or three batches in flight keep a server busy while the next ones are read. */
const MAX_IN_FLIGHT = 3

/** Splits rows into batches. The same rows always make the same batches, so an index identifies a batch. */
export async function* createBatches(rows: AsyncIterable<ParsedRow>): AsyncGenerator<ImportBatch> {
  let batch: ParsedRow[] = []
  let [index, size] = [0, 0]
  for await (const row of rows) {
    const length = JSON.stringify(row.draft).length
    if (batch.length === MAX_BATCH_ROWS || (batch.length > 0 && size + length > MAX_ROW_CHARACTERS)) {
      yield { index: index++, rows: batch }
      ;[batch, size] = [[], 0]
    }
    batch.push(row)
    size += length
  }
  if (batch.length > 0) yield { index, rows: batch }
}

/**
 * Returns the last eight digits of a phone number, which all spellings of it share. Undefined when the text
 * is not obviously a phone number.
 */
const phoneSuffix = (phone: unknown): string | undefined =>
  typeof phone === 'string' && /^[\d+()\-./\s]+$/.test(phone)
    ? phone.replaceAll(/\D/g, '').slice(-8)
    : undefined

/**
 * True when two batches may hold the same phone: in flight together, its rows could be applied out of order.
 */
const mayOverlap = (a: ReadonlySet<string | undefined>, b: ReadonlySet<string | undefined>): boolean =>
  a.has(undefined) || b.has(undefined) || [...a].some((suffix) => b.has(suffix))

type PendingBatch<T> = {
  readonly batch: ImportBatch
  readonly phoneSuffixes: ReadonlySet<string | undefined>
  readonly response: Promise<T>
}

/**
 * Sends batches, up to three at a time, and completes them in order. Rejects with the first failure once all
 * batches in flight have ended.
 */
export const sendInOrder = async <T>(
  batches: AsyncIterable<ImportBatch>,
  send: (batch: ImportBatch) => Promise<T>,
  complete: (batch: ImportBatch, response: T) => void,
): Promise<void> => {
  const pending: PendingBatch<T>[] = []
  const completeFirst = async () => {
    const [first] = pending as [PendingBatch<T>]
    complete(first.batch, await first.response)
    pending.shift()
  }
  try {
    for await (const batch of batches) {
      const phoneSuffixes = new Set(
        batch.rows.filter((row) => !row.rejection).map((row) => phoneSuffix(row.draft.phone)),
      )
      while (
        pending.length === MAX_IN_FLIGHT ||
        pending.some((other) => mayOverlap(other.phoneSuffixes, phoneSuffixes))
      )
        await completeFirst()
      const response = send(batch)
      // It may fail while an earlier one is awaited: unhandled, that would end the process without a word on resuming.
      response.catch(() => {})
      pending.push({ batch, phoneSuffixes, response })
    }
    while (pending.length > 0) await completeFirst()
  } finally {
    await Promise.allSettled(pending.map(({ response }) => response))
  }
}
