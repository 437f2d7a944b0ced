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
      if (!isFault(error) || error.exit !== 7 || seconds === undefined || seconds > LONGEST_WAIT_S) throw error
      io.stderr.write(`Rate limited: going on in ${seconds} s.\n`)
      await sleep(seconds * 1000)
    }
  }
}

/** Every page of a list as one answer: the first page's envelope, all rows, and no next cursor. */
export const allPages = async (io: Io, to: Connection, operation: string, input: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> => {
  const first = await patiently(io, () => callOperation(io, to, operation, input))
  const rows = [...first.value['data'] as unknown[]]
  for (let cursor = first.value['next_cursor']; typeof cursor === 'string';) {
    const { value } = await patiently(io, () => callOperation(io, to, operation, { ...input, cursor }))
    for (const row of value['data'] as unknown[]) rows.push(row)
    cursor = value['next_cursor']
  }
  return { ...first.value, data: rows, next_cursor: null }
}
