import { setTimeout as sleep } from 'node:timers/promises'
import { isCliError } from './error.ts'
import type { Io } from './io.ts'
import { callOperation, type ServerConnection, type ApiResponse, retryAfterSeconds } from './remote.ts'

const MAX_RATE_LIMIT_WAIT_SECONDS = 120

/** Retries a read that the rate limit refused, after the time that `Retry-After` names. */
const waitOutRateLimit = async (io: Io, request: () => Promise<ApiResponse>): Promise<ApiResponse> => {
  for (;;) {
    try {
      return await request()
    } catch (error) {
      const seconds = retryAfterSeconds(error)
      if (
        !isCliError(error) ||
        error.exitCode !== 7 ||
        seconds === undefined ||
        seconds > MAX_RATE_LIMIT_WAIT_SECONDS
      )
        throw error
      io.stderr.write(`Rate limited: continuing in ${seconds} s.\n`)
      await sleep(seconds * 1000)
    }
  }
}

/** Yields the pages of a list. */
export async function* fetchPages(
  io: Io,
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
): AsyncGenerator<ApiResponse> {
  for (let cursor: unknown; cursor !== null;) {
    const page = await waitOutRateLimit(io, () =>
      callOperation(io, to, operation, typeof cursor === 'string' ? { ...input, cursor } : input),
    )
    yield page
    cursor = page.value['next_cursor'] ?? null
  }
}

/** Returns all pages of a list as one: the first page's envelope, all rows, and no next cursor. */
export const fetchAllPages = async (
  io: Io,
  to: ServerConnection,
  operation: string,
  input: Readonly<Record<string, unknown>>,
): Promise<Pick<ApiResponse, 'value' | 'clock'>> => {
  let first: Record<string, unknown> | undefined
  const rows: unknown[] = []
  let clock: ApiResponse['clock']
  for await (const page of fetchPages(io, to, operation, input)) {
    first ??= page.value
    clock ??= page.clock
    for (const row of page.value['data'] as unknown[]) rows.push(row)
  }
  return { value: { ...first, data: rows, next_cursor: null }, clock }
}
