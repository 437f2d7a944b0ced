import { randomBytes } from 'node:crypto'

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A ULID: 48 bits of time in milliseconds and 80 random bits, 26 Crockford base32 characters that sort by time. */
export const ulid = (time = Date.now()): string => {
  let head = ''
  for (let i = 0; i < 10; i++) {
    head = CROCKFORD[time % 32]! + head
    time = Math.floor(time / 32)
  }
  let tail = ''
  for (const byte of randomBytes(16)) tail += CROCKFORD[byte & 31]
  return head + tail
}

export const newRequestId = (): string => `req_${ulid()}`
export const newEventId = (): string => `evt_${ulid()}`
