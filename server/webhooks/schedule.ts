const [MINUTE, HOUR] = [60, 3600]

/**
 * Seconds from one attempt to the next (contract 6): the first is made at once, and after the tenth a
 * delivery is dead.
 */
const DELAYS = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]
const LONGEST_WISH = 24 * HOUR

/**
 * Seconds until the next attempt after so many failures, undefined when there is none; ±10 %, so that what
 * failed together does not come back together.
 * `wish`: what the receiver asked for (`Retry-After`). It is a least time: it makes the wait longer, never
 * shorter.
 */
export const nextDelay = (failures: number, wish: number | undefined): number | undefined => {
  const delay = DELAYS[failures - 1]
  return delay === undefined
    ? undefined
    : Math.max(delay * (0.9 + Math.random() * 0.2), Math.min(wish ?? 0, LONGEST_WISH))
}

/**
 * Seconds that a `Retry-After` header asks for: a number of them, or a date (RFC 9110, 10.2.3). Undefined
 * when it says neither.
 */
export const retryAfter = (header: string | string[] | undefined, now = Date.now()): number | undefined => {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+$/.test(text)) return Number(text)
  const at = /[A-Za-z]{3}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000)
}
