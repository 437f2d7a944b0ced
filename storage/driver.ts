import {
  type CompiledQuery, type DatabaseConnection, type Dialect, type Driver, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, type QueryResult,
} from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import type { Sql } from 'postgres'

/** Connections to one database. */
export type Pools = {
  /** Transactions, and every statement that asks for nothing else. */
  main: Sql
  /** One or two connections: many short statements then share a packet and a wake-up (measured on two cores: 1.7 times as many a second as over 16). */
  quick: Sql
  /** Plans each statement for its parameters; undefined: such statements go unprepared over `main`. */
  custom: Sql | undefined
}

/**
 * kysely-postgres-js for transactions; statements outside one go straight to a pool, which pipelines them. (The package reserves a connection
 * for every statement: measured half the throughput at 16 concurrent reads.) `begin` is sent without waiting for its answer, so it shares the
 * round trip of the first statement.
 */
export const pipelined = (pools: Pools): Dialect => {
  const reserving = new PostgresJSDialect({ postgres: pools.main })
  return {
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createDriver: () => driver(pools, reserving.createDriver()),
  }
}

/** A statement that begins so is planned anew for its parameters: generic plans for `like` patterns were measured 80 times slower. */
export const CUSTOM_PLAN = '/* custom plan */'
/** A statement that begins so takes less than a millisecond and waits for no lock, so that others may queue behind it on its connection. */
export const QUICK = '/* quick */'

/**
 * A statement that begins so is the last of its transaction: `commit` is sent right behind it, in the same round trip. If the statement fails, the
 * database makes the commit a rollback. Sent from here and not by the caller, whose `commit` Kysely could hand over before the statement.
 */
export const AND_COMMIT = '/* and commit */'

type Lazy = DatabaseConnection & { reserved?: DatabaseConnection; begun?: Promise<unknown>; committed?: Promise<void> }

const driver = (pools: Pools, base: Driver): Driver => ({
  ...transactionControl(base),
  init: () => base.init(),
  destroy: async () => {
    await base.destroy()
    for (const pool of [pools.quick, pools.custom]) if (pool && pool !== pools.main) await pool.end()
  },
  acquireConnection: async (): Promise<Lazy> => {
    const lazy: Lazy = {
      executeQuery: async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
        if (!lazy.reserved) return await lone<R>(pools, query)
        const result = lazy.reserved.executeQuery<R>(query)
        if (query.sql.startsWith(AND_COMMIT)) {
          lazy.committed = base.commitTransaction(lazy.reserved)
          lazy.committed.catch(() => {})
        }
        const [answer] = await Promise.all([result, lazy.begun])
        return answer
      },
      streamQuery: <R>(query: CompiledQuery, chunk: number) => stream<R>(pools.main, query, chunk),
    }
    return lazy
  },
  releaseConnection: async (connection) => {
    const lazy = connection as Lazy
    if (lazy.reserved) await base.releaseConnection(lazy.reserved)
  },
  beginTransaction: async (connection, settings) => {
    const lazy = connection as Lazy
    lazy.reserved = await base.acquireConnection()
    lazy.begun = base.beginTransaction(lazy.reserved, settings)
    // Its failure is the first statement's failure too.
    lazy.begun.catch(() => {})
  },
})

const transactionControl = (base: Driver) => ({
  commitTransaction: (connection: DatabaseConnection) => (connection as Lazy).committed ?? base.commitTransaction((connection as Lazy).reserved!),
  rollbackTransaction: (connection: DatabaseConnection) => base.rollbackTransaction((connection as Lazy).reserved!),
})

const lone = async <R>({ main, quick, custom }: Pools, { sql, parameters }: CompiledQuery): Promise<QueryResult<R>> => {
  const planned = sql.startsWith(CUSTOM_PLAN)
  const pool = planned ? custom ?? main : sql.startsWith(QUICK) ? quick : main
  const result = await pool.unsafe(sql, parameters as never[], { prepare: !planned || custom !== undefined })
  return { rows: result as unknown as R[], numAffectedRows: BigInt(result.count ?? 0) }
}

async function* stream<R>(sql: Sql, query: CompiledQuery, chunk: number): AsyncIterableIterator<QueryResult<R>> {
  for await (const rows of sql.unsafe(query.sql, query.parameters as never[]).cursor(chunk)) yield { rows: rows as R[] }
}
