import { invalidField } from '../../kernel/problem.ts'

const reservedPrefixes = ['Webhook-', 'Wc-', 'Content-', 'Proxy-']
/** Set by this server, or headers of the connection (RFC 9110, 7.6.1). */
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
const MAX_HEADERS = 20

const isReserved = (name: string): boolean => {
  const lower = name.toLowerCase()
  return (
    reservedPrefixes.some((prefix) => lower.startsWith(prefix.toLowerCase())) ||
    reservedNames.some((reserved) => reserved.toLowerCase() === lower)
  )
}

/** RFC 9110: a token; visible ASCII with spaces and tabs inside. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/

const headerProblem = (name: string, code: string, detail: string, fix: string) =>
  invalidField('custom_headers', code, detail, { path: [name], fix })

/** Throws 400 when one of these headers cannot be sent. */
export const validateCustomHeaders = (headers: Record<string, string>): void => {
  const names = Object.keys(headers)
  if (names.length > MAX_HEADERS)
    throw invalidField('custom_headers', 'too_long', `must have at most ${MAX_HEADERS} headers`, {
      fix: `Send at most ${MAX_HEADERS} headers.`,
    })
  const seen = new Set<string>()
  for (const name of names) {
    if (!NAME.test(name))
      throw headerProblem(
        name,
        'invalid_name',
        'has a header name with characters that HTTP does not allow',
        'Use letters, digits and hyphens.',
      )
    if (isReserved(name))
      throw headerProblem(
        name,
        'reserved_name',
        `has the reserved header ${name}`,
        `Choose another name. Reserved are ${RESERVED}.`,
      )
    if (!VALUE.test(headers[name]!))
      throw headerProblem(
        name,
        'invalid_header_value',
        `has a value of ${name} that HTTP does not allow`,
        'Use visible ASCII characters, with spaces only between them.',
      )
    if (seen.has(name.toLowerCase()))
      throw headerProblem(name, 'duplicate', `has ${name} twice; names ignore case`, 'Send it once.')
    seen.add(name.toLowerCase())
  }
}
