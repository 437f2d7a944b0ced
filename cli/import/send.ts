import { setTimeout as sleep } from 'node:timers/promises'
import { isFault } from '../fault.ts'
import { retryAfterOf } from '../remote.ts'
import { LONGEST_ROW } from './source.ts'
import type { Row } from './rows.ts'

/** Rows in their order, with those that must not be sent among them. */
export type Batch = { readonly at: number; readonly rows: readonly Row[] }

const MOST_ROWS = 500
/** Two or three are enough to keep a server busy while the next ones are read. */
const IN_FLIGHT = 3

/** The same rows always make the same batches, so that a batch can be named by its number. */
export async function* batchesOf(rows: AsyncIterable<Row>): AsyncGenerator<Batch> {
  let batch: Row[] = []
  let [at, size] = [0, 0]
  for await (const row of rows) {
    const length = JSON.stringify(row.draft).length
    if (batch.length === MOST_ROWS || (batch.length > 0 && size + length > LONGEST_ROW)) {
      yield { at: at++, rows: batch }
      ;[batch, size] = [[], 0]
    }
    batch.push(row)
    size += length
  }
  if (batch.length > 0) yield { at, rows: batch }
}

/**
 * What two spellings of one phone number have in common: its last digits. Undefined where that is not plain
 * to see.
 */
const phoneEnd = (phone: unknown): string | undefined =>
  typeof phone === 'string' && /^[\d+()\-./\s]+$/.test(phone)
    ? phone.replaceAll(/\D/g, '').slice(-8)
    : undefined

/** Two batches that may hold one phone must not be on their way together: its rows would change places. */
const meet = (a: ReadonlySet<string | undefined>, b: ReadonlySet<string | undefined>): boolean =>
  a.has(undefined) || b.has(undefined) || [...a].some((end) => b.has(end))

type Flight<T> = {
  readonly batch: Batch
  readonly phones: ReadonlySet<string | undefined>
  readonly answer: Promise<T>
}

/**
 * Sends batches, some at once, and settles them in their order. The first failure ends it, when those on
 * their way have come back.
 */
export const sendInOrder = async <T>(
  batches: AsyncIterable<Batch>,
  send: (batch: Batch) => Promise<T>,
  settle: (batch: Batch, answer: T) => void,
): Promise<void> => {
  const flights: Flight<T>[] = []
  const settleFirst = async () => {
    const [first] = flights as [Flight<T>]
    settle(first.batch, await first.answer)
    flights.shift()
  }
  try {
    for await (const batch of batches) {
      const phones = new Set(batch.rows.filter((row) => !row.wrong).map((row) => phoneEnd(row.draft.phone)))
      while (flights.length === IN_FLIGHT || flights.some((other) => meet(other.phones, phones)))
        await settleFirst()
      flights.push({ batch, phones, answer: send(batch) })
    }
    while (flights.length > 0) await settleFirst()
  } finally {
    await Promise.allSettled(flights.map(({ answer }) => answer))
  }
}

const TRIES = 8
const FIRST_WAIT_S = 0.25
const LONGEST_WAIT_S = 120

/**
 * Worth asking again under the same key: the server is away or broken for now, or still works on the first
 * asking.
 */
const mayPass = (error: unknown): boolean =>
  isFault(error) && ((error.problem.status ?? 0) >= 500 || error.problem['reason'] === 'still_running')

/**
 * Asks until there is an answer: waits out the rate limit, and what may pass with growing pauses. `tell`
 * hears why it waits, `stopped` ends the waiting.
 */
export const insist = async <T>(
  ask: () => Promise<T>,
  tell: (why: string, seconds: number) => void,
  stopped: () => boolean,
): Promise<T> => {
  for (let tries = 0; ;) {
    try {
      return await ask()
    } catch (error) {
      if (stopped() || !isFault(error)) throw error
      const asked = retryAfterOf(error)
      const limited = error.exit === 7
      if (limited ? asked === undefined || asked > LONGEST_WAIT_S : !mayPass(error) || ++tries === TRIES)
        throw error
      const seconds = limited ? asked! : Math.max(asked ?? 0, FIRST_WAIT_S * 2 ** tries)
      tell(limited ? 'Rate limited' : error.problem.title, seconds)
      await sleep(seconds * 1000)
    }
  }
}
