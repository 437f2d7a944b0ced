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
import { PostgresJSDialect } from 'kysely-postgres-js'
import type { Sql } from 'postgres'
import type { Db } from './database.ts'

/** The connections to one database, by their use. */
export type ConnectionPools = {
  /** Transactions, and every statement without a hint. */
  main: Sql
  /**
   * One or two connections for `QUICK` statements: many short statements then share a packet and a wake-up
   * (measured on two cores: 1.7 times as many a second as over 16).
   */
  quick: Sql
  /** For `CUSTOM_PLAN` statements. Undefined: those go unprepared over `main`. */
  custom: Sql | undefined
}

/**
 * kysely-postgres-js for transactions; statements outside one go straight to a pool, which pipelines them.
 * (The package reserves a connection for every statement: measured half the throughput at 16 concurrent
 * reads.) `begin` is sent without waiting for its response, so it shares the round trip of the first
 * statement. While `isAborting` returns true, a lost connection means that its statement timed out.
 */
export const createPipelinedDialect = (
  pools: ConnectionPools,
  isAborting: () => boolean = () => false,
): Dialect => {
  const kysely = new PostgresJSDialect({ postgres: pools.main })
  return {
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createDriver: () => {
      const base = kysely.createDriver()
      return createDriver(pools, base, createReserve(pools.main, base), isAborting)
    },
  }
}

// Hints to the driver travel as a comment at the beginning of a statement: Kysely hands a driver nothing but
// the text and its parameters.

/**
 * Hint: plan this statement anew for its parameters. Generic plans for `like` patterns were measured 80
 * times slower.
 */
export const CUSTOM_PLAN = '/* custom plan */'
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

/**
 * A connection that Kysely holds. `begin`: the transaction's begin, sent with its first statement. `ended`
 * resolves when nothing is left to commit or roll back.
 */
type LazyConnection = DatabaseConnection & {
  reserved?: DatabaseConnection
  begin?: (() => Promise<void>) | undefined
  beginResult?: Promise<unknown>
  ended?: Promise<void>
  lost?: boolean
}

const LOST_CODES = new Set<unknown>(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE'])

const isConnectionLost = (error: unknown): boolean => LOST_CODES.has((error as { code?: unknown }).code)

/**
 * Marks the connection when it is lost. postgres.js reopens it for the next user, so this transaction must
 * not touch it again: a `rollback` would be written to no socket, which ends the process, and a
 * release would offer it for use before it is open.
 */
const markingLoss = async <T>(lazy: LazyConnection, work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    lazy.lost ||= isConnectionLost(error)
    throw error
  }
}

/**
 * Creates the function that reserves a connection. postgres.js 3.4 forgets the first waiting reservation
 * when a connection closes (`onclose` takes it off the queue, and the type look-up of the new connection
 * drops it), so all that wait request again then; a second connection is released.
 */
const createReserve = (pool: Sql, base: Driver) => {
  const waiting = new Set<() => void>()
  pool.options.onclose = () => {
    setImmediate(() => {
      for (const request of waiting) request()
    })
  }
  return (): Promise<DatabaseConnection> =>
    new Promise((resolve, reject) => {
      const request = () => {
        base
          .acquireConnection()
          .then(async (connection) => {
            if (waiting.delete(request)) resolve(connection)
            else await base.releaseConnection(connection)
          })
          .catch((error: unknown) => {
            waiting.delete(request)
            reject(error)
          })
      }
      waiting.add(request)
      request()
    })
}

/** PostgreSQL's own error for a statement that timed out (`query_canceled`). */
const statementTimeoutError = (): Error =>
  Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })

const createDriver = (
  pools: ConnectionPools,
  base: Driver,
  reserve: () => Promise<DatabaseConnection>,
  isAborting: () => boolean,
): Driver => ({
  ...transactionControl(base),
  init: () => base.init(),
  destroy: async () => {
    await base.destroy()
    for (const pool of [pools.quick, pools.custom]) if (pool && pool !== pools.main) await pool.end()
  },
  acquireConnection: async (): Promise<LazyConnection> => {
    const run = async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
      if (!lazy.reserved) return await executeOutsideTransaction<R>(pools, query)
      if (lazy.lost)
        throw Object.assign(new Error('the connection of this transaction is lost'), {
          code: 'CONNECTION_CLOSED',
        })
      const isLast = query.sql.startsWith(AND_COMMIT)
      const isOnly = isLast && lazy.begin !== undefined
      if (!isOnly) begin(lazy)
      const result = lazy.reserved.executeQuery<R>(query)
      if (isLast) {
        lazy.ended = isOnly ? Promise.resolve() : markingLoss(lazy, base.commitTransaction(lazy.reserved))
        lazy.ended.catch(() => {})
      }
      const [response] = await Promise.all([result, lazy.beginResult])
      return response
    }
    const lazy: LazyConnection = {
      executeQuery: <R>(query: CompiledQuery): Promise<QueryResult<R>> =>
        markingLoss(lazy, run<R>(query)).catch((error: unknown) => {
          throw isAborting() && isConnectionLost(error) ? statementTimeoutError() : error
        }),
      streamQuery: <R>(query: CompiledQuery, chunk: number) => stream<R>(pools.main, query, chunk),
    }
    return lazy
  },
  releaseConnection: async (connection) => {
    const lazy = connection as LazyConnection
    if (lazy.reserved && !lazy.lost) await base.releaseConnection(lazy.reserved)
  },
  beginTransaction: async (connection, settings) => {
    const lazy = connection as LazyConnection
    const reserved = await reserve()
    lazy.reserved = reserved
    lazy.begin = () => base.beginTransaction(reserved, settings)
  },
})

/** Sends `begin` without waiting for its response. */
const begin = (lazy: LazyConnection): void => {
  if (!lazy.begin) return
  lazy.beginResult = lazy.begin()
  lazy.begin = undefined
  // Its failure is the first statement's failure too.
  lazy.beginResult.catch(() => {})
}

const transactionControl = (base: Driver) => ({
  commitTransaction: async (connection: DatabaseConnection) => {
    const lazy = connection as LazyConnection
    if (lazy.ended) await lazy.ended
    else if (lazy.beginResult) await markingLoss(lazy, base.commitTransaction(lazy.reserved!))
  },
  rollbackTransaction: async (connection: DatabaseConnection) => {
    const lazy = connection as LazyConnection
    if (lazy.beginResult && !lazy.ended && !lazy.lost)
      await markingLoss(lazy, base.rollbackTransaction(lazy.reserved!))
  },
})

const executeOutsideTransaction = async <R>(
  { main, quick, custom }: ConnectionPools,
  query: CompiledQuery,
): Promise<QueryResult<R>> => {
  const isCustomPlan = query.sql.startsWith(CUSTOM_PLAN)
  const pool = isCustomPlan ? (custom ?? main) : query.sql.startsWith(QUICK) ? quick : main
  const result = await pool.unsafe(query.sql, query.parameters as never[], {
    prepare: !isCustomPlan || custom !== undefined,
  })
  return { rows: result as unknown as R[], numAffectedRows: BigInt(result.count ?? 0) }
}

async function* stream<R>(
  pool: Sql,
  query: CompiledQuery,
  chunk: number,
): AsyncIterableIterator<QueryResult<R>> {
  for await (const rows of pool.unsafe(query.sql, query.parameters as never[]).cursor(chunk))
    yield { rows: rows as R[] }
}
