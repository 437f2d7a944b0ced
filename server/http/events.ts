import type { App } from '../core/app.ts'
import { openStream } from '../events/stream.ts'
import { type CallRequest, perform } from '../core/perform.ts'
import type { CallResponse } from '../core/respond.ts'

/** True when the client accepts server-sent events; a weight of 0 means that it does not (RFC 9110, 12.4.2). */
export const acceptsEventStream = (accept: string | undefined): boolean =>
  (accept ?? '').split(',').some((range) => {
    const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return type === 'text/event-stream' && !parameters.some((one) => /^q\s*=\s*0(?:\.0*)?$/.test(one))
  })

/**
 * Serves the event log as server-sent events. The call runs as any other first, so that all checks apply.
 * `Last-Event-ID`, which a client sends when it reconnects, overrides `after` and `from`. Throws 429 when the key has
 * too many open streams.
 */
export const serveEventStream = async (
  app: App,
  call: CallRequest,
  lastEventId: string | undefined,
): Promise<Response | CallResponse> => {
  let input: Record<string, unknown> = {}
  const readInput: CallRequest['readInput'] = async (actor, past) => {
    const requested = (await call.readInput!(actor, past)).input as Record<string, unknown>
    return {
      input: (input = {
        limit: 1,
        ...requested,
        ...(lastEventId
          ? { after: lastEventId, consumer: undefined, cursor: undefined, from: undefined }
          : {}),
      }),
    }
  }
  const response = await perform(app, { ...call, readInput })
  if (response.status !== 200) return response
  const body = await openStream(app, call, input)
  return new Response(body, {
    // The last two stop proxies from buffering events.
    headers: {
      ...response.headers,
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    },
  })
}
