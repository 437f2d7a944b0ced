import { BREAKER_RULES } from '../../server/domains/webhooks/breaker.ts'
import type { EndpointResult } from '../../storage/webhooks/results.ts'

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

type BreakerDecision = BreakerState & {
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
 * breaker.test.ts holds the statement that decides it (`recordDeliveryResults`) to this function.
 */
export const decideBreaker = (
  before: BreakerState,
  { succeeded, failures, gone, ours }: Omit<EndpointResult, 'workspace_id' | 'id'>,
): BreakerDecision => {
  const { pauseAfterFailures, disableAfterSeconds, warnAtPercent, probe } = BREAKER_RULES
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
