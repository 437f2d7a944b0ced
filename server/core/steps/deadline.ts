import { isUnwritten } from '../../../storage/deferred-write.ts'
import { Problem } from '../problem.ts'

type DatabaseError = { code?: string; constraint_name?: string }

/** Serialisation faults, deadlocks, and the race of two requests for one idempotency key. */
export const isRetryable = (error: unknown): boolean => {
  const { code, constraint_name: constraint } = error as DatabaseError
  return (
    code === '40001' ||
    code === '40P01' ||
    isUnwritten(error) ||
    (code === '23505' && constraint === 'idempotency_pkey')
  )
}

/**
 * Answers 504 when the work takes longer, in milliseconds: many statements, each within its own time, or
 * the wait for a turn.
 */
export const withDeadline = <T>(ms: number, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        reject(
          new Problem(
            'timeout',
            `The work did not finish in ${ms / 1000} seconds. Retry with the same Idempotency-Key; it never runs twice.`,
          ),
        ),
      ms,
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EPIPE',
  'ENOENT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '08006',
  '08001',
  '08003',
  '25006',
])

/** What a failure of the database means to the client; undefined when it is a fault of ours. */
export const databaseProblem = (error: unknown): Problem | undefined => {
  const { code } = error as DatabaseError
  if (code === '57014')
    return new Problem(
      'timeout',
      'The query did not finish in time. Narrow it, or retry with the same Idempotency-Key; it never runs twice.',
    )
  // A unique key that a handler did not look at first, or a writer who was a moment quicker.
  if (code === '23505')
    return new Problem('conflict', 'There is a record with this value already.', { reason: 'duplicate' })
  if (code === '55P03' || code === '40001' || code === '40P01') {
    return new Problem(
      'timeout',
      'Other changes to the same records did not finish in time. Retry with the same Idempotency-Key; it never runs twice.',
    )
  }
  if (code !== undefined && UNREACHABLE.has(code))
    return new Problem(
      'upstream_unavailable',
      'The database cannot be reached at the moment. Retry with backoff.',
      {},
      { 'Retry-After': '2' },
    )
  return undefined
}
