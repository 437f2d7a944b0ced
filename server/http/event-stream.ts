import { requireApiAccess, requireScope } from '../kernel/access.ts'
import { findOperation } from '../../catalog/index.ts'
import { type EventPosition, type EventRow, scanEvents } from '../../storage/events/events.ts'
import { recordContactRead } from '../guards/audit/contact-reads.ts'
import type { App } from '../app.ts'
import type { StreamRegistry } from '../app-state.ts'
import type { Actor } from '../kernel/context.ts'
import { notFound, Problem } from '../kernel/problem.ts'
import { authenticate, type KeyBearer } from '../kernel/authenticate.ts'
import { createRequestId } from '../ids.ts'
import { errorLogDetails } from '../kernel/log-details.ts'
import { findConsumerStart } from '../domains/events/consumers.ts'
import { findStart, toEventFilter } from '../domains/events/list.ts'
import { hasContactBudget, takeContacts } from '../guards/contact-budget.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import { showEvents } from '../domains/events/view.ts'

/**
 * Signals wake a stream. It reads on for a while after one, since an event may show only when a transaction has
 * ended that began before it: the pause between reads is doubled with every read that finds nothing, up to
 * `heard`. `unheard`: while signals of other servers do not arrive.
 */
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = { heard: 2000, unheard: 250 }
/** A busy server wakes its streams at every commit; they read no more often than this. */
const MIN_READ_INTERVAL_MS = 20
/** Proxies close connections that are silent for long. */
const HEARTBEAT_MS = 15_000
const MAX_STREAMS_PER_KEY = 10
const SCAN_SIZE = 500
/** Tells a client when to reconnect (the `retry` field of server-sent events). */
const RECONNECT_MS = 1000

/** Ends every stream and refuses new ones, before the storage is closed. */
export const stopStreams = async ({ streams }: App): Promise<void> => {
  streams.stopped = true
  for (const end of streams.open) end()
  await Promise.allSettled(streams.pending)
}

/** Counts a stream of a key. Returns the function that ends the count; throws 429 above the limit. */
const countStream = (streams: StreamRegistry, keyId: string): (() => void) => {
  const count = streams.countByKey.get(keyId) ?? 0
  if (count >= MAX_STREAMS_PER_KEY) {
    throw new Problem(
      'rate_limited',
      `This key has ${count} event streams open on this server, which is the maximum. Close one first.`,
      { violated_policies: ['streams'] },
      { 'Retry-After': '15' },
    )
  }
  streams.countByKey.set(keyId, count + 1)
  return () => {
    const remaining = (streams.countByKey.get(keyId) ?? 1) - 1
    if (remaining > 0) streams.countByKey.set(keyId, remaining)
    else streams.countByKey.delete(keyId)
  }
}

type Wakeup = {
  wake: () => void
  /** Resolves when woken or after a pause, but not sooner than the minimum after the last read. */
  wait: (lastReadAt: number) => Promise<void>
  unsubscribe: () => void
}

/** Waits until there may be new events of a workspace: after a signal, or after a while. */
const createWakeup = ({ signals }: App, workspaceId: string): Wakeup => {
  let isWoken = false
  let pauseMs = FIRST_PAUSE_MS
  let resolveWait: (() => void) | undefined
  const wake = (): void => {
    isWoken = true
    pauseMs = FIRST_PAUSE_MS
    resolveWait?.()
  }
  return {
    wake,
    unsubscribe: signals.on('events', (about) => {
      if (about === workspaceId || about === '*') wake()
    }),
    wait: async (lastReadAt) => {
      if (!isWoken) {
        await new Promise<void>((resolve) => {
          const maxMs = signals.areHeard() ? MAX_PAUSE_MS.heard : MAX_PAUSE_MS.unheard
          const timer = setTimeout(resolve, Math.min(pauseMs, maxMs))
          pauseMs = Math.min(2 * pauseMs, maxMs)
          resolveWait = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      const tooEarlyMs = MIN_READ_INTERVAL_MS - (performance.now() - lastReadAt)
      if (tooEarlyMs > 0) await new Promise((resolve) => setTimeout(resolve, tooEarlyMs))
      isWoken = false
      resolveWait = undefined
    },
  }
}

/** Who reads, with the `Authorization` header. */
type StreamClient = KeyBearer & { readonly authorization: string | undefined }

/** Checks the key before every read: it can be revoked, and what its owner may see can change. */
const authorizeReader = async (app: App, client: StreamClient): Promise<Actor> => {
  const actor = await authenticate(app, client.authorization, client)
  requireApiAccess(actor, client.address)
  requireScope(actor, findOperation('events_list')!)
  return actor
}

type StreamInput = { after?: string; cursor?: string; consumer?: string; from?: string; types?: string[] }

/** What a stream reads, and how far it has come. */
type EventReader = {
  readonly app: App
  readonly client: StreamClient
  readonly workspaceId: string
  readonly types: string[] | undefined
  readonly wakeup: Wakeup
  position: EventPosition | undefined
  lastSentAt: number
  ended: boolean
}

/** The next events, or a heartbeat, as text of the stream; undefined when the stream has ended. */
const readNext = async (reader: EventReader): Promise<string | undefined> => {
  const { app, client, workspaceId, types, wakeup } = reader
  while (!reader.ended) {
    const readAt = performance.now()
    const actor = await authorizeReader(app, client)
    const filter = toEventFilter(actor, types)
    const { events, last, more } = await scanEvents(app.db, workspaceId, reader.position, filter, SCAN_SIZE)
    reader.position = last ?? reader.position
    if (events.length > 0) {
      if (hasContactBudget(actor)) await countEvents(app, actor, events)
      return (await showEvents(app.db, actor, events))
        .map((event) => `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        .join('')
    }
    if (more) continue
    if (performance.now() - reader.lastSentAt >= HEARTBEAT_MS) return ': still here\n\n'
    await wakeup.wait(readAt)
  }
  return undefined
}

/** Counts the contacts of events that an AI agent's key is about to be sent. Throws 429 `contact_budget`. */
const countEvents = async (app: App, actor: Actor, events: readonly EventRow[]): Promise<void> => {
  const op = findOperation('events_list')!
  const contacts = await takeContacts(app, app.db, actor, listContactSubjects(op, {}, { data: events }))
  const trace = { door: 'rest', client: null, requestId: createRequestId(), confirmed: false } as const
  if (contacts.size > 0) recordContactRead(app, { actor, op, trace }, contacts)
}

/** Tells a client to reconnect when it may see more contacts. */
const explainBudget = ({ message, headers }: Problem): string =>
  `: ${message}\nretry: ${Number(headers['Retry-After']) * 1000}\n\n`

const encoder = new TextEncoder()

/**
 * The events after a position as server-sent events, those already in the log and those to come, until the
 * client disconnects, the key is revoked or the server stops. Nothing is read until the client has consumed
 * the events read before (backpressure). Throws 404 when the position does not exist, 429 when the key has
 * too many streams open.
 */
export const openStream = async (
  app: App,
  client: StreamClient,
  { after, cursor, consumer, from, types }: StreamInput,
): Promise<ReadableStream<Uint8Array>> => {
  const { streams } = app
  const { key, workspace } = await authorizeReader(app, client)
  const start = cursor ?? after
  // A client that reconnects sends its last id beside the URL that it began with.
  const kept =
    consumer === undefined || cursor !== undefined
      ? null
      : await findConsumerStart(app.db, workspace.id, consumer)
  // The position is not shown, so it may be that of any event.
  const position = kept === null ? await findStart(app.db, workspace.id, { start, from, visible: {} }) : kept
  if (position === null) throw notFound('event', start!)
  const uncount = countStream(streams, key.id)
  const reader: EventReader = {
    app,
    client,
    workspaceId: workspace.id,
    types,
    wakeup: createWakeup(app, workspace.id),
    position,
    lastSentAt: performance.now(),
    ended: streams.stopped,
  }
  const end = (): void => {
    reader.ended = true
    reader.wakeup.wake()
  }
  const close = (): void => {
    if (!streams.open.delete(end)) return
    end()
    reader.wakeup.unsubscribe()
    uncount()
  }
  streams.open.add(end)

  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    // The client reconnects with its last id, and the response to that says why it may not read.
    const text = await readNext(reader).catch((error: unknown) => {
      if (error instanceof Problem && error.extras.reason === 'contact_budget') {
        reader.ended = true
        return explainBudget(error)
      }
      if (!(error instanceof Problem))
        app.log.warn(errorLogDetails(error), 'Cannot read events; stream ended')
      return undefined
    })
    if (!streams.open.has(end)) return
    if (text === undefined) {
      controller.close()
      close()
      return
    }
    reader.lastSentAt = performance.now()
    controller.enqueue(encoder.encode(text))
  }
  return new ReadableStream<Uint8Array>({
    // The head of a response is sent with its first bytes.
    start: (controller) => {
      controller.enqueue(encoder.encode(`retry: ${RECONNECT_MS}\n\n`))
    },
    pull: (controller) => {
      const pending = pull(controller)
      streams.pending.add(pending)
      return pending.finally(() => {
        streams.pending.delete(pending)
      })
    },
    cancel: close,
  })
}
