import { Problem } from '../core/problem.ts'
import { withDeadline } from '../core/steps/deadline.ts'

/** Shorter than the deadlines of a statement and of a read, so that it expires first. */
const FILTER_TIMEOUT_MS = 10_000

/** Runs a search or a count. Throws 504 `timeout`, reason `query_timeout`, when it takes too long. */
export const withFilterTimeout = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await withDeadline(FILTER_TIMEOUT_MS, work)
  } catch (error) {
    const code = (error as { code?: string }).code
    if (code !== '57014' && code !== 'timeout') throw error
    throw new Problem(
      'timeout',
      `The contacts could not be found within ${FILTER_TIMEOUT_MS / 1000} seconds. Narrow the ` +
        'filter, for example to a tag or a range of dates.',
      { reason: 'query_timeout' },
    )
  }
}
