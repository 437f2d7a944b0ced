import { passingReasons } from './passing-reasons.ts'
import { WcrmError } from './problem.ts'

/** When a request is sent again. */
export type RetryPolicy = {
  /** Attempts after the first; 4 when absent. */
  readonly retries?: number | undefined
  /** Longest wait that a server may ask for, in milliseconds; 60,000 when absent. A longer one ends the attempts. */
  readonly maxWaitMs?: number | undefined
  /** Whether the next attempt may succeed; `mayPass` when absent. `attempts`: how many there were. */
  readonly isRetried?: (error: WcrmError, attempts: number) => boolean
  /** Is told of each failure, and of the milliseconds until the next attempt; undefined after the last. */
  readonly onFailure?: (error: WcrmError, attempts: number, waitMs: number | undefined) => void
}

const RETRIED_STATUS = [429, 502, 503, 504]
const MAX_WAIT_MS = 60_000
const FIRST_WAIT_MS = 200
const LONGEST_BACKOFF_MS = 10_000
/** What a timer takes; one of more fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Waits, 24 days at most; rejects when the signal does. */
export const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal!.reason as Error)
    }
    if (signal?.aborted) return reject(signal.reason as Error)
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', stop)
        resolve()
      },
      Math.min(ms, LONGEST_TIMER_MS),
    )
    signal?.addEventListener('abort', stop, { once: true })
  })

/**
 * Returns the milliseconds until the next attempt: what the server asks for, else longer each time with a random
 * part, so that clients do not come together. `failures`: how many there were before this one.
 */
export const getWaitMs = (failures: number, retryAfterSeconds: number | undefined): number =>
  retryAfterSeconds === undefined
    ? Math.min(LONGEST_BACKOFF_MS, FIRST_WAIT_MS * 2 ** failures) * (0.5 + Math.random() / 2)
    : retryAfterSeconds * 1000

/**
 * Whether the same request may succeed later. A server that lacks its configuration stays so, and a provider refuses
 * again.
 */
export const mayPass = ({ status, code, reason }: WcrmError): boolean =>
  status === 0 ||
  (reason !== undefined && passingReasons.has(reason)) ||
  (RETRIED_STATUS.includes(status) &&
    reason !== 'outcome_unknown' &&
    code !== 'service_unconfigured' &&
    code !== 'upstream_error')

/** Makes attempts until one succeeds, or the policy or the signal ends them. Throws the error of the last. */
export const retry = async <T>(
  { retries = 4, maxWaitMs = MAX_WAIT_MS, isRetried = mayPass, onFailure }: RetryPolicy,
  signal: AbortSignal | undefined,
  attempt: (number: number) => Promise<T>,
): Promise<T> => {
  for (let number = 1; ; number++) {
    try {
      return await attempt(number)
    } catch (error) {
      if (!(error instanceof WcrmError)) throw error
      const isOver = number > retries || signal?.aborted || !isRetried(error, number)
      const ms = getWaitMs(number - 1, error.retryAfterSeconds)
      const waitMs = isOver || ms > maxWaitMs ? undefined : ms
      onFailure?.(error, number, waitMs)
      if (waitMs === undefined) throw error
      await wait(waitMs, signal).catch(() => {
        throw error
      })
    }
  }
}
