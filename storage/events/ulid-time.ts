/** The digits of a ULID, in the order of their values, which is also that of their bytes. */
export const ULID_DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Returns the first ten characters of the ULIDs of a time: milliseconds since 1970. */
export const encodeUlidTime = (ms: number): string => {
  let head = ''
  for (let i = 0; i < 10; i++) {
    head = ULID_DIGITS[ms % 32]! + head
    ms = Math.floor(ms / 32)
  }
  return head
}

/** Returns the time at the beginning of a ULID in milliseconds since 1970. */
export const decodeUlidTime = (ulid: string): number => {
  let ms = 0
  for (const digit of ulid.slice(0, 10)) ms = ms * 32 + ULID_DIGITS.indexOf(digit)
  return ms
}
