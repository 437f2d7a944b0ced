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
 * Whether a result is that of its statement. One without a command has no response. And postgres.js sends a
 * statement again whose prepared form became invalid; the responses of statements that were sent meanwhile
 * are then swapped. No rows of another statement may look like an answer, so the connection is closed.
 */
export const isOwnResult = (query: PendingStatement, result: StatementResult, pending: number): boolean => {
  const { retried } = query as { retried?: unknown }
  // The simple protocol has a result for each of several statements.
  const command = result.command ?? (result.at(-1) as { command?: string } | undefined)?.command
  return Boolean(command) && (retried === undefined || pending === 1)
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
