import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type RawBuilder,
  sql,
} from 'kysely'
import type { Db } from '../database.ts'
import type { DatabaseClient, Statement, Transaction } from './client.ts'
import { toRows } from './rows.ts'
import { statementChannel } from './statement-channel.ts'

/** Has Kysely run its statements by a client. */
export const createDialect = (client: DatabaseClient): Dialect => ({
  createAdapter: () => new PostgresAdapter(),
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
  createDriver: () => createDriver(client),
})

// Hints to the driver travel as a comment at the beginning of a statement: Kysely hands a driver nothing but
// the text and its parameters.

/**
 * Hint: plan this statement anew for its parameters. Generic plans for `like` patterns were measured 80
 * times slower.
 */
export const CUSTOM_PLAN = '/* custom plan */'
/**
 * Hint: plan this statement once, with index scans and nested loops alone: it reads few rows of tables that
 * grow from nothing, and a plan made while they were empty would scan all of them.
 */
export const INDEXED_PLAN = '/* indexed plan */'
/**
 * Hint: this statement takes less than a millisecond and waits for no lock, so that others may queue behind
 * it on its connection.
 */
export const QUICK = '/* quick */'
/** Hint of `executeAndCommit`. */
const AND_COMMIT = '/* and commit */'

/**
 * Executes the last statement of a transaction, and sends `commit` right behind it in the same round trip.
 * If the statement fails, the database turns the commit into a rollback. The driver sends it and not the
 * caller, whose `commit` Kysely could hand over before the statement. Where it is the first statement too,
 * it is a transaction by itself. The caller still commits or rolls back as usual, which then sends nothing.
 */
export const executeAndCommit = <T>(tx: Db, statement: RawBuilder<T>): Promise<QueryResult<T>> =>
  sql<T>`${sql.raw(AND_COMMIT)} ${statement}`.execute(tx)

/** Statements that a transaction must not contain, also not the one that sets up a session behind a pooler. */
const OUTSIDE_TRANSACTION = /^\s*(vacuum|(create|drop|reindex)(\s+unique)?\s+index\s+concurrently)\b/i

const toStatement = ({ sql: text, parameters }: CompiledQuery): Statement => {
  if (text.startsWith(QUICK)) return { text, parameters, use: 'quick' }
  if (text.startsWith(CUSTOM_PLAN)) return { text, parameters, use: 'custom' }
  if (text.startsWith(INDEXED_PLAN)) return { text, parameters, use: 'indexed' }
  if (text.startsWith(AND_COMMIT)) return { text, parameters, last: true }
  return { text, parameters, outsideTransaction: OUTSIDE_TRANSACTION.test(text) }
}

/** What Kysely holds: nothing until a transaction begins. */
type Held = DatabaseConnection & { transaction?: Transaction }

const createHeld = (client: DatabaseClient): Held => {
  const held: Held = {
    executeQuery: async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
      const result = await statementChannel.tracePromise(
        () => (held.transaction ?? client).run(toStatement(query)),
        { text: query.sql },
      )
      return { rows: toRows(result) as R[], numAffectedRows: BigInt(result.count ?? 0) }
    },
    streamQuery: () => {
      throw new Error('Declare a cursor instead (storage/backup/cursor.ts).')
    },
  }
  return held
}

const createDriver = (client: DatabaseClient): Driver => ({
  init: async () => {},
  destroy: () => client.close(),
  acquireConnection: async () => createHeld(client),
  beginTransaction: async (connection, settings) => {
    ;(connection as Held).transaction = await client.begin(settings)
  },
  commitTransaction: (connection) => (connection as Held).transaction!.commit(),
  rollbackTransaction: (connection) => (connection as Held).transaction!.rollback(),
  releaseConnection: async () => {},
})
