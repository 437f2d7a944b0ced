import type { Db } from '../../storage/database.ts'
import type { EventRow } from '../../storage/events.ts'
import type { BreakerRules, ChangedEndpoint, EndpointResult } from '../../storage/webhook-results.ts'
import { createEmit } from '../core/emit.ts'
import { type EventNews, insertAllEvents } from '../events/signal.ts'

/** The documented thresholds of the circuit breaker. */
export const BREAKER_RULES: BreakerRules = {
  pauseAfterFailures: 10,
  disableAfterSeconds: 5 * 86_400,
  warnAtPercent: [50, 70, 90],
  probe: { outageFraction: 0.1, minSeconds: 5, maxSeconds: 300, jitter: 0.1 },
}

export type BreakerState = {
  status: 'active' | 'paused' | 'disabled'
  consecutiveFailures: number
  /**
   * Seconds since the first failure after the last success, without the time in which what was due waited for a server
   * (`claimDeliveries`); null when the endpoint does not fail.
   */
  failingForSeconds: number | null
  /** The highest warning so far in this outage, in percent of the time until it is disabled; 0: none. */
  warnedPercent: number
}

export type BreakerDecision = BreakerState & {
  /** Why the endpoint was disabled just now. */
  disabledReason: 'gone' | 'failing' | null
  /** The warning to send, in percent of the time until the endpoint is disabled. */
  warnPercent: number | null
  /** Seconds until a paused endpoint is probed, before the jitter. */
  probeAfterSeconds: number | null
}

/**
 * The rule of the circuit breaker: what a batch of attempts does to an endpoint. Deliveries to an endpoint
 * that fails repeatedly are paused and probed one at a time; it is disabled when the outage lasts too long,
 * or at once when it answers 410 Gone. A success in the batch starts the count anew. A batch of attempts that
 * all failed through a fault of ours decides nothing, and its time is no part of the outage.
 *
 * The server lets the database decide, in the statement that records the results, since several servers
 * record results of one endpoint at the same time (`recordDeliveryResults`). tests/webhooks/breaker.test.ts
 * holds that statement to this function.
 */
export const decideBreaker = (
  before: BreakerState,
  { succeeded, failures, gone, ours }: Omit<EndpointResult, 'workspace_id' | 'id'>,
  { pauseAfterFailures, disableAfterSeconds, warnAtPercent, probe }: BreakerRules = BREAKER_RULES,
): BreakerDecision => {
  const consecutiveFailures = succeeded ? failures : before.consecutiveFailures + failures
  const waitForProbe = (outage: number): number =>
    Math.min(probe.maxSeconds, Math.max(probe.minSeconds, outage * probe.outageFraction))
  const failingForSeconds =
    ours !== null
      ? excuse(before, ours + waitForProbe(before.failingForSeconds ?? 0))
      : failures === 0
        ? null
        : succeeded
          ? 0
          : (before.failingForSeconds ?? 0)
  const outageSeconds = failingForSeconds ?? 0
  const isStillPaused = before.status === 'paused' && !succeeded
  const isDisabled =
    before.status === 'disabled' ||
    gone ||
    (isStillPaused && ours === null && outageSeconds >= disableAfterSeconds)
  const isPaused = !isDisabled && (isStillPaused || consecutiveFailures >= pauseAfterFailures)
  const percent = (outageSeconds / disableAfterSeconds) * 100
  const reached =
    isPaused && ours === null ? Math.max(0, ...warnAtPercent.filter((limit) => percent >= limit)) : 0
  return {
    status: isDisabled ? 'disabled' : isPaused ? 'paused' : 'active',
    consecutiveFailures,
    failingForSeconds,
    warnedPercent: failingForSeconds === null || succeeded ? 0 : Math.max(before.warnedPercent, reached),
    disabledReason: !isDisabled || before.status === 'disabled' ? null : gone ? 'gone' : 'failing',
    warnPercent: reached > before.warnedPercent ? reached : null,
    probeAfterSeconds: isPaused ? waitForProbe(outageSeconds) : null,
  }
}

/**
 * Leaves seconds out of an outage. That of an active endpoint begins anew: it is tried at no fixed times, so nobody
 * knows how long it was not tried, and it is not disabled before it was paused.
 */
const excuse = ({ status, failingForSeconds }: BreakerState, seconds: number): number | null =>
  failingForSeconds === null ? null : status === 'active' ? 0 : Math.max(0, failingForSeconds - seconds)

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
