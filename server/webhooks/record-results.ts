import {
  type ChangedEndpoint,
  type ClaimedDelivery,
  settleDeliveries,
} from '../../storage/webhook-deliveries.ts'
import type { App } from '../app.ts'
import { announceEvents } from '../events/signal.ts'
import { isRetryable } from '../core/steps/deadline.ts'
import { endpointResults, RULES, tellOfEndpoints } from './breaker.ts'
import type { Attempted } from './send.ts'

export type Finished = { delivery: ClaimedDelivery; attempted: Attempted }

const ATTEMPTS = 4

/**
 * Writes what attempts came to, in the order in which they ended, and counts them. Answers the endpoints
 * that it changed.
 */
export const settle = async (
  app: App,
  finished: readonly Finished[],
): Promise<readonly ChangedEndpoint[]> => {
  const results = finished.map(({ attempted }) => attempted.result)
  const seen = finished.map(({ delivery, attempted: { result, gone } }) => ({
    workspaceId: delivery.workspace_id,
    endpointId: delivery.endpoint_id,
    delivered: result.status === 'delivered',
    gone,
  }))
  const endpoints = endpointResults(seen)
  const now = app.now()
  let changed: readonly ChangedEndpoint[]
  for (let attempt = 1; ; attempt++) {
    try {
      changed = await write(app, results, endpoints, now)
      break
    } catch (error) {
      // Whoever deletes or disables an endpoint locks it before its deliveries, and this locks it after them.
      if (attempt >= ATTEMPTS || !isRetryable(error)) throw error
    }
  }
  for (const { status } of results) app.metrics.deliveries.inc({ outcome: status })
  return changed
}

const write = async (
  app: App,
  results: readonly Attempted['result'][],
  endpoints: ReturnType<typeof endpointResults>,
  now: string,
): Promise<readonly ChangedEndpoint[]> => {
  // Successes cause no events, and one statement is a transaction by itself.
  if (endpoints.every(({ failures, gone }) => failures === 0 && !gone))
    return await settleDeliveries(app.db, results, endpoints, RULES, now)
  const { changed, told } = await app.db.transaction().execute(async (tx) => {
    const after = await settleDeliveries(tx, results, endpoints, RULES, now)
    return { changed: after, told: await tellOfEndpoints(tx, after, now) }
  })
  if (told) announceEvents(app)
  return changed
}
