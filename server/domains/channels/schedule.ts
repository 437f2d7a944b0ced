import { computeJitteredDelay } from '../webhooks/schedule.ts'

const [MINUTE, HOUR] = [60, 3600]

/**
 * Seconds from one attempt to the next. It is shorter than that of webhooks: a customer waits for the reply, and
 * staff should learn on the same day that it did not arrive. The eighth failure is the last.
 */
const RETRY_DELAYS_SECONDS = [5, 30, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR]
const MAX_RETRY_AFTER_SECONDS = 2 * HOUR

/**
 * Seconds until the next attempt after so many failures, ±10 %; undefined when there is none. `retryAfter`:
 * seconds that the bridge asked for, which make it longer, never shorter.
 */
export const computeChannelRetryDelay = (
  failures: number,
  retryAfter: number | undefined,
): number | undefined =>
  computeJitteredDelay(RETRY_DELAYS_SECONDS[failures - 1], retryAfter, MAX_RETRY_AFTER_SECONDS)
