import type { IncomingMessage } from 'node:http'
import type { H3Event } from 'h3'
import { Problem } from '../core/problem.ts'

export const DEFAULT_MAX_BODY_BYTES = 1024 * 1024
/** The largest body any route may ask for (imports and template samples). */
export const MAX_BODY_BYTES = 24 * 1024 * 1024

/** The body's text, after its size and type are found right (413, 415 come before authentication). */
export const readBody = async (event: H3Event, maxBytes: number): Promise<string> => {
  const tooLarge = () =>
    new Problem('payload_too_large', `The body is larger than ${maxBytes} bytes.`, { limit_bytes: maxBytes })
  if (event.req.method === 'GET' || event.req.method === 'HEAD') return ''
  if (Number(event.req.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  let bytes: Uint8Array
  try {
    bytes = await readBytes(event, maxBytes)
  } catch (error) {
    if (
      (error as { status?: number }).status === 413 ||
      (error as { statusCode?: number }).statusCode === 413
    )
      throw tooLarge()
    throw new Problem('invalid_input', 'The body could not be read to its end.', {
      errors: [{ pointer: '#', code: 'incomplete_body', detail: 'broke off', fix: 'Send the whole body.' }],
    })
  }
  if (bytes.byteLength === 0) return ''
  if (bytes.byteLength > maxBytes) throw tooLarge()
  const type = event.req.headers.get('content-type')
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type ?? '')) {
    throw new Problem(
      'unsupported_media_type',
      `The body is declared as ${type === null ? 'nothing' : `"${type.slice(0, 100)}"`}; send Content-Type: application/json.`,
      {},
      { Accept: 'application/json' },
    )
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Kept as text that no JSON parser accepts, so that the refusal comes where validation stands.
    return '\uFFFD'
  }
}

/**
 * From Node's own request where there is one: a Request of the platform takes three times as long. What is
 * too large is not kept.
 */
const readBytes = async (event: H3Event, maxBytes: number): Promise<Uint8Array> => {
  const incoming = event.runtime?.node?.req as IncomingMessage | undefined
  if (!incoming) return new Uint8Array(await event.req.arrayBuffer())
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) reject(Object.assign(new Error('too large'), { status: 413 }))
      else chunks.push(chunk)
    })
    incoming.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    incoming.once('error', reject)
    incoming.once('close', () => reject(new Error('the request was closed')))
  })
}

/** An absent body is an empty object. */
export const tryParseJson = (text: string): { ok: true; value: unknown } | { ok: false } => {
  if (text === '') return { ok: true, value: {} }
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch {
    return { ok: false }
  }
}

export const parseJson = (text: string): unknown => {
  const parsed = tryParseJson(text)
  if (parsed.ok) return parsed.value
  throw new Problem(
    'invalid_input',
    text === '\uFFFD' ? 'The body is not valid UTF-8.' : 'The body is not valid JSON.',
    {
      errors: [
        {
          pointer: '#',
          code: 'invalid_json',
          detail: 'must be a JSON object in UTF-8',
          fix: 'Check quotes, commas and brackets.',
        },
      ],
    },
  )
}
