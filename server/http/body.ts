import { findDuplicateName } from '../../catalog/duplicate-names.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { App } from '../app.ts'
import { type FieldError, Problem } from '../kernel/problem.ts'
import { getIncoming, getResponse } from './address.ts'
import type { BodyBudget } from '../app-state.ts'

export const DEFAULT_MAX_BODY_BYTES = 1024 * 1024
/** Maximum of any route (imports and template samples). */
export const MAX_BODY_BYTES = 24 * 1024 * 1024

/** How the body of a request is read. `sender` is whose bytes in flight it adds to. */
export type BodyReader = {
  bytes: (sender: string) => Promise<Buffer>
  /** The body as JSON text; throws 415 as well. */
  text: (sender: string) => Promise<string>
}

type BodyRules = {
  maxBytes: number
  json?: boolean
  /** Bytes that one sender may have in flight. */
  maxBytesInFlight?: number
}

/**
 * Gives `work` the reader of a request's body. What the headers say about it is checked first: 413 and 415
 * come before authentication. The bytes count against the limits until `work` has ended.
 */
export const withBody = async <T>(
  app: Pick<App, 'bodyBudget'>,
  request: Request,
  { maxBytes, json = true, maxBytesInFlight = MAX_BYTES_PER_SENDER }: BodyRules,
  work: (body: BodyReader) => Promise<T>,
): Promise<T> => {
  const hasBody = mayHaveBody(request)
  if (hasBody) checkHeaders(request, maxBytes, json)
  const held: [Sender, number][] = []
  const read = async (id: string): Promise<Buffer> => {
    if (!hasBody) return Buffer.alloc(0)
    const sender = { id, maxBytes: maxBytesInFlight }
    checkBudget(app.bodyBudget, sender, getDeclaredLength(request))
    return await readBytes(request, maxBytes, (bytes) => {
      takeBytes(app.bodyBudget, sender, bytes)
      held.push([sender, bytes])
    })
  }
  try {
    return await work({ bytes: read, text: async (sender) => decodeJson(request, await read(sender)) })
  } finally {
    for (const [sender, bytes] of held) returnBytes(app.bodyBudget, sender, bytes)
  }
}

/** A GET or HEAD has a body only where its headers say so (RFC 9112, section 6), which no route takes. */
const mayHaveBody = (request: Request): boolean =>
  (request.method !== 'GET' && request.method !== 'HEAD') ||
  getDeclaredLength(request) > 0 ||
  request.headers.has('transfer-encoding')

const getDeclaredLength = (request: Request): number => Number(request.headers.get('content-length') ?? 0)

const isJson = (type: string | null): boolean =>
  /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type ?? '')

const checkHeaders = (request: Request, maxBytes: number, json: boolean): void => {
  const length = getDeclaredLength(request)
  if (length > maxBytes) throw createTooLargeProblem(maxBytes)
  const type = request.headers.get('content-type')
  // Without a type, a body of unknown length may still turn out to be empty.
  if (json && (length > 0 || (type !== null && request.headers.has('transfer-encoding')))) requireJson(type)
}

const createTooLargeProblem = (maxBytes: number): Problem =>
  new Problem('payload_too_large', `The body is larger than ${maxBytes} bytes.`, { limit_bytes: maxBytes })

const requireJson = (type: string | null): void => {
  if (isJson(type)) return
  const declared =
    type === null ? 'The request has no Content-Type' : `The Content-Type is "${type.slice(0, 100)}"`
  throw new Problem(
    'unsupported_media_type',
    `${declared}; send Content-Type: application/json.`,
    {},
    { Accept: 'application/json' },
  )
}

/** Text that no JSON parser accepts stands for bytes that are not UTF-8: the parser's step reports it. */
const NOT_UTF8 = '\uFFFD'

const decodeJson = (request: Request, bytes: Buffer): string => {
  if (bytes.byteLength === 0) return ''
  requireJson(request.headers.get('content-type'))
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return NOT_UTF8
  }
}

/**
 * Reads from Node's own request: the web `Request` takes three times as long. Throws 413 as soon as there is
 * too much, and what `count` throws; nothing more is kept then.
 */
const readBytes = async (
  request: Request,
  maxBytes: number,
  count: (bytes: number) => void,
): Promise<Buffer> => {
  const incoming = getIncoming(request)
  if (!incoming) return Buffer.from(await request.arrayBuffer())
  askForBody(incoming, getResponse(request))
  const chunks: Buffer[] = []
  let size = 0
  return await new Promise((resolve, reject) => {
    const stop = (settle: () => void): void => {
      incoming.off('data', onData).off('end', onEnd).off('error', onEarlyEnd).off('close', onEarlyEnd)
      settle()
    }
    const onData = (chunk: Buffer): void => {
      try {
        size += chunk.length
        if (size > maxBytes) throw createTooLargeProblem(maxBytes)
        count(chunk.length)
        chunks.push(chunk)
      } catch (error) {
        stop(() => reject(error as Problem))
        incoming.pause()
      }
    }
    const onEnd = (): void => stop(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    const onEarlyEnd = (): void => stop(() => reject(createIncompleteProblem()))
    if (incoming.destroyed && !incoming.readableEnded) return onEarlyEnd()
    incoming.on('data', onData).on('end', onEnd).on('error', onEarlyEnd).on('close', onEarlyEnd)
  })
}

/** A client that sent `Expect: 100-continue` sends its body only now. */
const askForBody = (incoming: IncomingMessage, response: ServerResponse | undefined): void => {
  if (incoming.headers.expect !== undefined && response && !response.headersSent) response.writeContinue()
}

const createIncompleteProblem = (): Problem =>
  new Problem('invalid_input', 'The request body ended early.', {
    errors: [{ pointer: '#', code: 'incomplete_body', detail: 'is incomplete', fix: 'Send the whole body.' }],
  })

type ParsedJson = { ok: true; value: unknown } | { ok: false; error: { detail: string; at: FieldError } }

const invalidJson = (text: string): ParsedJson => ({
  ok: false,
  error: {
    detail: text === NOT_UTF8 ? 'The body is not valid UTF-8.' : 'The body is not valid JSON.',
    at: {
      pointer: '#',
      code: 'invalid_json',
      detail: 'must be a JSON object in UTF-8',
      fix: 'Check quotes, commas and brackets.',
    },
  },
})

/** Parses JSON in which no object gives a name twice; an empty body is an empty object. */
export const tryParseJson = (text: string): ParsedJson => {
  if (text === '') return { ok: true, value: {} }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return invalidJson(text)
  }
  const pointer = findDuplicateName(text)
  if (pointer === undefined) return { ok: true, value }
  const at = { pointer, code: 'duplicate_field', detail: 'is given twice', fix: 'Give each field once.' }
  return { ok: false, error: { detail: `The body gives ${pointer} twice.`, at } }
}

/** Like `tryParseJson`, but throws 400. */
export const parseJson = (text: string): unknown => {
  const parsed = tryParseJson(text)
  if (parsed.ok) return parsed.value
  throw new Problem('invalid_input', parsed.error.detail, { errors: [parsed.error.at] })
}

/** Bytes of bodies that one sender (a key, or an address without one) may have in memory on this server. */
const MAX_BYTES_PER_SENDER = 48 * 1024 * 1024
/** Bytes of bodies that a server holds; what is parsed from them takes several times as much. */
const MAX_BYTES_PER_SERVER = 96 * 1024 * 1024
const RETRY_SECONDS = 2

/** Whose bytes are counted, and how many of them there may be. */
type Sender = { readonly id: string; readonly maxBytes: number }

/** Throws 429 or 503 when `bytes` more of this sender would exceed a limit. */
const checkBudget = ({ total, bySender }: BodyBudget, sender: Sender, bytes: number): void => {
  const retry = { 'Retry-After': String(RETRY_SECONDS) }
  if ((bySender.get(sender.id) ?? 0) + bytes > sender.maxBytes)
    throw new Problem(
      'rate_limited',
      `The request bodies that are being handled for you at once exceed ${sender.maxBytes} bytes. ` +
        'Wait for the responses, then send the next large body.',
      { reason: 'bodies_in_flight', violated_policies: ['body-bytes'] },
      retry,
    )
  if (total + bytes > MAX_BYTES_PER_SERVER)
    throw new Problem(
      'upstream_unavailable',
      'The server is handling as many large request bodies as it can. Send this one again later.',
      { reason: 'bodies_in_flight' },
      retry,
    )
}

/** Counts bytes that arrived. Throws 429 or 503 instead when a limit is reached. */
const takeBytes = (budget: BodyBudget, sender: Sender, bytes: number): void => {
  checkBudget(budget, sender, bytes)
  budget.total += bytes
  budget.bySender.set(sender.id, (budget.bySender.get(sender.id) ?? 0) + bytes)
}

const returnBytes = (budget: BodyBudget, { id }: Sender, bytes: number): void => {
  budget.total -= bytes
  const left = (budget.bySender.get(id) ?? 0) - bytes
  if (left > 0) budget.bySender.set(id, left)
  else budget.bySender.delete(id)
}
