import { createHash, hash, randomInt } from 'node:crypto'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const FORM = /^wc_(live|test)_[0-9A-Za-z]{40}$/

/** Six base62 characters that tell a mistyped key without asking the database (contract 7). */
const checksum = (text: string): string => {
  let n = createHash('sha256').update(text).digest().readUIntBE(0, 6)
  let out = ''
  for (let i = 0; i < 6; i++) {
    out = BASE62[n % 62]! + out
    n = Math.floor(n / 62)
  }
  return out
}

/** A new API key: `wc_live_` or `wc_test_`, 34 random base62 characters (202 bits) and a checksum of 6. */
export const createApiKey = (test: boolean): string => {
  const head = `wc_${test ? 'test' : 'live'}_${Array.from({ length: 34 }, () => BASE62[randomInt(62)]).join('')}`
  return head + checksum(head)
}

export const isApiKey = (text: string): boolean =>
  FORM.test(text) && checksum(text.slice(0, -6)) === text.slice(-6)

/** What is stored of a key. It holds 202 random bits, so a plain hash is enough. */
export const hashApiKey = (key: string): Buffer => hash('sha256', key, 'buffer')
