import { asNumber, asText } from './json.ts'

/** A message that took longer was delayed on its way; its reported time is used. */
const MAX_DELIVERY_DELAY_MS = 60_000

/**
 * Returns when something happened, ISO 8601 UTC. The provider reports whole seconds. For an event that
 * arrives promptly this is the end of that second, so that a customer who replies within a second does not
 * seem to have written before. The time is never after the event was received.
 */
export const toEventTime = (timestamp: unknown, receivedAt: string): string => {
  const reported = (asNumber(timestamp) ?? Number(asText(timestamp) ?? NaN)) * 1000
  const received = Date.parse(receivedAt)
  if (!Number.isFinite(reported) || reported <= 0 || reported >= received) return receivedAt
  return new Date(
    received - reported < MAX_DELIVERY_DELAY_MS ? Math.min(received, reported + 999) : reported,
  ).toISOString()
}
