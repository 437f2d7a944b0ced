import type { PendingStatement } from './client.ts'
import type { StatementResult } from './statement-result.ts'

/** Where the outcome of a statement goes. */
export type Outcome = { resolve: (result: StatementResult) => void; reject: (error: Error) => void }

/**
 * What waits, in this order, until the first statement of a connection has ended; undefined from then on.
 *
 * postgres.js (3.4) hands a connection that has opened one half of the statements that wait for it, since it counts
 * this one among those that are still to open, and sends whatever comes next before the other half. So nothing waits
 * there: a `commit` that is overtaken makes the statements of other callers part of its transaction.
 */
export type Queued = (() => void)[] | undefined

/** Sends a statement by postgres.js, or has it wait. */
export const sendOrQueue = (queued: Queued, query: PendingStatement, outcome: Outcome): void => {
  if (queued) queued.push(() => execute(query, outcome))
  else execute(query, outcome)
}

/** Sends what has waited, unless the connection is lost. */
export const sendQueued = (connection: { queued: Queued; lost?: Error }): void => {
  const { queued, lost } = connection
  connection.queued = undefined
  if (queued && !lost) for (const execute of queued) execute()
}

/**
 * Has a statement sent, and its outcome handed to these functions instead of to the promise that the statement is.
 * Each of those is kept alive by one before it until the whole heap is collected, with the rows it was resolved
 * with; measured: a scavenge then copies 3.5 MB instead of 1.2 (docs/decisions/0069-rows-that-die-young.md).
 */
const execute = (query: PendingStatement, outcome: Outcome): void => {
  void Object.assign(query, outcome)
  void query.execute()
}
