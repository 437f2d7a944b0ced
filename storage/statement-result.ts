import type { Row, RowList } from 'postgres'
import type { PendingStatement } from './client.ts'

export type StatementResult = RowList<(Row & Iterable<Row>)[]>

/** The severity of an error of the server; undefined for one of the socket or of postgres.js. */
export const getSeverity = (error: unknown): string | undefined => {
  // A pooler sends the localized form alone.
  const { severity, severity_local: local } = error as { severity?: string; severity_local?: string }
  return severity ?? local
}

/**
 * Whether a response, with rows or an error, is that of its statement. postgres.js sends a statement again whose
 * prepared form became invalid; the responses of statements that were sent meanwhile are then swapped. No rows of
 * another statement may look like an answer, so the connection is closed.
 */
export const isOwnResponse = (query: PendingStatement, pending: number): boolean =>
  (query as { retried?: unknown }).retried === undefined || pending === 1

/**
 * Calls the listener in place of sending a statement of a transaction again: what is sent behind it, such as `commit`,
 * has ended the transaction by then, so that it would be carried out alone.
 */
export const onRetry = (query: PendingStatement, listener: () => void): void =>
  void Object.defineProperty(query, 'retried', { set: listener })

/** Whether a result is complete: one without a command has no response. */
export const isComplete = (result: StatementResult): boolean => {
  // The simple protocol has a result for each of several statements.
  const command = result.command ?? (result.at(-1) as { command?: string } | undefined)?.command
  return Boolean(command)
}

/**
 * postgres.js (3.4, its issue 1181) does not forget the rows that a statement sent before it failed: it begins the next
 * result of the connection with as many holes.
 */
export const dropHoles = (result: StatementResult): void => {
  let holes = 0
  while (holes < result.length && !(holes in result)) holes++
  if (holes > 0) result.splice(0, holes)
}
