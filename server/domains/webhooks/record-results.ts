import type { Db } from '../../../storage/database.ts'
import type { ClaimedDelivery } from '../../../storage/webhooks/deliveries.ts'
import {
  type ChangedEndpoint,
  type DeliveryResult,
  type EndpointResult,
  recordDeliveryResults,
} from '../../../storage/webhooks/results.ts'
import type { App } from '../../app.ts'
import { withRetries } from '../../kernel/retry.ts'
import { notifyEvents } from '../events/signal.ts'
import { BREAKER_RULES, summarizeByEndpoint, writeEndpointEvents } from './breaker.ts'
import type { DeliveryAttempt } from './send.ts'

export type FinishedAttempt = { delivery: ClaimedDelivery; attempt: DeliveryAttempt }

const MAX_TRANSACTION_ATTEMPTS = 4

/**
 * Records the results of attempts, in the order in which they ended, and what they mean to their
 * endpoints. Returns the endpoints that were changed.
 */
export const recordResults = async (
  app: App,
  finished: readonly FinishedAttempt[],
): Promise<readonly ChangedEndpoint[]> => {
  const results = finished.map(({ attempt }) => attempt.result)
  const endpoints = summarizeByEndpoint(
    finished.map(({ delivery, attempt: { result, gone, ours } }) => ({
      workspaceId: delivery.workspace_id,
      endpointId: delivery.endpoint_id,
      delivered: result.status === 'delivered',
      gone,
      ours: ours ? delivery.since_probe_due + result.duration_ms / 1000 : null,
    })),
  )
  const now = app.now()
  // Retried because it can deadlock: deleting or disabling an endpoint locks the endpoint before its
  // deliveries, and this statement locks it after them.
  const changed = await withRetries(
    () => writeResults(app, results, endpoints, now),
    MAX_TRANSACTION_ATTEMPTS,
  )
  for (const { status } of results) app.metrics.deliveries.inc({ outcome: status })
  return changed
}

const writeResults = async (
  app: App,
  results: readonly DeliveryResult[],
  endpoints: readonly EndpointResult[],
  now: string,
): Promise<readonly ChangedEndpoint[]> => {
  const record = (db: Db) => recordDeliveryResults(db, results, endpoints, BREAKER_RULES, now)
  // Successes cause no events, and one statement is a transaction by itself.
  if (endpoints.every(({ failures, gone }) => failures === 0 && !gone)) return await record(app.db)
  const { changed, news } = await app.db.transaction().execute(async (tx) => {
    const endpointsChanged = await record(tx)
    return { changed: endpointsChanged, news: await writeEndpointEvents(tx, endpointsChanged, now) }
  })
  for (const each of news) notifyEvents(app, each)
  return changed
}
