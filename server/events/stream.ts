import { findOperation } from '../../catalog/index.ts'
import { type Position, positionOf, scanEvents } from '../../storage/events.ts'
import type { App } from '../app.ts'
import type { Actor } from '../core/context.ts'
import { notFound, Problem } from '../core/problem.ts'
import { authenticate } from '../core/steps/authenticate.ts'
import { entitle, requireScope } from '../core/steps/entitle.ts'
import { wantedOf } from './list.ts'
import { onEvents } from './signal.ts'
import { showEvent } from './view.ts'

/** Events of other servers are looked for this often; those of this one wake the stream. */
const POLL_MS = 250
/** A busy server wakes its streams at every commit; they look no more often than this. */
const SHORTEST_MS = 20
/** Proxies close what is silent for long. */
const HEARTBEAT_MS = 15_000
const MOST_OF_A_KEY = 10
const SCANNED = 500
const RETRY_MS = 1000

type Streams = {
  ofKey: Map<string, number>
  open: Set<() => void>
  working: Set<Promise<unknown>>
  stopped: boolean
}
const known = new WeakMap<App, Streams>()

const streamsOf = (app: App): Streams => {
  let streams = known.get(app)
  if (!streams)
    known.set(app, (streams = { ofKey: new Map(), open: new Set(), working: new Set(), stopped: false }))
  return streams
}

/** Ends every stream and begins no other, before the storage is closed. */
export const stopStreams = async (app: App): Promise<void> => {
  const streams = streamsOf(app)
  streams.stopped = true
  for (const end of streams.open) end()
  await Promise.allSettled(streams.working)
}

const takePlace = (streams: Streams, keyId: string): (() => void) => {
  const taken = streams.ofKey.get(keyId) ?? 0
  if (taken >= MOST_OF_A_KEY) {
    throw new Problem(
      'rate_limited',
      `This key has ${taken} event streams open on this server, which is the most.`,
      { 'violated-policies': ['streams'] },
      { 'Retry-After': '15' },
    )
  }
  streams.ofKey.set(keyId, taken + 1)
  return () => {
    const left = streams.ofKey.get(keyId)! - 1
    if (left > 0) streams.ofKey.set(keyId, left)
    else streams.ofKey.delete(keyId)
  }
}

/** Waits until there may be something new: a commit here, or time. */
const alarm = (app: App) => {
  let rung = false
  let wake: (() => void) | undefined
  const ring = (): void => {
    rung = true
    wake?.()
  }
  return {
    ring,
    off: onEvents(app, ring),
    wait: async (lookedAt: number): Promise<void> => {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, POLL_MS)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      const early = SHORTEST_MS - (performance.now() - lookedAt)
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
      rung = false
      wake = undefined
    },
  }
}

/** Who reads, as of now: a key that was revoked reads no further, and what its owner may see can change. */
const reader = async (app: App, authorization: string | undefined): Promise<Actor> => {
  const actor = await authenticate(app, authorization)
  entitle(actor)
  requireScope(actor, findOperation('events_list')!)
  return actor
}

const encoder = new TextEncoder()

/**
 * The events after a position as server-sent events, those that are there and those to come, until the
 * client leaves, the key is revoked or the server stops. Nothing is read while the client does not take
 * what was read before. Throws 429.
 */
export const openStream = async (
  app: App,
  authorization: string | undefined,
  input: { after?: string; types?: string[] },
): Promise<ReadableStream<Uint8Array>> => {
  const streams = streamsOf(app)
  const { key, workspace } = await reader(app, authorization)
  let position: Position | undefined
  if (input.after !== undefined && !(position = await positionOf(app.db, workspace.id, input.after)))
    throw notFound('event', input.after)
  const leavePlace = takePlace(streams, key.id)
  const { ring, off, wait } = alarm(app)
  let ended = streams.stopped
  const end = (): void => {
    ended = true
    ring()
  }
  const close = (): void => {
    if (!streams.open.delete(end)) return
    end()
    off()
    leavePlace()
  }
  streams.open.add(end)
  let sentAt = performance.now()

  /** What is to be sent next; undefined when the stream is over. */
  const next = async (): Promise<string | undefined> => {
    while (!ended) {
      const lookedAt = performance.now()
      const actor = await reader(app, authorization)
      const { events, last, more } = await scanEvents(
        app.db,
        workspace.id,
        position,
        wantedOf(actor, input.types),
        SCANNED,
      )
      position = last ?? position
      if (events.length > 0)
        return events
          .map(
            (event) =>
              `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(showEvent(actor, event))}\n\n`,
          )
          .join('')
      if (more) continue
      if (performance.now() - sentAt >= HEARTBEAT_MS) return ': still here\n\n'
      await wait(lookedAt)
    }
    return undefined
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    let text: string | undefined
    try {
      text = await next()
    } catch (error) {
      // The client comes back with the last id it has, and is told why it may not read, if so.
      if (!(error instanceof Problem))
        app.log.warn({ code: (error as { code?: string }).code }, 'an event stream was broken off')
    }
    if (text === undefined) {
      if (streams.open.has(end)) controller.close()
      close()
      return
    }
    if (!streams.open.has(end)) return
    sentAt = performance.now()
    controller.enqueue(encoder.encode(text))
  }
  return new ReadableStream<Uint8Array>({
    // The head of an answer goes out with its first bytes.
    start: (controller) => {
      controller.enqueue(encoder.encode(`retry: ${RETRY_MS}\n\n`))
    },
    pull: (controller) => {
      const work = pull(controller)
      streams.working.add(work)
      return work.finally(() => {
        streams.working.delete(work)
      })
    },
    cancel: close,
  })
}
