import { EventId } from '../../catalog/webhooks/subscriptions.ts'
import type { App } from '../core/app.ts'
import { openStream } from '../events/stream.ts'
import { type CallRequest, perform } from '../core/perform.ts'
import { Problem } from '../core/problem.ts'
import type { CallResponse } from '../core/respond.ts'
import { parseWeights } from './accept.ts'

/**
 * True when the client names server-sent events and likes them as much as JSON; a weight of 0 means that it does not
 * accept them.
 */
export const acceptsEventStream = (accept: string | undefined): boolean => {
  const weights = parseWeights(accept ?? '')
  const stream = weights.get('text/event-stream') ?? 0
  const json = weights.get('application/json') ?? weights.get('application/*') ?? weights.get('*/*') ?? 0
  return stream > 0 && stream >= json
}

const HEADER = 'Last-Event-ID'

/** Throws 400 for what is no id of an event, where the error of `after`, which stands for it, would not say where. */
const requireEventId = (id: string): void => {
  if (EventId.safeParse(id).success) return
  const at = { header: HEADER, code: 'invalid_value', detail: 'must be the id of an event' }
  throw new Problem('invalid_input', `${HEADER} ${at.detail}.`, {
    errors: [{ ...at, fix: 'Send the id of the last event that you received, or leave it out.' }],
  })
}

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
  const readInput: CallRequest['readInput'] = async (actor) => {
    if (lastEventId) requireEventId(lastEventId)
    const requested = (await call.readInput!(actor)).input as Record<string, unknown>
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
