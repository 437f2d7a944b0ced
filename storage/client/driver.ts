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
  type TransactionSettings,
} from 'kysely'
import type { Db } from '../database.ts'
import type { Connection, Pool, Statement } from './pool.ts'
import { toRows } from './rows.ts'
import { statementChannel } from './statement-channel.ts'
import type { StatementResult } from './statement-result.ts'

/** The connections to one database, by their use. */
export type ConnectionPools = {
  /** Transactions, and every statement without a hint. */
  main: Pool
  /**
   * One or two connections for `QUICK` statements: many short statements then share a packet and a wake-up
   * (measured on two cores: 1.7 times as many a second as over 16).
   */
  quick: Pool
  /** For `CUSTOM_PLAN` statements. Undefined: those go unprepared over `main`. */
  custom: Pool | undefined
  /** For `INDEXED_PLAN` statements. Undefined: those go unprepared over `main`. */
  indexed: Pool | undefined
}

/**
 * Statements outside a transaction go to any connection of their pool, which pipelines them. A transaction
 * takes a connection of its own; `begin` is sent without waiting for its response, so it shares the round
 * trip of the first statement.
 */
export const createPipelinedDialect = (pools: ConnectionPools): Dialect => ({
  createAdapter: () => new PostgresAdapter(),
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
  createDriver: () => createDriver(pools),
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

/** What Kysely holds: nothing until a transaction begins. */
type LazyConnection = DatabaseConnection & {
  /** The connection of a transaction. */
  held?: Connection
  /** The statement that begins it, while it was not sent. */
  begin?: Statement | undefined
  began?: Promise<unknown>
  /** Resolves when nothing is left to commit or roll back. */
  ended?: Promise<unknown>
  isClean: boolean
}

const COMMIT: Statement = { text: 'commit' }
const ROLLBACK: Statement = { text: 'rollback' }

const toQueryResult = <R>(result: StatementResult): QueryResult<R> => ({
  rows: toRows(result) as R[],
  numAffectedRows: BigInt(result.count ?? 0),
})

const toStatement = ({ sql: text, parameters }: CompiledQuery): Statement => ({ text, parameters })

const createDriver = (pools: ConnectionPools): Driver => ({
  init: async () => {},
  destroy: async () => {
    const all = new Set(
      [pools.main, pools.quick, pools.custom, pools.indexed].filter((pool) => pool !== undefined),
    )
    await Promise.all([...all].map((pool) => pool.close()))
  },
  acquireConnection: async (): Promise<LazyConnection> => {
    const lazy: LazyConnection = {
      isClean: true,
      executeQuery: async <R>(query: CompiledQuery) =>
        toQueryResult<R>(
          await statementChannel.tracePromise(
            () => (lazy.held ? runInTransaction(pools.main, lazy, query) : runAlone(pools, query)),
            { text: query.sql },
          ),
        ),
      streamQuery: () => {
        throw new Error('Declare a cursor instead (storage/backup/cursor.ts).')
      },
    }
    return lazy
  },
  beginTransaction: async (connection, settings) => {
    const lazy = connection as LazyConnection
    lazy.held = await pools.main.acquire()
    lazy.begin = toBegin(settings, pools.main.setup)
  },
  commitTransaction: async (connection) => {
    const lazy = connection as LazyConnection
    if (lazy.ended) await lazy.ended
    else if (lazy.began)
      await statementChannel.tracePromise(() => endTransaction(pools.main, lazy, COMMIT), COMMIT)
  },
  rollbackTransaction: async (connection) => {
    const lazy = connection as LazyConnection
    // The statement before the commit failed, so the commit rolls back: nothing is locked once it has its response.
    if (lazy.ended) await lazy.ended.catch(() => {})
    else if (lazy.began && !lazy.held!.lost) await endTransaction(pools.main, lazy, ROLLBACK)
  },
  releaseConnection: async (connection) => {
    const { held, isClean } = connection as LazyConnection
    if (held) pools.main[isClean ? 'release' : 'discard'](held)
  },
})

const toBegin = (
  { isolationLevel, accessMode }: TransactionSettings,
  setup: string | undefined,
): Statement => {
  // The session of a pooler has the default of the server.
  const level = isolationLevel ?? (setup === undefined ? undefined : 'read committed')
  const modes = [level ? `isolation level ${level}` : '', accessMode ?? '']
  const begin = `begin ${modes.filter(Boolean).join(', ')}`.trim()
  return setup === undefined ? { text: begin } : { text: `${begin}; ${setup}`, simple: true }
}

/** Sends `begin` without waiting for its response. */
const begin = (pool: Pool, lazy: LazyConnection): void => {
  if (!lazy.begin) return
  lazy.isClean = false
  lazy.began = pool.send(lazy.held!, lazy.begin)
  lazy.begin = undefined
  // Its failure is the first statement's failure too.
  lazy.began.catch(() => {})
}

const endTransaction = async (pool: Pool, lazy: LazyConnection, statement: Statement): Promise<void> => {
  const { command } = await pool.send(lazy.held!, statement)
  lazy.isClean = true
  // Of a transaction in which a statement failed, PostgreSQL answers `commit` with success and the tag ROLLBACK.
  if (statement === COMMIT && command === 'ROLLBACK')
    throw new Error('The transaction was not committed: a statement in it had failed.')
}

const runInTransaction = async (
  pool: Pool,
  lazy: LazyConnection,
  query: CompiledQuery,
): Promise<StatementResult> => {
  const isLast = query.sql.startsWith(AND_COMMIT)
  const isOnly = isLast && lazy.begin !== undefined && pool.setup === undefined
  if (!isOnly) begin(pool, lazy)
  const result = pool.send(lazy.held!, toStatement(query))
  if (isLast) {
    lazy.ended = isOnly ? Promise.resolve() : endTransaction(pool, lazy, COMMIT)
    lazy.ended.catch(() => {})
  }
  const [response] = await Promise.all([result, lazy.began])
  return response
}

/** Statements that a transaction must not contain, also not the one that sets up a session behind a pooler. */
const OUTSIDE_TRANSACTION = /^\s*(vacuum|(create|drop|reindex)(\s+unique)?\s+index\s+concurrently)\b/i

const runAlone = (
  { main, quick, custom, indexed }: ConnectionPools,
  query: CompiledQuery,
): Promise<StatementResult> => {
  const statement = toStatement(query)
  if (query.sql.startsWith(QUICK)) return quick.run(statement)
  if (OUTSIDE_TRANSACTION.test(query.sql)) return main.run({ ...statement, outsideTransaction: true })
  const planned = query.sql.startsWith(CUSTOM_PLAN)
    ? custom
    : query.sql.startsWith(INDEXED_PLAN)
      ? indexed
      : main
  return planned ? planned.run(statement) : main.run({ ...statement, prepare: false })
}
