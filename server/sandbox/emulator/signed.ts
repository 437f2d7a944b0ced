import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Call } from './call.ts'

const signatureOf = (call: Call, path: string, expires: string): string =>
  createHmac('sha256', call.appSecret).update(`${path} ${expires}`).digest('hex').slice(0, 32)

/**
 * A URL of the sandbox that dies after a while of business time, as those of the provider's content servers
 * do.
 */
export const signed = (call: Call, path: string, livesMs: number): string => {
  const expires = Math.floor((Date.parse(call.now()) + livesMs) / 1000).toString(16)
  return `${call.base}${path}?oe=${expires}&oh=${signatureOf(call, path, expires)}`
}

export const isFresh = (call: Call, path: string): boolean => {
  const expires = call.query.get('oe') ?? ''
  const given = Buffer.from(call.query.get('oh') ?? '')
  const wanted = Buffer.from(signatureOf(call, path, expires))
  return (
    /^[0-9a-f]{1,12}$/.test(expires) &&
    given.length === wanted.length &&
    timingSafeEqual(given, wanted) &&
    Number.parseInt(expires, 16) * 1000 > Date.parse(call.now())
  )
}
