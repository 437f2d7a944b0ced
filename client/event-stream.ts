import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { FetchResponse } from './request.ts'

type Chunks = {
  readonly next: () => Promise<{ done?: boolean | undefined; value?: Uint8Array | undefined }>
  readonly end: () => Promise<unknown> | undefined
}

/** Not every browser can iterate a stream. */
const toChunks = (body: NonNullable<FetchResponse['body']>): Chunks => {
  if ('getReader' in body) {
    const reader = body.getReader()
    return { next: () => reader.read(), end: () => reader.cancel() }
  }
  const iterator = body[Symbol.asyncIterator]()
  return { next: () => iterator.next(), end: () => iterator.return?.() }
}

/** Yields the events of a `text/event-stream` body. `limit` gives each chunk its time. */
export async function* readEvents(
  body: NonNullable<FetchResponse['body']>,
  limit: <T>(work: Promise<T>) => Promise<T> = (work) => work,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const received: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (message) => void received.push(message) })
  const decoder = new TextDecoder()
  const chunks = toChunks(body)
  try {
    for (;;) {
      const { done, value } = await limit(chunks.next())
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      yield* received.splice(0)
    }
  } finally {
    // Not waited for: what is being read ends with the signal.
    void chunks.end()?.catch(() => {})
  }
}
