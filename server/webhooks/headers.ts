import { invalidField } from '../core/problem.ts'

const reservedPrefixes = ['Webhook-', 'Wc-', 'Content-', 'Proxy-']
/** Ours, or of the connection and no business of either end (RFC 9110, 7.6.1). */
const reservedNames = [
  'Host',
  'User-Agent',
  'Idempotency-Key',
  'Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
]
const RESERVED = [...reservedPrefixes.map((prefix) => `${prefix}*`), ...reservedNames].join(', ')
const MOST = 20

const isReserved = (name: string): boolean => {
  const lower = name.toLowerCase()
  return (
    reservedPrefixes.some((prefix) => lower.startsWith(prefix.toLowerCase())) ||
    reservedNames.some((one) => one.toLowerCase() === lower)
  )
}

/** RFC 9110: a token; visible ASCII with blanks and tabs between. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/

const refuse = (name: string, code: string, detail: string, fix: string) =>
  invalidField('custom_headers', code, detail, { path: [name], fix })

/** Throws 400 when one of these headers cannot be sent along. */
export const checkHeaders = (headers: Record<string, string>): void => {
  const names = Object.keys(headers)
  if (names.length > MOST)
    throw invalidField('custom_headers', 'too_long', `must have at most ${MOST} headers`, {
      fix: 'Send less.',
    })
  const seen = new Set<string>()
  for (const name of names) {
    if (!NAME.test(name))
      throw refuse(
        name,
        'invalid_name',
        'has a header name with characters that HTTP does not allow',
        'Use letters, digits and hyphens.',
      )
    if (isReserved(name))
      throw refuse(
        name,
        'reserved_name',
        `has the reserved header ${name}`,
        `Choose another name. Reserved are ${RESERVED}.`,
      )
    if (!VALUE.test(headers[name]!))
      throw refuse(
        name,
        'invalid_header_value',
        `has a value of ${name} that HTTP does not allow`,
        'Use visible ASCII characters, with blanks only between them.',
      )
    if (seen.has(name.toLowerCase()))
      throw refuse(name, 'duplicate', `has ${name} twice; names ignore case`, 'Send it once.')
    seen.add(name.toLowerCase())
  }
}
