import { createHash, hash, randomInt } from 'node:crypto'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const KEY_PATTERN = /^wc_(live|test)_[0-9A-Za-z]{40}$/
const CHANNEL_TOKEN_PATTERN = /^wc_chan_[0-9A-Za-z]{40}$/

/** Six base62 characters at the end of a key, which detect a mistyped one without a query. */
const checksum = (text: string): string => {
  let n = createHash('sha256').update(text).digest().readUIntBE(0, 6)
  let digits = ''
  for (let i = 0; i < 6; i++) {
    digits = BASE62[n % 62]! + digits
    n = Math.floor(n / 62)
  }
  return digits
}

const createToken = (kind: 'live' | 'test' | 'chan'): string => {
  const random = Array.from({ length: 34 }, () => BASE62[randomInt(62)]).join('')
  const head = `wc_${kind}_${random}`
  return head + checksum(head)
}

const hasChecksum = (text: string): boolean => checksum(text.slice(0, -6)) === text.slice(-6)

/** Returns a new API key: `wc_live_` or `wc_test_`, 34 random base62 characters (202 bits), 6 of checksum. */
export const createApiKey = (test: boolean): string => createToken(test ? 'test' : 'live')

export const isApiKey = (text: string): boolean => KEY_PATTERN.test(text) && hasChecksum(text)

/** Returns a new token of a channel's bridge: `wc_chan_`, otherwise like an API key. It is hashed like one. */
export const createChannelToken = (): string => createToken('chan')

export const isChannelToken = (text: string): boolean => CHANNEL_TOKEN_PATTERN.test(text) && hasChecksum(text)

/** Whether an API key or a channel's token stands anywhere in a text. */
export const containsApiKey = (text: string): boolean =>
  text.includes('wc_') &&
  (text.match(/wc_(?:live|test|chan)_[0-9A-Za-z]{40}/g) ?? []).some(
    (found) => isApiKey(found) || isChannelToken(found),
  )

/** Returns what is stored of a key. A key holds 202 random bits, so a plain hash is enough. */
export const hashApiKey = (key: string): Buffer => hash('sha256', key, 'buffer')
