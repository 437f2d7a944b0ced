import { Problem } from '../core/problem.ts'
import { withDeadline } from '../core/steps/deadline.ts'

/** Less than the deadlines of a statement and of a read, so that it is the one that is met. */
const MOST_MS = 10_000

/** Runs a search or a count. Throws 504 `timeout`, reason `query_timeout`, when it takes too long. */
export const inFilterTime = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await withDeadline(MOST_MS, work)
  } catch (error) {
    const cut = (error as { code?: string }).code
    if (cut !== '57014' && cut !== 'timeout') throw error
    throw new Problem(
      'timeout',
      `The contacts could not be found within ${MOST_MS / 1000} seconds. Narrow the filter, for example to a tag or a range of dates.`,
      { reason: 'query_timeout' },
    )
  }
}
