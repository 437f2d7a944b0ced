const [MINUTE, HOUR] = [60, 3600]

/**
 * Seconds from one attempt to the next. The first attempt is made at once; a delivery is dead after the
 * tenth.
 */
const RETRY_DELAYS_SECONDS = [
  5,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]
const MAX_RETRY_AFTER_SECONDS = 24 * HOUR

/**
 * Seconds until the next attempt after so many failures, undefined when there is none; ±10 %, so that
 * deliveries that failed together are not retried together.
 * `retryAfter`: seconds that the receiver requested (`Retry-After`). It makes the delay longer, never
 * shorter.
 */
export const computeRetryDelay = (failures: number, retryAfter: number | undefined): number | undefined =>
  computeJitteredDelay(RETRY_DELAYS_SECONDS[failures - 1], retryAfter, MAX_RETRY_AFTER_SECONDS)

/** The delay ±10 %, or what the receiver requested if that is longer, up to a maximum; all in seconds. */
export const computeJitteredDelay = (
  delay: number | undefined,
  retryAfter: number | undefined,
  maxRetryAfter: number,
): number | undefined =>
  delay === undefined
    ? undefined
    : Math.max(delay * (0.9 + Math.random() * 0.2), Math.min(retryAfter ?? 0, maxRetryAfter))

/** Seconds of a `Retry-After` header: a number or a date (RFC 9110, 10.2.3). Undefined when it is neither. */
export const parseRetryAfter = (header: string | string[] | undefined): number | undefined => {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+$/.test(text)) return Number(text)
  const at = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1000)
}
