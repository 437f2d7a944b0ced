import type { TransactionSettings } from 'kysely'
import type { StatementResult } from './session.ts'

/** What a hint says of a statement (driver.ts): these may have connections of their own. */
type StatementUse = 'quick' | 'custom' | 'indexed'

export type Statement = {
  text: string
  parameters?: readonly unknown[]
  prepare?: boolean
  /** Send by the simple protocol: several statements without parameters. */
  simple?: boolean
  /** It cannot run in a transaction, so it does without the pool's settings. */
  outsideTransaction?: boolean
  use?: StatementUse
  /** The last one of its transaction: `commit` is sent right behind it. */
  last?: boolean
}

/** It begins with its first statement, whose round trip `begin` shares. */
export type Transaction = {
  run: (statement: Statement) => Promise<StatementResult>
  commit: () => Promise<void>
  /** Never sends anything after `commit`. */
  rollback: () => Promise<void>
}

/** `waited`, `waitedSeconds`: how often, and how long in all, a statement or transaction waited for a connection. */
export type ClientStats = {
  open: number
  busy: number
  waiting: number
  waited: number
  waitedSeconds: number
}

/** A client of one database. */
export type DatabaseClient = {
  /** Runs a statement by itself; it may queue behind others on its connection. */
  run: (statement: Statement) => Promise<StatementResult>
  /** Takes a connection for a transaction, until that is committed or rolled back. */
  begin: (settings?: TransactionSettings) => Promise<Transaction>
  stats: () => ClientStats
  /** Waits for what is in progress, for a few seconds at most, and closes all connections. */
  close: () => Promise<void>
}

const addStats = (sum: ClientStats, stats: ClientStats): ClientStats => ({
  open: sum.open + stats.open,
  busy: sum.busy + stats.busy,
  waiting: sum.waiting + stats.waiting,
  waited: sum.waited + stats.waited,
  waitedSeconds: sum.waitedSeconds + stats.waitedSeconds,
})

/**
 * Joins clients of one database to one: `main` has transactions and every statement without a use. Those of a use
 * that has no client go there too, unprepared, so that they are planned for their parameters.
 */
export const joinClients = (
  clients: { main: DatabaseClient } & Partial<Record<StatementUse, DatabaseClient>>,
): DatabaseClient => {
  const all = [...new Set(Object.values(clients))]
  return {
    run: (statement) => {
      if (!statement.use) return clients.main.run(statement)
      const own = clients[statement.use]
      return own ? own.run(statement) : clients.main.run({ ...statement, prepare: false })
    },
    begin: clients.main.begin,
    stats: () => all.map((client) => client.stats()).reduce(addStats),
    close: async () => {
      await Promise.all(all.map((client) => client.close()))
    },
  }
}
