import { errorCode, isConnectError } from '../../storage/client/error-codes.ts'
import { isDiskFullError } from './disk-full.ts'
import { Problem } from './problem.ts'

type DatabaseError = { code?: string }

const RETRY_SOON = { 'Retry-After': '2' }

/** Rejects with 504 when the work takes longer than `ms`: many statements, or the wait for a connection. */
export const withDeadline = <T>(ms: number, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        reject(
          new Problem(
            'timeout',
            'The work did not finish in time. Retry with the same Idempotency-Key; it never runs twice.',
            {},
            RETRY_SOON,
          ),
        ),
      ms,
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })

/**
 * Runs the parts of one call, which together may take `ms`: the time between them, such as that of a slow
 * upload, does not count.
 */
export const createCallDeadline = (ms: number): (<T>(part: () => Promise<T>) => Promise<T>) => {
  let leftMs = ms
  return async (part) => {
    const startedAt = performance.now()
    try {
      return await withDeadline(leftMs, part())
    } finally {
      leftMs -= performance.now() - startedAt
    }
  }
}

/** Errors of the connection while a statement was running, from the server or from this side. */
const CONNECTION_LOST = new Set([
  'ECONNRESET',
  'ETIMEDOUT',
  'EPIPE',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'RESPONSE_TIMEOUT',
  // Done at a server that may be gone: a repeat must not be told so.
  'COMMIT_NOT_REPLICATED',
  '57P01',
  '57P02',
])

/** SQLSTATEs and errors of this side that mean that the database cannot be reached or used. */
const UNREACHABLE = new Set([
  ...CONNECTION_LOST,
  'NO_SERVER',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EHOSTDOWN',
  'ENETDOWN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
  'ACQUIRE_TIMEOUT',
  '57P03',
  '25006',
  '25P03',
])

/**
 * Classes of SQLSTATEs: connection exceptions (poolers report all theirs so), insufficient resources, errors of the
 * server's disks and files.
 */
const UNREACHABLE_CLASSES = /^(?:08|53|58)...$/

const isUnreachable = (error: unknown): boolean => {
  const { code } = error as DatabaseError
  return (
    (code !== undefined && (UNREACHABLE.has(code) || UNREACHABLE_CLASSES.test(code))) || isConnectError(error)
  )
}

/**
 * True for an error that an outage of the database causes. Its connections can also be busy, and the storage closed
 * by this side.
 */
export const isDatabaseUnreachable = (error: unknown): boolean =>
  isUnreachable(error) && (error as DatabaseError).code !== 'CONNECTION_ENDED'

/** Errors of locks, after waiting or as the victim of a deadlock. */
const LOCK_ERRORS = new Set<string | undefined>([
  errorCode.lockNotAvailable,
  errorCode.serializationFailure,
  errorCode.deadlockDetected,
])

/** True when a connection was lost with its transaction, which may nevertheless be committed. */
export const isOutcomeLost = (error: unknown): boolean => {
  const { code } = error as DatabaseError
  return code !== undefined && (CONNECTION_LOST.has(code) || code.startsWith('08'))
}

/** Returns what an error of the database means to the client; undefined when it is a bug of the service. */
export const toDatabaseProblem = (error: unknown): Problem | undefined => {
  const { code } = error as DatabaseError
  if (code === errorCode.queryCanceled)
    return new Problem(
      'timeout',
      'The query did not finish in time. Narrow it, or retry with the same Idempotency-Key; ' +
        'it never runs twice.',
      {},
      RETRY_SOON,
    )
  // A unique key that the handler did not check first, or that a concurrent writer took.
  if (code === errorCode.uniqueViolation)
    return new Problem('conflict', 'A record with this value exists already.', { reason: 'duplicate' })
  if (LOCK_ERRORS.has(code)) {
    return new Problem(
      'timeout',
      'Other changes to the same records did not finish in time. Retry with the same Idempotency-Key; ' +
        'it never runs twice.',
      {},
      RETRY_SOON,
    )
  }
  if (isDiskFullError(error))
    return new Problem(
      'upstream_unavailable',
      'The disk of the database is full, so it accepts no changes; reads go on. Free some space on the ' +
        "database's disk, then retry with the same Idempotency-Key.",
      { reason: 'disk_full' },
      { 'Retry-After': '30' },
    )
  if (isUnreachable(error))
    return new Problem(
      'upstream_unavailable',
      code === 'ACQUIRE_TIMEOUT'
        ? 'All connections to the database are busy. Retry with backoff.'
        : 'The database cannot be reached at the moment. Retry with backoff.',
      {},
      RETRY_SOON,
    )
  return undefined
}
