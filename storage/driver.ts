import {
  type CompiledQuery, type DatabaseConnection, type Dialect, type Driver, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, type QueryResult,
} from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import type { Sql } from 'postgres'

/**
 * kysely-postgres-js for transactions; statements outside one go straight to the pool, which pipelines them. (The package reserves a connection
 * for every statement: measured half the throughput at 16 concurrent reads.) `begin` is sent without waiting for its answer, so it shares the
 * round trip of the first statement.
 */
export const pipelined = (sql: Sql, options: { prepare: boolean }): Dialect => {
  const reserving = new PostgresJSDialect({ postgres: sql })
  return {
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createDriver: () => driver(sql, reserving.createDriver(), options.prepare),
  }
}

/** A statement that begins so is planned anew for its parameters: generic plans for `like` patterns were measured 80 times slower. */
export const CUSTOM_PLAN = '/* custom plan */'

type Lazy = DatabaseConnection & { reserved?: DatabaseConnection; begun?: Promise<unknown> }

const driver = (sql: Sql, base: Driver, prepare: boolean): Driver => ({
  ...transactionControl(base),
  init: () => base.init(),
  destroy: () => base.destroy(),
  acquireConnection: async (): Promise<Lazy> => {
    const lazy: Lazy = {
      executeQuery: async <R>(query: CompiledQuery): Promise<QueryResult<R>> => {
        if (!lazy.reserved) return await lone<R>(sql, query, prepare)
        const result = lazy.reserved.executeQuery<R>(query)
        const [answer] = await Promise.all([result, lazy.begun])
        return answer
      },
      streamQuery: <R>(query: CompiledQuery, chunk: number) => stream<R>(sql, query, chunk),
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
  commitTransaction: (connection: DatabaseConnection) => base.commitTransaction((connection as Lazy).reserved!),
  rollbackTransaction: (connection: DatabaseConnection) => base.rollbackTransaction((connection as Lazy).reserved!),
})

const lone = async <R>(sql: Sql, query: CompiledQuery, prepare: boolean): Promise<QueryResult<R>> => {
  const result = await sql.unsafe(query.sql, query.parameters as never[], { prepare: prepare && !query.sql.trimStart().startsWith(CUSTOM_PLAN) })
  return { rows: Array.from(result) as R[], numAffectedRows: BigInt(result.count ?? 0) }
}

async function* stream<R>(sql: Sql, query: CompiledQuery, chunk: number): AsyncIterableIterator<QueryResult<R>> {
  for await (const rows of sql.unsafe(query.sql, query.parameters as never[]).cursor(chunk)) yield { rows: rows as R[] }
}
