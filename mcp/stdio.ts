import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { createParser } from 'eventsource-parser'
import { redactApiKeys } from '../catalog/redact.ts'
import {
  isOldCall,
  type OldClient,
  readOldClient,
  readQuestions,
  toModernCall,
  toOldResult,
} from './elicitation.ts'

type JsonRpcMessage = {
  jsonrpc: '2.0'
  id?: string | number | null
  method?: string
  params?: Record<string, unknown>
  result?: { protocolVersion?: string }
  error?: object
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
  /** A client of a 2025 revision that can ask its person. */
  oldClient: OldClient | undefined
  /** Questions that the client has not answered, by the id of their request. */
  asked: Map<string, (answer: JsonRpcMessage | undefined) => void>
}

/**
 * Carries MCP messages, one a line, between standard input and output and a running server's `/mcp`, in
 * every protocol revision that the server speaks. Resolves when the input has ended and all
 * responses are written.
 */
export const bridgeStdio = async (bridge: StdioBridgeOptions): Promise<void> => {
  const link: BridgeState = {
    ...bridge,
    pending: new Map(),
    version: undefined,
    reportedMessages: new Set(),
    oldClient: undefined,
    asked: new Map(),
  }
  const work = new Set<Promise<void>>()
  for await (const line of createInterface({ input: bridge.input, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const done: Promise<void> = relayRequest(link, line).finally(() => work.delete(done))
    work.add(done)
  }
  // A subscription never ends by itself; without input there is no reader either.
  for (const { abort, endless } of link.pending.values()) if (endless) abort.abort()
  for (const resolve of link.asked.values()) resolve(undefined)
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
  if (message.method === undefined) {
    const resolve = link.asked.get(String(message.id))
    if (resolve) return resolve(message)
  }
  link.oldClient = readOldClient(message) ?? link.oldClient
  const abort = new AbortController()
  const id = message.method === undefined ? undefined : (message.id ?? undefined)
  if (id !== undefined) link.pending.set(id, { abort, endless: message.method === 'subscriptions/listen' })
  try {
    const { signal } = abort
    if (link.oldClient && isOldCall(message) && (await relayCall(link, link.oldClient, message, signal)))
      return
    await relayResponse(link, message, await post(link, message, line, signal))
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

const post = (
  link: BridgeState,
  message: JsonRpcMessage,
  body: string,
  signal: AbortSignal,
): Promise<Response> => fetch(link.url, { method: 'POST', headers: toHeaders(link, message), body, signal })

/**
 * Makes the tool call of a client of a 2025 revision in the revision that asks within an answer, and asks the
 * client's person what the server wants to know. Returns false when the client could not ask: then the call is
 * made as it was sent.
 */
const relayCall = async (
  link: BridgeState,
  client: OldClient,
  message: JsonRpcMessage,
  signal: AbortSignal,
): Promise<boolean> => {
  let answer: object = {}
  for (;;) {
    const call = toModernCall(message, client, answer)
    let reply: JsonRpcMessage | undefined
    const response = await post(link, call, JSON.stringify(call), signal)
    await relayResponse(link, message, response, (text) => {
      const received = parseMessage(text)
      if (received?.id === call.id) reply = received
      else if (received) write(link, received)
      return reply !== undefined
    })
    if (!reply) return true
    const questions = readQuestions(reply.result)
    if (!questions) {
      const { id: _, result, ...rest } = reply
      write(link, { ...rest, id: message.id, ...(result ? { result: toOldResult(result) } : {}) })
      return true
    }
    const answers: Record<string, unknown> = {}
    for (const [name, { method, params }] of questions.requests) {
      const given = await askClient(link, method, params, signal)
      if (given === undefined) return true
      if (given.error || !given.result) return false
      answers[name] = given.result
    }
    answer = { inputResponses: answers, requestState: questions.state }
  }
}

/** Sends a request to the client and returns its answer; undefined when the client has gone or gave up. */
const askClient = (
  link: BridgeState,
  method: string,
  params: Record<string, unknown>,
  signal: AbortSignal,
): Promise<JsonRpcMessage | undefined> => {
  const id = `ask-${randomUUID()}`
  const { promise, resolve } = Promise.withResolvers<JsonRpcMessage | undefined>()
  link.asked.set(id, resolve)
  const giveUp = (): void => {
    write(link, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
    resolve(undefined)
  }
  signal.addEventListener('abort', giveUp, { once: true })
  write(link, { jsonrpc: '2.0', id, method, params })
  return promise.finally(() => {
    link.asked.delete(id)
    signal.removeEventListener('abort', giveUp)
  })
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
  forward: (text: string) => boolean = (text) => forwardMessage(link, request, text),
): Promise<void> => {
  const type = response.headers.get('content-type') ?? ''
  if (type.includes('text/event-stream') && response.body) {
    let responded = false
    for await (const data of readEventData(response.body)) responded = forward(data) || responded
    if (!responded && request.id !== undefined) throw new Error('the connection ended before the response')
    return
  }
  const text = await response.text()
  if (response.status === 202 || (response.ok && text === '')) return
  const body = parseMessage(text)
  if (body?.jsonrpc === '2.0' || Array.isArray(body)) return void forward(text)
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
