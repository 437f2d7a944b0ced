/** How long the statements of a connection take, in milliseconds. */
export type ServiceTime = {
  /** When the oldest without a response had the connection to itself. */
  since: number
  /** Of those outside transactions: others may wait for locks. */
  meanMs: number
}

/**
 * Statements queue on a connection while they take about so long together. Others wait on this side: they get the
 * connection when it is free, and are not sent when their client has gone.
 */
const MAX_PENDING_MS = 20
const FIRST_MEAN_MS = 1
/** Of the latest statement in the mean. */
const MEAN_WEIGHT = 1 / 8

export const createServiceTime = (): ServiceTime => ({ since: 0, meanMs: FIRST_MEAN_MS })

/** Notes that a statement has ended. `counts`: for the mean. */
export const measure = (service: ServiceTime, counts: boolean): void => {
  const now = performance.now()
  if (counts) service.meanMs += (now - service.since - service.meanMs) * MEAN_WEIGHT
  service.since = now
}

/** How many statements a connection may have at a time. */
export const getMaxPending = ({ meanMs }: ServiceTime, max: number): number =>
  Math.min(max, Math.max(1, MAX_PENDING_MS / meanMs))
