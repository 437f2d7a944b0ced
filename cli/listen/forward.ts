import { setTimeout as sleep } from 'node:timers/promises'
import { signatureHeaders } from '../../catalog/webhooks/sign.ts'
import type { StreamedEvent } from '../event-stream.ts'
import type { Io } from '../io.ts'
import { sendRequest } from '../transport.ts'

export type Target = {
  readonly url: string
  readonly secret: string
  readonly workspaceId: string
  readonly apiVersion: string
  /** How often a target that answers with an error gets an event. */
  readonly attempts: number
}

/** What came of an event: the status of the last answer, null when there was none. */
export type Outcome = { readonly status: number | null; readonly attempts: number; readonly ms: number }

const TIMEOUT_MS = 15_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 30_000

/** The body that an endpoint gets (docs/webhooks.md). */
const buildBody = (event: StreamedEvent, { workspaceId, apiVersion }: Target): string => {
  const type = String(event['type'])
  const slash = type.lastIndexOf('/')
  return JSON.stringify({
    id: event['id'],
    type: type.slice(0, slash),
    version: type.slice(slash + 1),
    api_version: apiVersion,
    occurred_at: event['occurred_at'],
    company_id: workspaceId,
    data: event['data'],
  })
}

/** Makes one attempt. Returns the status of the answer; the code of the error when there was none. */
const attempt = async (
  io: Io,
  target: Target,
  event: StreamedEvent,
  body: string,
  count: number,
  signal: AbortSignal,
): Promise<number | string> => {
  const id = String(event['id'])
  const unread = new AbortController()
  try {
    const response = await sendRequest(io, target.url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'wcrm-webhooks/1',
        'wc-event-type': String(event['type']),
        'wc-attempt': String(count),
        ...signatureHeaders([target.secret], id, Math.floor(Date.now() / 1000), body),
      },
      redirect: 'manual',
      signal: AbortSignal.any([signal, unread.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    const { status } = response
    // The answer is its status: nobody reads the body.
    unread.abort()
    return status
  } catch (error) {
    const { name, message, cause } = error as Error & { cause?: { code?: string } }
    return name === 'TimeoutError' ? `no answer within ${TIMEOUT_MS / 1000} s` : (cause?.code ?? message)
  }
}

/**
 * Sends an event to the target until it is accepted. A target that answers with an error gets it again so many
 * times; one that is not there is waited for. Undefined when the signal ended it before.
 */
export const forwardEvent = async (
  io: Io,
  target: Target,
  event: StreamedEvent,
  signal: AbortSignal,
  warn: (text: string) => void,
): Promise<Outcome | undefined> => {
  const body = buildBody(event, target)
  let answers = 0
  for (let count = 1; ; count++) {
    const startedAt = performance.now()
    const answer = await attempt(io, target, event, body, count, signal)
    if (signal.aborted) return undefined
    const status = typeof answer === 'number' ? answer : null
    if (status !== null) answers++
    const isDone = status !== null && status >= 200 && status < 300
    if (isDone || answers >= target.attempts)
      return { status, attempts: count, ms: Math.round(performance.now() - startedAt) }
    const delay = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(count - 1, 10))
    warn(`${String(event['id'])}: ${status ?? answer}, again in ${delay / 1000} s.\n`)
    await sleep(delay, undefined, { signal }).catch(() => {})
    if (signal.aborted) return undefined
  }
}
