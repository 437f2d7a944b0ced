import type { SessionSettings } from './session-settings.ts'
import type { DatabaseClient } from './client.ts'
import type { StatementResult } from './session.ts'
import { toRows } from './rows.ts'

/** How a PostgreSQL database is reached. */
export type ServerAccess = {
  /** Through a pooler such as PgBouncer, which may give each transaction another session. */
  pooled: boolean
  /** A prepared statement is known to every session that may run it. */
  prepare: boolean
}

const PROBE = `
  select pg_backend_pid() as pid,
    array(select name from pg_prepared_statements) as prepared,
    (select extract(epoch from current_setting('statement_timeout')::interval) * 1000) as timeout`

type ProbeRow = { pid: number; prepared: string[]; timeout: string }

/** PgBouncer's code for a startup parameter that it does not know. */
const PROTOCOL_VIOLATION = '08P01'

/**
 * Finds out whether a pooler stands before the database. One refuses or ignores `settings` as startup
 * parameters, and identifies a session by another number than the server's own. One that knows prepared
 * statements gives them names of its own, since its clients may choose the same.
 */
export const detectAccess = async (
  openPool: (settings: SessionSettings) => DatabaseClient,
  settings: SessionSettings & { statement_timeout: number },
): Promise<ServerAccess> => {
  let result: StatementResult
  try {
    result = await probe(openPool(settings))
  } catch (error) {
    if ((error as { code?: string }).code !== PROTOCOL_VIOLATION) throw error
    result = await probe(openPool({}))
  }
  const { pid, prepared, timeout } = toRows(result)[0] as ProbeRow
  const isOwnSession = result.state.pid === pid && Number(timeout) === settings.statement_timeout
  return isOwnSession
    ? { pooled: false, prepare: true }
    : { pooled: true, prepare: !prepared.includes(result.statement.name) }
}

/** In a transaction, so that it is prepared and run in the same session. */
const probe = async (client: DatabaseClient): Promise<StatementResult> => {
  try {
    const transaction = await client.begin()
    const result = await transaction.run({ text: PROBE })
    await transaction.rollback()
    return result
  } finally {
    await client.close()
  }
}
