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

/** A message for a request of the client. `forward` returns true for the response to it. */
type Relayed = {
  request: JsonRpcMessage
  /** What is sent for it; the request itself when absent. */
  message?: JsonRpcMessage
  /** The message as text. */
  body?: string
  signal: AbortSignal
  forward?: (text: string) => boolean
}

/**
 * Carries MCP messages, one a line, between standard input and output and a running server's `/mcp`, in
 * every protocol revision that the server speaks. Resolves when the input has ended and all
 * responses are written.
 */
export const bridgeStdio = async ({
  url,
  apiKey,
  input,
  output,
  notes = process.stderr,
  fetch,
}: StdioBridgeOptions): Promise<void> => {
  /** Requests under way by id, so that a cancellation can end them; `endless` marks subscriptions. */
  const pending = new Map<string | number, { abort: AbortController; endless: boolean }>()
  /** Questions that the client has not answered, by the id of their request. */
  const asked = new Map<string, (answer: JsonRpcMessage | undefined) => void>()
  const reported = new Set<string>()
  /** The version negotiated in `initialize` by 2025 revisions; later ones send it in each message. */
  let version: string | undefined
  /** A client of a 2025 revision that can ask its person. */
  let oldClient: OldClient | undefined

  const relayRequest = async (line: string): Promise<void> => {
    const message = parseMessage(line)
    if (!message)
      return write({
        jsonrpc: '2.0',
        id: null,
        error: { code: -32700, message: 'Parse error: each line must be one JSON-RPC message.' },
      })
    // Over HTTP a request is cancelled by closing it.
    if (message.method === 'notifications/cancelled')
      return pending.get(message.params?.requestId as string | number)?.abort.abort()
    if (message.method === undefined) {
      const resolve = asked.get(String(message.id))
      if (resolve) return resolve(message)
    }
    oldClient = readOldClient(message) ?? oldClient
    const abort = new AbortController()
    const id = message.method === undefined ? undefined : (message.id ?? undefined)
    if (id !== undefined) pending.set(id, { abort, endless: message.method === 'subscriptions/listen' })
    try {
      const { signal } = abort
      if (oldClient && isOldCall(message) && (await relayCall(oldClient, message, signal))) return
      await relay({ request: message, body: line, signal })
    } catch (error) {
      // A cancelled request is not answered (MCP "Cancellation").
      if (!abort.signal.aborted)
        refuse(
          message,
          `Cannot reach the server at ${new URL(url).origin}: ${describeFetchError(error)}. ` +
            'Is it running? Start it with `wcrm serve`.',
        )
    } finally {
      if (id !== undefined) pending.delete(id)
    }
  }

  /**
   * Sends a message, for `request` of the client, and forwards what the server answers: again where no answer came or
   * the server was busy, since a call happens once under its key. Throws when no answer came.
   */
  const relay = async ({
    request,
    message = request,
    body = JSON.stringify(message),
    signal,
    forward = (text) => forwardMessage(request, text),
  }: Relayed): Promise<void> => {
    const key = createKey(message)
    const headers = { ...toHeaders(message), ...(key === undefined ? {} : { 'Idempotency-Key': key }) }
    const policy = message.method === 'subscriptions/listen' ? { retries: 0 } : POLICY
    try {
      await retry(policy, signal, async () => {
        const response = await sendRequest(
          { url, apiKey, fetch },
          { path: '', method: 'POST', headers, body, signal },
        )
        await relayResponse(request, response, forward).catch((error: unknown) => {
          throw toConnectionError(error)
        })
      })
    } catch (error) {
      if (!isWcrmError(error) || error.status === 0) throw error
      relayFailure(request, error, forward)
    }
  }

  /**
   * Makes the tool call of a client of a 2025 revision in the revision that asks within an answer, and asks the
   * client's person what the server wants to know. Returns false when the client could not ask, or was asked too often:
   * then the call is made as it was sent.
   */
  const relayCall = async (
    client: OldClient,
    message: JsonRpcMessage,
    signal: AbortSignal,
  ): Promise<boolean> => {
    let answer: object = {}
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const call = toModernCall(message, client, answer)
      let reply: JsonRpcMessage | undefined
      const forward = (text: string) => {
        const received = parseMessage(text)
        if (received?.id === call.id) reply = received
        else if (received) write(received)
        return reply !== undefined
      }
      await relay({ request: message, message: call, signal, forward })
      if (!reply) return true
      const questions = readQuestions(reply.result)
      if (!questions) {
        const { id: _, result, ...rest } = reply
        write({ ...rest, id: message.id, ...(result ? { result: toOldResult(result) } : {}) })
        return true
      }
      const answers: Record<string, unknown> = {}
      for (const [name, { method, params }] of questions.requests) {
        const given = await askClient(method, params, signal)
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
    method: string,
    params: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<JsonRpcMessage | undefined> => {
    const id = `ask-${randomUUID()}`
    const { promise, resolve } = Promise.withResolvers<JsonRpcMessage | undefined>()
    asked.set(id, resolve)
    const giveUp = (): void => {
      write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
      resolve(undefined)
    }
    signal.addEventListener('abort', giveUp, { once: true })
    write({ jsonrpc: '2.0', id, method, params })
    return promise.finally(() => {
      asked.delete(id)
      signal.removeEventListener('abort', giveUp)
    })
  }

  /**
   * The headers of streamable HTTP; since 2026-07-28 they repeat the version, the method and the name in the
   * body.
   */
  const toHeaders = ({ method, params }: JsonRpcMessage): Record<string, string> => {
    const meta = params?._meta as Record<string, unknown> | undefined
    const modern = meta?.['io.modelcontextprotocol/protocolVersion']
    const name =
      method === 'resources/read'
        ? params?.uri
        : method === 'tools/call' || method === 'prompts/get'
          ? params?.name
          : undefined
    const spoken = typeof modern === 'string' ? modern : version
    return {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...(spoken ? { 'MCP-Protocol-Version': spoken } : {}),
      ...(typeof modern === 'string' && method ? { 'Mcp-Method': method } : {}),
      ...(typeof modern === 'string' && typeof name === 'string' ? { 'Mcp-Name': encodeHeader(name) } : {}),
    }
  }

  /** Forwards an answer. Throws when it ends too early. */
  const relayResponse = async (
    request: JsonRpcMessage,
    response: FetchResponse,
    forward: NonNullable<Relayed['forward']>,
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
    refuse(request, `The server does not answer as wcrm does (${response.status}).`)
  }

  /** Forwards the answer that a failure has, or says what it was. */
  const relayFailure = (
    request: JsonRpcMessage,
    { status, code, body, problem }: WcrmError,
    forward: NonNullable<Relayed['forward']>,
  ): void => {
    const answer = parseMessage(body)
    // Of a message that the server could not read it does not know the id.
    if (answer?.error && answer.id === null && request.id !== undefined)
      return void forward(JSON.stringify({ ...answer, id: request.id }))
    if (isJsonRpc(body)) return void forward(body)
    const isOurs = code !== 'unexpected_answer'
    const reason = isOurs && problem['detail'] ? `: ${String(problem['detail'])}.`.replace('..', '.') : '.'
    const hint = status === 401 ? ' Check the API key, or store a new one with `wcrm login`.' : ''
    refuse(
      request,
      `The server refused the request (${isOurs ? `${status} ${code}` : status})${reason}${hint}`,
      isOurs ? problem : undefined,
    )
  }

  /** Forwards a message; returns true when it is the response to the request. */
  const forwardMessage = (request: JsonRpcMessage, text: string): boolean => {
    const message = parseMessage(text)
    if (!message) return false
    if (request.method === 'initialize' && message.result?.protocolVersion)
      version = message.result.protocolVersion
    write(message)
    return message.id === request.id && message.method === undefined
  }

  /** Answers a request with an error; what is none is not answered. Reports it to the person once. */
  const refuse = ({ method, id }: JsonRpcMessage, text: string, data?: unknown): void => {
    const message = redactApiKeys(text)
    if (!reported.has(message)) notes.write(`wcrm mcp: ${message}\n`)
    reported.add(message)
    if (method !== undefined && id !== undefined && id !== null)
      write({ jsonrpc: '2.0', id, error: { code: -32603, message, ...(data ? { data } : {}) } })
  }

  const write = (message: unknown): void => void output.write(`${JSON.stringify(message)}\n`)

  const work = new Set<Promise<void>>()
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (line.trim() === '') continue
    const done: Promise<void> = relayRequest(line).finally(() => work.delete(done))
    work.add(done)
  }
  // A subscription never ends by itself; without input there is no reader either.
  for (const { abort, endless } of pending.values()) if (endless) abort.abort()
  for (const resolve of asked.values()) resolve(undefined)
  await Promise.all(work)
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

/** Encodes everything but visible ASCII, in the form that revision 2026-07-28 defines. */
const encodeHeader = (text: string): string =>
  /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

const isJsonRpc = (text: string): boolean => {
  const message = parseMessage(text)
  return message?.jsonrpc === '2.0' || Array.isArray(message)
}

const parseMessage = (text: string): JsonRpcMessage | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as JsonRpcMessage) : undefined
  } catch {
    return undefined
  }
}

/** The client tells what failed as the cause of its error, and `fetch` as the cause of that. */
const describeFetchError = (error: unknown): string => {
  const { cause: failure = error } = error as Error
  const { cause, message } = failure as Error & { cause?: Error & { code?: string } }
  return cause?.code ?? cause?.message ?? message
}
