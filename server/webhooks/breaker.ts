import { type EventRow, writeEvents } from '../../storage/events.ts'
import type { Db } from '../../storage/database.ts'
import type { BreakerRules, ChangedEndpoint, EndpointResult } from '../../storage/webhook-deliveries.ts'
import { emitter } from '../core/emit.ts'

/** Contract 6. A paused endpoint is probed after a tenth of the time that it has been failing. */
export const RULES: BreakerRules = {
  pauseAfter: 10,
  disableAfterSeconds: 5 * 86_400,
  warnAt: [50, 70, 90],
  probeSeconds: [5, 300],
}

/** What became of an attempt, as its endpoint sees it. */
export type Seen = { workspaceId: string; endpointId: string; delivered: boolean; gone: boolean }

/** What attempts, in the order in which they ended, mean to their endpoints. */
export const endpointResults = (seen: readonly Seen[]): EndpointResult[] => {
  const results = new Map<string, EndpointResult>()
  for (const { workspaceId, endpointId, delivered, gone } of seen) {
    const key = `${workspaceId} ${endpointId}`
    const result = results.get(key) ?? {
      workspace_id: workspaceId,
      id: endpointId,
      succeeded: false,
      failures: 0,
      gone: false,
    }
    results.set(key, {
      ...result,
      succeeded: result.succeeded || delivered,
      failures: delivered ? 0 : result.failures + 1,
      gone: result.gone || gone,
    })
  }
  return [...results.values()]
}

/**
 * Writes the events of endpoints that were disabled or are about to be. They go to every endpoint that
 * subscribes: one that is disabled is passed over as for any event, one that is warned of itself finds the
 * warning in its backlog when it works again. Answers whether there were any.
 */
export const tellOfEndpoints = async (
  tx: Db,
  changed: readonly ChangedEndpoint[],
  now: string,
): Promise<boolean> => {
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
    const emit = emitter(rows, now)
    const endpoint = { id, url, consecutive_failures }
    if (status === 'disabled' && was !== 'disabled')
      emit('webhook.endpoint_disabled/1', { endpoint, reason: reason ?? 'failing' })
    else if (percent !== null) emit('webhook.endpoint_warning/1', { endpoint, percent, disabled_after })
    if (rows.length > 0) events.set(workspaceId, rows)
  }
  for (const [workspaceId, rows] of events) await writeEvents(tx, workspaceId, rows)
  return events.size > 0
}
