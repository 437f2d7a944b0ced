import { Problem } from '../problem.ts'

type DatabaseError = { code?: string }

/** Rejects with 504 when the work takes longer than `ms`: many statements, or the wait for a connection. */
export const withDeadline = <T>(ms: number, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        reject(
          new Problem(
            'timeout',
            `The work did not finish in ${ms / 1000} seconds. Retry with the same Idempotency-Key; ` +
              'it never runs twice.',
          ),
        ),
      ms,
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })

/**
 * Returns what may be logged of an error. The text of a database error can quote a row, phone numbers
 * included, so only its code and position are logged.
 */
export const describeDatabaseError = (error: unknown): Record<string, string | undefined> => {
  const {
    code,
    table_name: table,
    constraint_name: constraint,
    routine,
    stack,
  } = error as Record<string, string | undefined>
  return code ? { code, table, constraint, routine } : { stack }
}

/** SQLSTATEs and socket errors that mean that the database cannot be reached. */
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

/** Returns what an error of the database means to the client; undefined when it is a bug of the service. */
export const toDatabaseProblem = (error: unknown): Problem | undefined => {
  const { code } = error as DatabaseError
  if (code === '57014')
    return new Problem(
      'timeout',
      'The query did not finish in time. Narrow it, or retry with the same Idempotency-Key; ' +
        'it never runs twice.',
    )
  // A unique key that the handler did not check first, or that a concurrent writer took.
  if (code === '23505')
    return new Problem('conflict', 'A record with this value exists already.', { reason: 'duplicate' })
  if (code === '55P03' || code === '40001' || code === '40P01') {
    return new Problem(
      'timeout',
      'Other changes to the same records did not finish in time. Retry with the same Idempotency-Key; ' +
        'it never runs twice.',
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
