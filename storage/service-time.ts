/** How long the statements of a connection take, in milliseconds. */
export type ServiceTime = {
  /** When the oldest without a response had the connection to itself. */
  since: number
  /** On the server, of those outside transactions: others may wait for locks. */
  meanMs: number
  /** The shortest time that one alone took: the way to the server and back, mostly. */
  roundTripMs: number
}

/**
 * Statements queue on a connection while they take the server about so long together. Others wait on this side: they
 * get the connection that is free first, and are not sent when their client has gone.
 */
const MAX_PENDING_MS = 20
const FIRST_MEAN_MS = 1
/** Of the latest statement in the mean. */
const MEAN_WEIGHT = 1 / 8

export const createServiceTime = (): ServiceTime => ({
  since: 0,
  meanMs: FIRST_MEAN_MS,
  roundTripMs: Infinity,
})

/** Notes that a statement that was sent at this time has ended. `counts`: for the mean. */
export const measure = (service: ServiceTime, sentAt: number, counts: boolean): void => {
  const now = performance.now()
  const wasAlone = sentAt === service.since
  if (wasAlone) service.roundTripMs = Math.min(service.roundTripMs, now - sentAt)
  // A distant server would look like a slow one, and get too few statements at a time.
  const taken = Math.max(0, Math.min(now - service.since, now - sentAt - service.roundTripMs))
  if (counts) service.meanMs += (taken - service.meanMs) * MEAN_WEIGHT
  service.since = now
}

/** How many statements a connection may have at a time. */
export const getMaxPending = ({ meanMs }: ServiceTime, max: number): number =>
  Math.min(max, Math.max(1, MAX_PENDING_MS / meanMs))
