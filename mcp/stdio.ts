import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { createParser } from 'eventsource-parser'
import { redactApiKeys } from '../catalog/redact.ts'

type JsonRpcMessage = {
  jsonrpc: '2.0'
  id?: string | number | null
  method?: string
  params?: Record<string, unknown>
  result?: { protocolVersion?: string }
}

export type StdioBridgeOptions = {
  /** The running server's MCP address, `http://…/mcp`, with its query if any. */
  url: string
  apiKey: string
  input: Readable
  output: Writable
  /** Where errors are reported to a person; standard error when absent. */
  notes?: Writable
}

type BridgeState = StdioBridgeOptions & {
  /** Requests under way by id, so that a cancellation can end them; `endless` marks subscriptions. */
  pending: Map<string | number, { abort: AbortController; endless: boolean }>
  /** The version negotiated in `initialize` by 2025 revisions; later ones send it in each message. */
  version: string | undefined
  reportedMessages: Set<string>
}

/**
 * Carries MCP messages, one a line, between standard input and output and a running server's `/mcp`, in
 * every protocol revision that the server speaks. Resolves when the input has ended and all
 * responses are written.
 */
export const bridgeStdio = async (bridge: StdioBridgeOptions): Promise<void> => {
  const link: BridgeState = { ...bridge, pending: new Map(), version: undefined, reportedMessages: new Set() }
  const work = new Set<Promise<void>>()
  for await (const line of createInterface({ input: bridge.input, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const done: Promise<void> = relayRequest(link, line).finally(() => work.delete(done))
    work.add(done)
  }
  // A subscription never ends by itself; without input there is no reader either.
  for (const { abort, endless } of link.pending.values()) if (endless) abort.abort()
  await Promise.all(work)
}

const relayRequest = async (link: BridgeState, line: string): Promise<void> => {
  const message = parseMessage(line)
  if (!message)
    return write(link, {
      jsonrpc: '2.0',
      id: null,
      error: { code: -32700, message: 'Parse error: each line must be one JSON-RPC message.' },
    })
  // Over HTTP a request is cancelled by closing it.
  if (message.method === 'notifications/cancelled')
    return link.pending.get(message.params?.requestId as string | number)?.abort.abort()
  const abort = new AbortController()
  const id = message.method === undefined ? undefined : (message.id ?? undefined)
  if (id !== undefined) link.pending.set(id, { abort, endless: message.method === 'subscriptions/listen' })
  try {
    const response = await fetch(link.url, {
      method: 'POST',
      headers: toHeaders(link, message),
      body: line,
      signal: abort.signal,
    })
    await relayResponse(link, message, response)
  } catch (error) {
    // A cancelled request is not answered (MCP "Cancellation").
    if (!abort.signal.aborted)
      respondWithError(
        link,
        id,
        -32603,
        `Cannot reach the server at ${toOrigin(link.url)}: ${describeFetchError(error)}. ` +
          'Is it running? Start it with `wcrm serve`.',
      )
  } finally {
    if (id !== undefined) link.pending.delete(id)
  }
}

/**
 * The headers of streamable HTTP; since 2026-07-28 they repeat the version, the method and the name in the
 * body.
 */
const toHeaders = (link: BridgeState, { method, params }: JsonRpcMessage): Record<string, string> => {
  const meta = params?._meta as Record<string, unknown> | undefined
  const modern = meta?.['io.modelcontextprotocol/protocolVersion']
  const name =
    method === 'resources/read'
      ? params?.uri
      : method === 'tools/call' || method === 'prompts/get'
        ? params?.name
        : undefined
  const version = typeof modern === 'string' ? modern : link.version
  return {
    Authorization: `Bearer ${link.apiKey}`,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...(version ? { 'MCP-Protocol-Version': version } : {}),
    ...(typeof modern === 'string' && method ? { 'Mcp-Method': method } : {}),
    ...(typeof modern === 'string' && typeof name === 'string' ? { 'Mcp-Name': encodeHeader(name) } : {}),
  }
}

/** Encodes everything but visible ASCII, in the form that revision 2026-07-28 defines. */
const encodeHeader = (text: string): string =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

const relayResponse = async (
  link: BridgeState,
  request: JsonRpcMessage,
  response: Response,
): Promise<void> => {
  const type = response.headers.get('content-type') ?? ''
  if (type.includes('text/event-stream') && response.body) {
    let responded = false
    for await (const data of readEventData(response.body))
      responded = forwardMessage(link, request, data) || responded
    if (!responded && request.id !== undefined) throw new Error('the connection ended before the response')
    return
  }
  const text = await response.text()
  if (response.status === 202 || (response.ok && text === '')) return
  const body = parseMessage(text)
  if (body?.jsonrpc === '2.0' || Array.isArray(body)) return void forwardMessage(link, request, text)
  const problem = body as { code?: string; detail?: string } | undefined
  const status = [response.status, problem?.code].filter((part) => part !== undefined).join(' ')
  const reason = `${problem?.detail ?? response.statusText}.`.replace('..', '.')
  const hint = response.status === 401 ? ' Check the API key, or store a new one with `wcrm login`.' : ''
  const id = request.method === undefined ? undefined : (request.id ?? undefined)
  respondWithError(link, id, -32603, `The server refused the request (${status}): ${reason}${hint}`, problem)
}

/** Forwards a message; returns true when it is the response to the request. */
const forwardMessage = (link: BridgeState, request: JsonRpcMessage, text: string): boolean => {
  const message = parseMessage(text)
  if (!message) return false
  if (request.method === 'initialize' && message.result?.protocolVersion)
    link.version = message.result.protocolVersion
  write(link, message)
  return message.id === request.id && message.method === undefined
}

/** Yields the `data` of each server-sent event. */
async function* readEventData(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const events: string[] = []
  const parser = createParser({ onEvent: ({ data }) => events.push(data) })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
  }
}

/** Responds with an error, and reports it to the person once. */
const respondWithError = (
  link: BridgeState,
  id: string | number | undefined,
  code: number,
  text: string,
  data?: unknown,
): void => {
  const message = redactApiKeys(text)
  if (!link.reportedMessages.has(message)) (link.notes ?? process.stderr).write(`wcrm mcp: ${message}\n`)
  link.reportedMessages.add(message)
  if (id !== undefined)
    write(link, { jsonrpc: '2.0', id, error: { code, message, ...(data ? { data } : {}) } })
}

const write = (link: BridgeState, message: unknown): void =>
  void link.output.write(`${JSON.stringify(message)}\n`)

const parseMessage = (text: string): JsonRpcMessage | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as JsonRpcMessage) : undefined
  } catch {
    return undefined
  }
}

const toOrigin = (url: string): string => new URL(url).origin

/** `fetch` puts the reason into the cause of its error. */
const describeFetchError = (error: unknown): string => {
  const { cause, message } = error as Error & { cause?: Error & { code?: string } }
  return cause?.code ?? cause?.message ?? message
}
