import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { redactApiKeys } from '../catalog/redact.ts'
import { isObject } from '../catalog/values.ts'
import { readEvents } from '../client/event-stream.ts'
import { isWcrmError, type WcrmError } from '../client/problem.ts'
import { type Fetch, type FetchResponse, sendRequest, toConnectionError } from '../client/request.ts'
import { retry, type RetryPolicy } from '../client/retry.ts'
import {
  isOldCall,
  MAX_ROUNDS,
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
  /** In place of the global `fetch`. */
  fetch?: Fetch
}

/** Few and short: a client and its person wait for the answer. */
const POLICY: RetryPolicy = { retries: 2, maxWaitMs: 5000 }

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
    await relay(link, message, message, signal, { body: line })
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

/** Whether a tool call names its idempotency key itself, where the server reads it: not within another field. */
const namesKey = ({ name, arguments: given }: Record<string, unknown>): boolean => {
  if (!isObject(given)) return false
  // Its input may be JSON text.
  const input = typeof given['input'] === 'string' ? parseMessage(given['input']) : given['input']
  const fields = name === 'run_write_operation' ? input : given
  return isObject(fields) && Object.hasOwn(fields, 'idempotency_key')
}

/**
 * Returns the idempotency key under which a tool call is sent, also when it is sent again; undefined when the call
 * names one itself, or is none.
 */
const createKey = ({ method, params }: JsonRpcMessage): string | undefined =>
  method === 'tools/call' && !namesKey(params ?? {}) ? randomUUID() : undefined

type Forward = (text: string) => boolean

/**
 * Sends a message, for `request` of the client, and forwards what the server answers: again where no answer came or the
 * server was busy, since a call happens once under its key. Throws when no answer came.
 */
const relay = async (
  link: BridgeState,
  request: JsonRpcMessage,
  message: JsonRpcMessage,
  signal: AbortSignal,
  {
    body = JSON.stringify(message),
    forward = (text) => forwardMessage(link, request, text),
  }: { body?: string; forward?: Forward } = {},
): Promise<void> => {
  const { url, apiKey, fetch } = link
  const key = createKey(message)
  const headers = { ...toHeaders(link, message), ...(key === undefined ? {} : { 'Idempotency-Key': key }) }
  const policy = message.method === 'subscriptions/listen' ? { retries: 0 } : POLICY
  try {
    await retry(policy, signal, async () => {
      const response = await sendRequest(
        { url, apiKey, fetch },
        { path: '', method: 'POST', headers, body, signal },
      )
      await relayResponse(link, request, response, forward).catch((error: unknown) => {
        throw toConnectionError(error)
      })
    })
  } catch (error) {
    if (!isWcrmError(error) || error.status === 0) throw error
    relayFailure(link, request, error, forward)
  }
}

/**
 * Makes the tool call of a client of a 2025 revision in the revision that asks within an answer, and asks the
 * client's person what the server wants to know. Returns false when the client could not ask, or was asked too often:
 * then the call is made as it was sent.
 */
const relayCall = async (
  link: BridgeState,
  client: OldClient,
  message: JsonRpcMessage,
  signal: AbortSignal,
): Promise<boolean> => {
  let answer: object = {}
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const call = toModernCall(message, client, answer)
    let reply: JsonRpcMessage | undefined
    const forward: Forward = (text) => {
      const received = parseMessage(text)
      if (received?.id === call.id) reply = received
      else if (received) write(link, received)
      return reply !== undefined
    }
    await relay(link, message, call, signal, { forward })
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
  return false
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

/** Forwards an answer. Throws when it ends too early. */
const relayResponse = async (
  link: BridgeState,
  request: JsonRpcMessage,
  response: FetchResponse,
  forward: Forward,
): Promise<void> => {
  const type = response.headers.get('content-type') ?? ''
  if (type.includes('text/event-stream') && response.body) {
    let responded = false
    for await (const { data } of readEvents(response.body)) responded = forward(data) || responded
    if (!responded && request.id !== undefined) throw new Error('the connection ended before the response')
    return
  }
  const text = await response.text()
  if (response.status === 202 || text === '' || isJsonRpc(text)) {
    if (text !== '' && response.status !== 202) forward(text)
    return
  }
  respondToRequest(link, request, `The server does not answer as wcrm does (${response.status}).`)
}

/** Forwards the answer that a failure has, or says what it was. */
const relayFailure = (
  link: BridgeState,
  request: JsonRpcMessage,
  { status, code, body, problem }: WcrmError,
  forward: Forward,
): void => {
  const answer = parseMessage(body)
  // Of a message that the server could not read it does not know the id.
  if (answer?.error && answer.id === null && request.id !== undefined)
    return void forward(JSON.stringify({ ...answer, id: request.id }))
  if (isJsonRpc(body)) return void forward(body)
  const isOurs = code !== 'unexpected_answer'
  const reason = isOurs && problem['detail'] ? `: ${String(problem['detail'])}.`.replace('..', '.') : '.'
  const hint = status === 401 ? ' Check the API key, or store a new one with `wcrm login`.' : ''
  respondToRequest(
    link,
    request,
    `The server refused the request (${isOurs ? `${status} ${code}` : status})${reason}${hint}`,
    isOurs ? problem : undefined,
  )
}

const isJsonRpc = (text: string): boolean => {
  const message = parseMessage(text)
  return message?.jsonrpc === '2.0' || Array.isArray(message)
}

/** Answers a request with an error; what is none is not answered. */
const respondToRequest = (link: BridgeState, request: JsonRpcMessage, text: string, data?: unknown): void =>
  respondWithError(
    link,
    request.method === undefined ? undefined : (request.id ?? undefined),
    -32603,
    text,
    data,
  )

/** Forwards a message; returns true when it is the response to the request. */
const forwardMessage = (link: BridgeState, request: JsonRpcMessage, text: string): boolean => {
  const message = parseMessage(text)
  if (!message) return false
  if (request.method === 'initialize' && message.result?.protocolVersion)
    link.version = message.result.protocolVersion
  write(link, message)
  return message.id === request.id && message.method === undefined
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

/** The client tells what failed as the cause of its error, and `fetch` as the cause of that. */
const describeFetchError = (error: unknown): string => {
  const { cause: failure = error } = error as Error
  const { cause, message } = failure as Error & { cause?: Error & { code?: string } }
  return cause?.code ?? cause?.message ?? message
}
