import type { Db } from '../../../storage/database.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import type { BreakerRules, ChangedEndpoint, EndpointResult } from '../../../storage/webhooks/results.ts'
import { createEmit } from '../../kernel/emit.ts'
import { type EventNews, insertAllEvents } from '../events/signal.ts'

/**
 * The documented thresholds of the circuit breaker. Deliveries to an endpoint that fails repeatedly are paused and
 * probed one at a time; it is disabled when the outage lasts too long, or at once when it answers 410 Gone. The
 * database decides, in the statement that records the results (`recordDeliveryResults`), since several servers record
 * results of one endpoint at the same time.
 */
export const BREAKER_RULES: BreakerRules = {
  pauseAfterFailures: 10,
  disableAfterSeconds: 5 * 86_400,
  warnAtPercent: [50, 70, 90],
  probe: { outageFraction: 0.1, minSeconds: 5, maxSeconds: 300, jitter: 0.1 },
}

/**
 * The result of one attempt, as far as it concerns its endpoint. `ours`: when it failed through a fault of ours, the
 * seconds for which a paused endpoint was not tried because of it.
 */
export type AttemptOutcome = {
  workspaceId: string
  endpointId: string
  delivered: boolean
  gone: boolean
  ours: number | null
}

/** Sums up attempts, in the order in which they ended, for each endpoint. */
export const summarizeByEndpoint = (outcomes: readonly AttemptOutcome[]): EndpointResult[] => {
  const results = new Map<string, EndpointResult>()
  for (const { workspaceId, endpointId, delivered, gone, ours } of outcomes) {
    const key = `${workspaceId} ${endpointId}`
    const before = results.get(key)
    const failures = before?.failures ?? 0
    results.set(key, {
      workspace_id: workspaceId,
      id: endpointId,
      succeeded: (before?.succeeded ?? false) || delivered,
      failures: delivered ? 0 : ours === null ? failures + 1 : failures,
      gone: (before?.gone ?? false) || gone,
      // What another attempt of the batch says of the endpoint counts.
      ours: ours === null || (before && before.ours === null) ? null : Math.max(ours, before?.ours ?? 0),
    })
  }
  return [...results.values()]
}

/**
 * Writes the events of endpoints that were disabled or will be soon. They go to every endpoint that
 * subscribes: a disabled one is skipped as for any event, and an endpoint that is warned about itself
 * receives the warning with its backlog when it works again. Returns whether there were any.
 */
export const writeEndpointEvents = async (
  tx: Db,
  changed: readonly ChangedEndpoint[],
  now: string,
): Promise<EventNews[]> => {
  const events = new Map<string, EventRow[]>()
  for (const {
    workspace_id: workspaceId,
    id,
    url,
    consecutive_failures,
    status,
    was,
    disabled_reason: reason,
    percent,
    disabled_after,
  } of changed) {
    const rows = events.get(workspaceId) ?? []
    const emit = createEmit(rows, now)
    const endpoint = { id, url, consecutive_failures }
    if (status === 'disabled' && was !== 'disabled')
      emit('webhook.endpoint_disabled/1', { endpoint, reason: reason ?? 'failing' })
    else if (percent !== null) emit('webhook.endpoint_warning/1', { endpoint, percent, disabled_after })
    if (rows.length > 0) events.set(workspaceId, rows)
  }
  return await insertAllEvents(tx, events)
}
