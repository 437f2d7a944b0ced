import assert from 'node:assert/strict'
import { createEventId } from '../../server/ids.ts'
import type { EventRow } from '../../storage/events/events.ts'
import type { TestServer } from '../servers.ts'

/** An event as the API shows it. */
export type ShownEvent = { id: string; type: string; data: Record<string, never> }

/** Returns a row of the type `group.created/1` with a new id. */
export const groupEvent = (name: string, occurredAt = '2026-10-01T09:30:00.000Z'): EventRow => ({
  id: createEventId(),
  type: 'group.created/1',
  occurred_at: occurredAt,
  data: { group: { id: '1', name, emoji: null } },
})

/** An event of the stream: its id, its type and its data. */
type StreamedEvent = { id: string; event: string; data: ShownEvent }

/**
 * An open stream. `take` waits for the next events, `ended` until the server ends the stream; it may have
 * sent events until then.
 */
type EventStream = {
  response: Response
  take: (count: number) => Promise<StreamedEvent[]>
  ended: () => Promise<void>
  close: () => Promise<void>
}

/** Opens the event stream of the server with a key. `last` is sent as Last-Event-ID. */
export const openStream = async (
  server: Pick<TestServer, 'url'>,
  key: string,
  {
    after,
    consumer,
    from,
    last,
    types,
  }: { after?: string; consumer?: string; from?: string; last?: string; types?: string } = {},
): Promise<EventStream> => {
  const query = new URLSearchParams({
    ...(after ? { after } : {}),
    ...(consumer ? { consumer } : {}),
    ...(from ? { from } : {}),
    ...(types ? { types } : {}),
  })
  const response = await fetch(`${server.url}/v1/events?${query}`, {
    headers: {
      Authorization: `Bearer ${key}`,
      Accept: 'text/event-stream',
      ...(last ? { 'Last-Event-ID': last } : {}),
    },
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let buffered = ''
  const received: StreamedEvent[] = []
  const read = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    const blocks = (buffered + (value ?? '')).split('\n\n')
    buffered = blocks.pop()!
    for (const block of blocks) {
      const lines = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]),
      )
      if (lines['data'])
        received.push({
          id: lines['id']!,
          event: lines['event']!,
          data: JSON.parse(lines['data']) as ShownEvent,
        })
    }
    return !done
  }
  return {
    response,
    take: async (count) => {
      while (received.length < count) assert.ok(await read(), 'the stream ended early')
      return received.splice(0, count)
    },
    ended: async () => {
      while (await read());
    },
    close: async () => {
      await reader.cancel()
    },
  }
}
