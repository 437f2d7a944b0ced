import { isExpectationFailed } from '../../storage/client/deferred-write.ts'
import { errorCode } from '../../storage/client/error-codes.ts'

const MAX_ATTEMPTS = 4
/** Keys of which the call itself says, when it runs again, that another one took them. */
const RETRYABLE_KEYS = new Set(['idempotency_pkey', 'contacts_external_id', 'contacts_line'])

/**
 * True for failures that a new transaction may not meet: serialization failures, deadlocks, a deferred write
 * that did not write its row, and the race of two requests for one idempotency key, external id or phone line.
 */
const isRetryable = (error: unknown): boolean => {
  const { code, constraint_name: constraint } = error as { code?: string; constraint_name?: string }
  return (
    code === errorCode.serializationFailure ||
    code === errorCode.deadlockDetected ||
    isExpectationFailed(error) ||
    (code === errorCode.uniqueViolation && constraint !== undefined && RETRYABLE_KEYS.has(constraint))
  )
}

/** Runs `work`, which must begin its own transaction, again while it fails with a retryable error. */
export const withRetries = async <T>(
  work: (attempt: number) => Promise<T>,
  maxAttempts = MAX_ATTEMPTS,
): Promise<T> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt)
    } catch (error) {
      if (attempt >= maxAttempts || !isRetryable(error)) throw error
    }
  }
}
