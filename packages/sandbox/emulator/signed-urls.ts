import { createHmac, timingSafeEqual } from 'node:crypto'
import type { SandboxCall } from './call.ts'

const signatureOf = (call: SandboxCall, path: string, expires: string): string =>
  createHmac('sha256', call.appSecret).update(`${path} ${expires}`).digest('hex').slice(0, 32)

/**
 * Signs a URL of the sandbox that expires after `ttlMs` of the sandbox's own time, like those of the provider's
 * content servers.
 */
export const signUrl = (call: SandboxCall, path: string, ttlMs: number): string => {
  const expires = Math.floor((Date.parse(call.now()) + ttlMs) / 1000).toString(16)
  return `${call.base}${path}?oe=${expires}&oh=${signatureOf(call, path, expires)}`
}

export const isSignedUrlValid = (call: SandboxCall, path: string): boolean => {
  const expires = call.query.get('oe') ?? ''
  const actual = Buffer.from(call.query.get('oh') ?? '')
  const expected = Buffer.from(signatureOf(call, path, expires))
  return (
    /^[0-9a-f]{1,12}$/.test(expires) &&
    actual.length === expected.length &&
    timingSafeEqual(actual, expected) &&
    Number.parseInt(expires, 16) * 1000 > Date.parse(call.now())
  )
}
