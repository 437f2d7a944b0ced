import { setTimeout as sleep } from 'node:timers/promises'
import { isFault } from './fault.ts'
import type { Io } from './io.ts'
import { callOperation, type Connection, type Reply, retryAfterOf } from './remote.ts'

const LONGEST_WAIT_S = 120

/** Reads are safe to send again: a page refused by the rate limit is asked for when the limit says so. */
const patiently = async (io: Io, ask: () => Promise<Reply>): Promise<Reply> => {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const seconds = retryAfterOf(error)
      if (!isFault(error) || error.exit !== 7 || seconds === undefined || seconds > LONGEST_WAIT_S)
        throw error
      io.stderr.write(`Rate limited: going on in ${seconds} s.\n`)
      await sleep(seconds * 1000)
    }
  }
}

/** The pages of a list, one after the other. */
export async function* pagesOf(
  io: Io,
  to: Connection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
): AsyncGenerator<Record<string, unknown>> {
  for (let cursor: unknown; cursor !== null;) {
    const { value } = await patiently(io, () =>
      callOperation(io, to, operation, typeof cursor === 'string' ? { ...input, cursor } : input),
    )
    yield value
    cursor = value['next_cursor'] ?? null
  }
}

/** Every page of a list as one answer: the first page's envelope, all rows, and no next cursor. */
export const allPages = async (
  io: Io,
  to: Connection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> => {
  let first: Record<string, unknown> | undefined
  const rows: unknown[] = []
  for await (const page of pagesOf(io, to, operation, input)) {
    first ??= page
    for (const row of page['data'] as unknown[]) rows.push(row)
  }
  return { ...first, data: rows, next_cursor: null }
}
