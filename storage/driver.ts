import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import type { Sql } from 'postgres'

/** Connections to one database. */
export type Pools = {
  /** Transactions, and every statement that asks for nothing else. */
  main: Sql
  /**
   * One or two connections: many short statements then share a packet and a wake-up (measured on two cores:
   * 1.7 times as many a second as over 16).
   */
  quick: Sql
  /** Plans each statement for its parameters; undefined: such statements go unprepared over `main`. */
  custom: Sql | undefined
}

/**
 * kysely-postgres-js for transactions; statements outside one go straight to a pool, which pipelines them.
 * (The package reserves a connection for every statement: measured half the throughput at 16 concurrent
 * reads.) `begin` is sent without waiting for its answer, so it shares the round trip of the first
 * statement. While `isCutting`, a connection that is lost is one whose statement had its time.
 */
export const pipelined = (pools: Pools, isCutting: () => boolean = () => false): Dialect => {
  const kysely = new PostgresJSDialect({ postgres: pools.main })
  return {
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createDriver: () => {
      const base = kysely.createDriver()
      return driver(pools, base, reserving(pools.main, base), isCutting)
    },
  }
}

/**
 * A statement that begins so is planned anew for its parameters: generic plans for `like` patterns were
 * measured 80 times slower.
 */
export const CUSTOM_PLAN = '/* custom plan */'
/**
 * A statement that begins so takes less than a millisecond and waits for no lock, so that others may queue
 * behind it on its connection.
 */
export const QUICK = '/* quick */'

/**
 * A statement that begins so is the last of its transaction: `commit` is sent right behind it, in the same
 * round trip. If the statement fails, the database makes the commit a rollback. Sent from here and not by
 * the caller, whose `commit` Kysely could hand over before the statement. Where it is the first statement
 * too, it is a transaction by itself.
 */
export const AND_COMMIT = '/* and commit */'

/** `begin` waits for the first statement; `ended` settles when nothing is left to commit or roll back. */
type Lazy = DatabaseConnection & {
  reserved?: DatabaseConnection
  begin?: (() => Promise<void>) | undefined
  begun?: Promise<unknown>
  ended?: Promise<void>
  lost?: boolean
}

const LOST = new Set<unknown>(['CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'ECONNRESET', 'EPIPE'])

const isLost = (error: unknown): boolean => LOST.has((error as { code?: unknown }).code)

/**
 * Notes that the connection is gone. postgres.js opens it anew for whoever is next, so this transaction
 * must not touch it again: a `rollback` would be written to no socket, which ends the process, and a
 * release would offer it for use before it is open.
 */
const noting = async <T>(lazy: Lazy, work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    lazy.lost ||= isLost(error)
    throw error
  }
}

/**
 * Reserves a connection. postgres.js 3.4 forgets the reservation that waits first when a connection closes
 * (`onclose` takes it off the queue, and the type look-up of the new connection drops it), so all that wait
 * ask again then; what is answered twice is given back.
 */
const reserving = (pool: Sql, base: Driver) => {
  const waiting = new Set<() => void>()
  pool.options.onclose = () => {
    setImmediate(() => {
      for (const ask of waiting) ask()
    })
  }
  return (): Promise<DatabaseConnection> =>
    new Promise((resolve, reject) => {
      const ask = () => {
        base
          .acquireConnection()
          .then(async (connection) => {
            if (waiting.delete(ask)) resolve(connection)
            else await base.releaseConnection(connection)
          })
          .catch((error: unknown) => {
            waiting.delete(ask)
            reject(error)
          })
      }
      waiting.add(ask)
      ask()
    })
}

/** PostgreSQL's own error for a statement that had its time (`query_canceled`). */
const cutShort = (): Error =>
  Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })

const driver = (
  pools: Pools,
  base: Driver,
  reserve: () => Promise<DatabaseConnection>,
  isCutting: () => boolean,
): Driver => ({
  ...transactionControl(base),
  init: () => base.init(),
  destroy: async () => {
    await base.destroy()
    for (const pool of [pools.quick, pools.custom]) if (pool && pool !== pools.main) await pool.end()
  },
  acquireConnection: async (): Promise<Lazy> => {
    const run = async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
      if (!lazy.reserved) return await lone<R>(pools, query)
      if (lazy.lost)
        throw Object.assign(new Error('the connection of this transaction is lost'), {
          code: 'CONNECTION_CLOSED',
        })
      const last = query.sql.startsWith(AND_COMMIT)
      const alone = last && lazy.begin !== undefined
      if (!alone) begin(lazy)
      const result = lazy.reserved.executeQuery<R>(query)
      if (last) {
        lazy.ended = alone ? Promise.resolve() : noting(lazy, base.commitTransaction(lazy.reserved))
        lazy.ended.catch(() => {})
      }
      const [answer] = await Promise.all([result, lazy.begun])
      return answer
    }
    const lazy: Lazy = {
      executeQuery: <R>(query: CompiledQuery): Promise<QueryResult<R>> =>
        noting(lazy, run<R>(query)).catch((error: unknown) => {
          throw isCutting() && isLost(error) ? cutShort() : error
        }),
      streamQuery: <R>(query: CompiledQuery, chunk: number) => stream<R>(pools.main, query, chunk),
    }
    return lazy
  },
  releaseConnection: async (connection) => {
    const lazy = connection as Lazy
    if (lazy.reserved && !lazy.lost) await base.releaseConnection(lazy.reserved)
  },
  beginTransaction: async (connection, settings) => {
    const lazy = connection as Lazy
    const reserved = await reserve()
    lazy.reserved = reserved
    lazy.begin = () => base.beginTransaction(reserved, settings)
  },
})

/** Sends `begin` without waiting for its answer. */
const begin = (lazy: Lazy): void => {
  if (!lazy.begin) return
  lazy.begun = lazy.begin()
  lazy.begin = undefined
  // Its failure is the first statement's failure too.
  lazy.begun.catch(() => {})
}

const transactionControl = (base: Driver) => ({
  commitTransaction: async (connection: DatabaseConnection) => {
    const lazy = connection as Lazy
    if (lazy.ended) await lazy.ended
    else if (lazy.begun) await noting(lazy, base.commitTransaction(lazy.reserved!))
  },
  rollbackTransaction: async (connection: DatabaseConnection) => {
    const lazy = connection as Lazy
    if (lazy.begun && !lazy.ended && !lazy.lost) await noting(lazy, base.rollbackTransaction(lazy.reserved!))
  },
})

const lone = async <R>(
  { main, quick, custom }: Pools,
  { sql, parameters }: CompiledQuery,
): Promise<QueryResult<R>> => {
  const planned = sql.startsWith(CUSTOM_PLAN)
  const pool = planned ? (custom ?? main) : sql.startsWith(QUICK) ? quick : main
  const result = await pool.unsafe(sql, parameters as never[], { prepare: !planned || custom !== undefined })
  return { rows: result as unknown as R[], numAffectedRows: BigInt(result.count ?? 0) }
}

async function* stream<R>(
  sql: Sql,
  query: CompiledQuery,
  chunk: number,
): AsyncIterableIterator<QueryResult<R>> {
  for await (const rows of sql.unsafe(query.sql, query.parameters as never[]).cursor(chunk))
    yield { rows: rows as R[] }
}
