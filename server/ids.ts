import { randomBytes } from 'node:crypto'
import { encodeUlidTime, ULID_DIGITS } from '../storage/events/ulid-time.ts'

/*
 * State of the process, not of an app: random bytes are drawn for many ids at once, because one draw costs as
 * much as a hundred, and event ids increase across all apps.
 */
const POOL_BYTES = 4096
let pool = Buffer.alloc(0)
let used = POOL_BYTES

/**
 * A ULID: 48 bits of time in milliseconds and 80 random bits, 26 Crockford base32 characters that sort by
 * time.
 */
export const createUlid = (time = Date.now()): string => {
  if (used === POOL_BYTES) {
    pool = randomBytes(POOL_BYTES)
    used = 0
  }
  let tail = ''
  for (const end = used + 16; used < end; used++) tail += ULID_DIGITS[pool[used]! & 31]
  return encodeUlidTime(time) + tail
}

export const createRequestId = (): string => `req_${createUlid()}`

let lastEvent = ''

/**
 * Returns an id greater than all before it from this process, so that the events of one change keep their
 * order (ULID, "Monotonicity").
 */
export const createEventId = (): string => {
  const id = createUlid()
  lastEvent = id.slice(0, 10) > lastEvent.slice(0, 10) ? id : increment(lastEvent)
  return `evt_${lastEvent}`
}

const increment = (id: string): string =>
  id.replace(/[^Z]Z*$/, (end) => ULID_DIGITS[ULID_DIGITS.indexOf(end[0]!) + 1]! + '0'.repeat(end.length - 1))
