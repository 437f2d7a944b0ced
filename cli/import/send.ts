import { setTimeout as sleep } from 'node:timers/promises'
import { isCliError } from '../error.ts'
import { retryAfterSeconds } from '../remote.ts'
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
      pending.push({ batch, phoneSuffixes, response: send(batch) })
    }
    while (pending.length > 0) await completeFirst()
  } finally {
    await Promise.allSettled(pending.map(({ response }) => response))
  }
}

const MAX_ATTEMPTS = 8
const FIRST_RETRY_SECONDS = 0.25
const MAX_RATE_LIMIT_WAIT_SECONDS = 120

/** True when a retry under the same key may succeed: a server error, or the first call still runs. */
const isRetryable = (error: unknown): boolean =>
  isCliError(error) && ((error.problem.status ?? 0) >= 500 || error.problem['reason'] === 'still_running')

/**
 * Retries a call: after the wait of a rate limit, and after retryable errors with exponential backoff.
 * `onWait` is told the reason and the seconds of each wait; nothing is retried once `isStopped` returns true.
 */
export const callWithRetry = async <T>(
  call: () => Promise<T>,
  { onWait, isStopped }: { onWait: (reason: string, seconds: number) => void; isStopped: () => boolean },
): Promise<T> => {
  for (let attempts = 0; ;) {
    try {
      return await call()
    } catch (error) {
      if (isStopped() || !isCliError(error)) throw error
      const retryAfter = retryAfterSeconds(error)
      const isRateLimited = error.exitCode === 7
      if (
        isRateLimited
          ? retryAfter === undefined || retryAfter > MAX_RATE_LIMIT_WAIT_SECONDS
          : !isRetryable(error) || ++attempts === MAX_ATTEMPTS
      )
        throw error
      const seconds = isRateLimited
        ? retryAfter!
        : Math.max(retryAfter ?? 0, FIRST_RETRY_SECONDS * 2 ** attempts)
      onWait(isRateLimited ? 'Rate limited' : error.problem.title, seconds)
      await sleep(seconds * 1000)
    }
  }
}
