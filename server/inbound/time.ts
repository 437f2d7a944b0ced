import { numberOf, textOf } from './json.ts'

/** Beyond this a message was held back on its way, and its time is taken as it is told. */
const PROMPT_MS = 60_000

/**
 * When something happened, ISO 8601 UTC. The provider tells whole seconds. Of what arrives promptly the
 * latest moment that it may mean is taken, so that a customer who answers within a second does not seem to
 * have written before; nothing happens after it was received.
 */
export const momentOf = (timestamp: unknown, receivedAt: string): string => {
  const told = (numberOf(timestamp) ?? Number(textOf(timestamp) ?? NaN)) * 1000
  const received = Date.parse(receivedAt)
  if (!Number.isFinite(told) || told <= 0 || told >= received) return receivedAt
  return new Date(received - told < PROMPT_MS ? Math.min(received, told + 999) : told).toISOString()
}
