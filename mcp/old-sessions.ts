import { randomUUID } from 'node:crypto'
import { CLIENT_CAPABILITIES_META_KEY } from '@modelcontextprotocol/server'
import { isObject } from '../catalog/values.ts'
import type { Sealer } from '../server/sealer.ts'
import {
  isOldCall,
  MAX_ROUNDS,
  type OldClient,
  readOldClient,
  readQuestions,
  toModernCall,
  toOldResult,
} from './elicitation.ts'

/*
 * Questions over HTTP for clients of the 2025 revisions, which are asked by requests of the server on the stream
 * of their call. The session id says, sealed to the key, what the client can ask, so no server keeps sessions.
 * Only the answer to a question must reach the process that asked: where it reaches another, the question is
 * withdrawn after a while, and nothing has run.
 */

const SESSION_HEADER = 'mcp-session-id'
/** As long as the state of a question holds. */
const ANSWER_TTL_MS = 600_000
const KEEP_ALIVE_MS = 15_000
/** Questions that wait in one process; beyond, calls are answered without asking. */
const MAX_PENDING = 1000
/** Of the session id, which clients send with each request. */
const MAX_SESSION_LENGTH = 4096

type Session = OldClient & { capabilities: Record<string, unknown> }
type Reply = { id?: unknown; result?: unknown; error?: unknown }
type Pending = { keyId: string; resolve: (reply: Reply | undefined) => void }

/** Makes a call in the newer revision, as the caller. Returns its JSON-RPC response, and passes on what precedes it. */
type CallModern = (call: object, notify: (message: object) => void) => Promise<Reply>

export type OldSessions = {
  /** Adds a session id to the response to `initialize` of a client that can ask its person. */
  begin: (keyId: string, message: object, response: Response) => Response
  /** Takes a client's answer to a question, or the end of a call that asks one; false for any other message. */
  take: (keyId: string, request: Request, message: object) => boolean
  /** Answers a message with what its client can cancel, if it has a session. */
  follow: <T>(
    keyId: string,
    request: Request,
    message: object,
    answer: (cancelled: AbortSignal | undefined) => Promise<T>,
  ) => Promise<T>
  /** Answers a call of such a client on a stream; undefined when the message is none. */
  serve: (keyId: string, request: Request, message: object, call: CallModern) => Response | undefined
}

const bind = (keyId: string): string => `mcp-session\n${keyId}`

/** The questions that wait for an answer in this process, by id. */
type Questions = Map<string, Pending>

/** Sends a request to the client, and waits for its answer; undefined when there will be none. */
const ask = async (
  pending: Questions,
  { send, signal }: Stream,
  keyId: string,
  { method, params }: { method: string; params: unknown },
): Promise<Reply | undefined> => {
  if (signal.aborted) return undefined
  if (pending.size >= MAX_PENDING) return { error: 'busy' }
  const id = `ask-${randomUUID()}`
  const { promise, resolve } = Promise.withResolvers<Reply | undefined>()
  const giveUp = (): void => {
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
    resolve(undefined)
  }
  const timer = setTimeout(giveUp, ANSWER_TTL_MS).unref()
  signal.addEventListener('abort', giveUp, { once: true })
  pending.set(id, { keyId, resolve })
  send({ jsonrpc: '2.0', id, method, params })
  return await promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    pending.delete(id)
  })
}

/** Makes the call, asks what it asks, and makes it again with the answers until it is done. */
const converse = async (
  pending: Questions,
  stream: Stream,
  { keyId, session, message, call }: Conversation,
): Promise<Reply | undefined> => {
  let answer: object = {}
  let capabilities = session.capabilities
  for (let round = 0; ; round++) {
    // Who is asked without end is served like a client that cannot ask.
    if (round === MAX_ROUNDS) [capabilities, answer] = [{}, {}]
    const modern = toModernCall(message, session, answer)
    Object.assign(modern.params['_meta'] as object, { [CLIENT_CAPABILITIES_META_KEY]: capabilities })
    const reply = await call(modern, stream.send)
    const questions = readQuestions(reply.result)
    if (!questions || round === MAX_ROUNDS) return reply
    const answers: Record<string, unknown> = {}
    for (const [name, request] of questions.requests) {
      const given = await ask(pending, stream, keyId, request)
      if (!given) return undefined
      // A client that cannot ask after all is served like one that never said so.
      if (given.error !== undefined || !isObject(given.result)) capabilities = {}
      else answers[name] = given.result
    }
    answer =
      capabilities === session.capabilities ? { inputResponses: answers, requestState: questions.state } : {}
  }
}

/** Returns the session of a client that can ask its person; undefined for any other message. */
const readSession = (message: object): Session | undefined => {
  const client = readOldClient(message)
  if (!client) return undefined
  const { sampling, roots } = (message as { params: { capabilities: Record<string, unknown> } }).params
    .capabilities
  return {
    ...client,
    capabilities: {
      elicitation: client.elicitation,
      ...(sampling ? { sampling: {} } : {}),
      ...(roots ? { roots: {} } : {}),
    },
  }
}

/** The calls of this process that a client can cancel, by their session and id. */
type Cancels = Map<string, () => void>

const nameCall = (keyId: string, session: string | null, id: unknown): string =>
  JSON.stringify([keyId, session, id])

/** Ends the call that a message cancels; false when it is none of this process. */
const cancelCall = (
  cancels: Cancels,
  keyId: string,
  { headers }: Request,
  message: { method?: unknown; params?: unknown },
): boolean => {
  if (message.method !== 'notifications/cancelled' || !isObject(message.params)) return false
  const cancel = cancels.get(nameCall(keyId, headers.get(SESSION_HEADER), message.params['requestId']))
  cancel?.()
  return cancel !== undefined
}

/** Returns what serves such sessions in this process. */
export const createOldSessions = (sealer: Sealer): OldSessions => {
  const pending: Questions = new Map()
  const cancels: Cancels = new Map()
  return {
    begin: (keyId, message, response) => {
      const session = response.ok ? readSession(message) : undefined
      const id = session && sealer.seal(JSON.stringify(session), bind(keyId))
      if (id !== undefined && id.length <= MAX_SESSION_LENGTH) response.headers.set(SESSION_HEADER, id)
      return response
    },
    take: (keyId, request, message) => {
      if (cancelCall(cancels, keyId, request, message)) return true
      if (!('id' in message) || 'method' in message) return false
      const waiting = pending.get(String(message.id))
      if (waiting?.keyId !== keyId) return false
      waiting.resolve(message)
      return true
    },
    follow: async (keyId, request, message, answer) => {
      const session = readSessionId(request)
      if (session === undefined || !hasId(message)) return await answer(undefined)
      const name = nameCall(keyId, session, message.id)
      const abort = new AbortController()
      cancels.set(name, () => abort.abort())
      return await answer(abort.signal).finally(() => cancels.delete(name))
    },
    serve: (keyId, request, message, call) => {
      const id = readSessionId(request)
      if (id === undefined || !isOldCall(message) || !hasId(message)) return undefined
      const opened = sealer.open(id, bind(keyId))
      if (opened === undefined) return undefined
      const session = JSON.parse(opened) as Session
      const name = nameCall(keyId, id, message.id)
      return streamOf(message.id, (stream) => {
        cancels.set(name, stream.cancel)
        return converse(pending, stream, { keyId, session, message, call }).finally(() =>
          cancels.delete(name),
        )
      })
    },
  }
}

const readSessionId = ({ headers }: Request): string | undefined => {
  const id = headers.get(SESSION_HEADER)
  return id === null || id.length > MAX_SESSION_LENGTH ? undefined : id
}

type OldCall = { id: string | number; params?: Record<string, unknown> }
type Conversation = { keyId: string; session: Session; message: OldCall; call: CallModern }

const hasId = (message: object): message is OldCall =>
  'id' in message && (typeof message.id === 'string' || typeof message.id === 'number')

/** A stream of messages to the client; `signal`: it has gone, or has cancelled the call. */
type Stream = { send: (message: object) => void; signal: AbortSignal; cancel: () => void }

/** Returns a stream that ends with the reply; it has none when the client has gone or does not want it. */
const streamOf = (
  id: string | number,
  converse: (stream: Stream) => Promise<Reply | undefined>,
): Response => {
  const gone = new AbortController()
  const cancelled = new AbortController()
  const signal = AbortSignal.any([gone.signal, cancelled.signal])
  const cancel = (): void => cancelled.abort()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      const write = (text: string): void => {
        if (!gone.signal.aborted) controller.enqueue(encoder.encode(text))
      }
      const send = (message: object): void => write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
      const keepAlive = setInterval(() => write(': keep-alive\n\n'), KEEP_ALIVE_MS).unref()
      void converse({ send, signal, cancel })
        .catch(() => ({ error: { code: -32603, message: 'The call failed; its outcome is not known.' } }))
        .then((reply: Reply | undefined) => {
          clearInterval(keepAlive)
          if (reply && !cancelled.signal.aborted)
            send({
              jsonrpc: '2.0',
              id,
              ...(reply.error === undefined ? { result: toOldResult(reply.result) } : { error: reply.error }),
            })
          if (!gone.signal.aborted) controller.close()
        })
    },
    cancel: () => gone.abort(),
  })
  return new Response(body, {
    headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store, no-transform' },
  })
}
