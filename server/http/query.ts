import { Problem } from '../kernel/problem.ts'
import { getIncoming } from './address.ts'
import type { DoorEvent } from './door.ts'

/** The query as the client sent it: a URL parser replaces or escapes what it cannot decode. */
const readRawQuery = (request: Request): string => {
  const url = getIncoming(request)?.url ?? request.url
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start + 1)
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

const MAX_SHOWN = 100

/** Throws 400 for a parameter that is not percent-encoded UTF-8 (RFC 3986): it would be read as another one. */
export const requireDecodableQuery = (event: DoorEvent): void => {
  const query = readRawQuery(event.req as Request)
  if (!query.includes('%')) return
  for (const part of query.split('&')) {
    if (decode(part) !== undefined) continue
    const name = part.split('=', 1)[0]!
    throw new Problem('invalid_input', 'The query is not percent-encoded UTF-8.', {
      errors: [
        {
          parameter: (decode(name) ?? name).slice(0, MAX_SHOWN),
          code: 'invalid_encoding',
          detail: 'must be percent-encoded UTF-8',
          fix: 'Encode the value, such as M%C3%BCller for Müller, and % itself as %25.',
        },
      ],
    })
  }
}

/** Throws 400: the value is ambiguous. */
export const repeatedParameter = (parameter: string): Problem =>
  new Problem('invalid_input', `The query gives ${parameter} more than once.`, {
    errors: [
      { parameter, code: 'duplicate_field', detail: 'is given more than once', fix: 'Give it one value.' },
    ],
  })
