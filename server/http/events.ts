import type { App } from '../core/app.ts'
import { openStream } from '../events/stream.ts'
import { type CallRequest, perform } from '../core/perform.ts'
import type { CallResponse } from '../core/respond.ts'

/** Whether a client asks for server-sent events. */
export const acceptsEventStream = (accept: string | undefined): boolean =>
  /(?:^|,)\s*text\/event-stream\s*(?:;|,|$)/i.test(accept ?? '')

/**
 * The event log as server-sent events. The call is first made as any other, so that it is refused as any
 * other. `Last-Event-ID`, which a client sends when it comes back, wins over `after`. Throws 429 when the
 * key has too many streams open.
 */
export const serveEventStream = async (
  app: App,
  call: CallRequest,
  lastEventId: string | undefined,
): Promise<Response | CallResponse> => {
  let input: Record<string, unknown> = {}
  const read = (): unknown => {
    const asked = (call.input as () => Record<string, unknown>)()
    return (input = { limit: 1, ...asked, ...(lastEventId ? { after: lastEventId } : {}) })
  }
  const answer = await perform(app, { ...call, input: read })
  if (answer.status !== 200) return answer
  const body = await openStream(app, call.authorization, input)
  return new Response(body, {
    // The last two keep proxies from holding events back.
    headers: {
      ...answer.headers,
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    },
  })
}
