import type { Row, RowList } from 'postgres'
import type { PendingStatement } from './client.ts'

export type StatementResult = RowList<(Row & Iterable<Row>)[]>

/** The severity of an error of the server; undefined for one of the socket or of postgres.js. */
export const getSeverity = (error: unknown): string | undefined => {
  // A pooler sends the localized form alone.
  const { severity, severity_local: local } = error as { severity?: string; severity_local?: string }
  return severity ?? local
}

type Retryable = PendingStatement & { describeFirst?: unknown; onRetry?: () => void }

/**
 * Without a value: postgres.js would report the error of the first attempt for any of the second. One for all
 * statements, which then keep the same hidden class.
 */
const RETRIED: PropertyDescriptor & ThisType<Retryable> = {
  set() {
    this.onRetry!()
  },
}

/** Calls the listener before postgres.js sends a statement again. */
export const onRetry = (query: PendingStatement, listener: () => void): void => {
  ;(query as Retryable).onRetry = listener
  void Object.defineProperty(query, 'retried', RETRIED)
}

/** Whether the parameters of a statement are sent when its description comes, which is then the next one. */
export const isBeingDescribed = (query: PendingStatement): boolean =>
  Boolean((query as Retryable).describeFirst)

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
