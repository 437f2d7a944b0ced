import { setTimeout as pause } from 'node:timers/promises'
import type { ParameterOrJSON } from 'postgres'
import { type Client, connectionClosedError, type OnClose, type PendingStatement } from './client.ts'
import { clientGoneError, type ClientPresence, getReader } from './client-presence.ts'
import { codedError, errorCode, markConnectError } from './error-codes.ts'
import {
  dropHoles,
  getSeverity,
  isBeingDescribed,
  isComplete,
  onRetry,
  type StatementResult,
} from './statement-result.ts'
import { sendOrQueue, sendQueued, type Queued } from './statement-queue.ts'
import { createServiceTime, getMaxPending, measure, type ServiceTime } from './service-time.ts'
import { waitAtMost } from './wait-at-most.ts'

/** Milliseconds; 0 means no limit. */
export type PoolLimits = {
  /** A connection that sends nothing for so long, although a statement waits for it, is closed. */
  responseMs: number
  /** How long a statement or a transaction waits for a connection. */
  acquireMs: number
}

type PoolOptions = {
  /** The greatest number of connections. */
  max: number
  /**
   * How many statements may queue on a connection, and fewer when they take long: for one session, which all wait for.
   * When absent 100, however long they take.
   */
  maxPending?: number
  limits: PoolLimits
  openClient: (onClose: OnClose) => Client
  /** Statements that set, within a transaction, what a pooler does not let a session keep. */
  setup?: string | undefined
  /** A statement that a new connection begins with, whatever comes of it; others are sent after it. */
  opening?: string | undefined
  /** Returns what an error of the server means. */
  explainError?: ((error: Error) => Error) | undefined
  /** Returns what a lost connection means for its statements, when that is more than its loss. */
  explainLoss?: (() => Error | undefined) | undefined
}

export type Statement = {
  text: string
  parameters?: readonly unknown[]
  prepare?: boolean
  /** Send by the simple protocol: several statements without parameters. */
  simple?: boolean
  /** It cannot run in a transaction, so it does without the pool's settings. */
  outsideTransaction?: boolean
}

export type Connection = {
  client: Client
  /** Statements without a response, oldest first, with what tells them that there will be none. */
  pending: Map<PendingStatement, (reason: Error) => void>
  queued: Queued
  /** A transaction has it. */
  held: boolean
  /** postgres.js has sent a statement again, behind which no other must be sent. */
  retries: boolean
  /** Why it can no longer be used. */
  lost?: Error
  watch?: NodeJS.Timeout | undefined
  /** How long it was silent before `watch` was set, although a statement waited. */
  silentMs: number
  /** Measured where it decides how many statements queue: with `maxPending`. */
  service: ServiceTime | undefined
}

/** Waits for a connection. `grant` uses it at once, so that no other takes it in between. */
type Waiter = {
  exclusive: boolean
  /** The client that the statement is for: when it disconnects, the waiter is removed from the queue. */
  reader: ClientPresence | undefined
  grant: (connection: Connection) => void
  reject: (error: Error) => void
}

type PoolState = PoolOptions & {
  connections: Set<Connection>
  waiters: Waiter[]
  closed: boolean
  waited: { count: number; ms: number }
}

/** The connections to one database for one use. A connection is opened when it is first needed. */
export type Pool = {
  setup: string | undefined
  /** Runs a statement by itself; it may queue behind others on its connection. */
  run: (statement: Statement) => Promise<StatementResult>
  /** Takes a connection for a transaction. */
  acquire: () => Promise<Connection>
  /** Runs a statement on a connection that was acquired. */
  send: (connection: Connection, statement: Statement) => Promise<StatementResult>
  release: (connection: Connection) => void
  /** Closes a connection whose state is not known. */
  discard: (connection: Connection) => void
  stats: () => PoolStats
  /** Waits for what is in progress, for a few seconds at most, and closes all connections. */
  close: () => Promise<void>
}

/** `waited`, `waitedSeconds`: how often, and how long in all, a statement or transaction waited for a connection. */
export type PoolStats = {
  open: number
  busy: number
  waiting: number
  waited: number
  waitedSeconds: number
}

const MAX_PENDING = 100
/** How long a connection is silent until it is asked whether another server has taken the place of its own. */
const SUSPECT_AFTER_MS = 2_000
const CLOSE_GRACE_MS = 4_000
const END_TIMEOUT_MS = 1_000

export const createPool = (options: PoolOptions): Pool => {
  const pool: PoolState = {
    ...options,
    connections: new Set(),
    waiters: [],
    closed: false,
    waited: { count: 0, ms: 0 },
  }
  return {
    setup: options.setup,
    run: (statement) => withConnection(pool, (connection) => runAlone(pool, connection, statement)),
    acquire: () => acquire(pool),
    send: (connection, statement) => send(pool, connection, statement),
    release: (connection) => {
      connection.held = false
      serveWaiters(pool)
    },
    discard: (connection) => discard(pool, connection, connectionClosedError()),
    stats: () => getStats(pool),
    close: () => closePool(pool),
  }
}

const getStats = ({ connections, waiters, waited }: PoolState): PoolStats => ({
  open: connections.size,
  busy: [...connections].filter(({ held, pending }) => held || pending.size > 0).length,
  waiting: waiters.length,
  waited: waited.count,
  waitedSeconds: waited.ms / 1000,
})

/** Sends a statement and waits for its response. */
const send = async (
  pool: PoolState,
  connection: Connection,
  { text, parameters = [], prepare = true, simple = false }: Statement,
): Promise<StatementResult> => {
  if (connection.lost) throw connection.lost
  const options = { prepare: prepare && !simple, simple }
  const query = connection.client.sql.unsafe(text, parameters as ParameterOrJSON<never>[], options)
  if (!simple) void query.values()
  if (options.prepare) onRetry(query, () => checkRetry(pool, connection))
  const { pending } = connection
  try {
    const result = await waitForResponse(pool, connection, query)
    if (connection.lost) throw connection.lost
    if (!isComplete(result)) throw connectionClosedError()
    dropHoles(result)
    return result
  } catch (error) {
    const severity = getSeverity(error)
    if (severity === 'ERROR') throw toStatementError(pool, connection, error as Error)
    if (connection.queued) markConnectError(error as Error)
    discard(pool, connection, error as Error)
    throw severity ? error : connection.lost!
  } finally {
    pending.delete(query)
    if (pending.size === 0) connection.retries = false
    sendQueued(connection)
    if (connection.service) measure(connection.service, !connection.held)
    connection.silentMs = 0
    connection.watch?.refresh()
    serveWaiters(pool)
  }
}

/**
 * postgres.js leaves statements that queue behind the first one of a connection without an answer when that cannot be
 * opened. So the loss of the connection ends the wait too.
 */
const waitForResponse = (
  pool: PoolState,
  connection: Connection,
  query: PendingStatement,
): Promise<StatementResult> =>
  new Promise((resolve, reject) => {
    if (connection.service && connection.pending.size === 0) connection.service.since = performance.now()
    connection.pending.set(query, reject)
    watch(pool, connection)
    const isFirst = connection.pending.size === 1
    sendOrQueue(isFirst ? undefined : connection.queued, query, { resolve, reject })
  })

/**
 * Called when postgres.js sends a statement again whose prepared form became invalid, behind all that was sent
 * meanwhile. In a transaction that is too late: its `commit` was sent. A statement that is being described takes the
 * description of this one for its own. In these cases the connection is closed.
 */
const checkRetry = (pool: PoolState, connection: Connection): void => {
  const { held, pending } = connection
  if (held || pool.setup !== undefined || [...pending.keys()].some(isBeingDescribed))
    discard(pool, connection, connectionClosedError())
  else connection.retries = true
}

/**
 * Runs a statement outside of a transaction. Behind a pooler it is made one, in the same round trip, so that
 * the pool's settings hold for it.
 */
const runAlone = async (
  pool: PoolState,
  connection: Connection,
  statement: Statement,
): Promise<StatementResult> => {
  const simple = (statement.parameters ?? []).length === 0
  if (pool.setup === undefined || statement.outsideTransaction)
    return await send(pool, connection, { simple, ...statement })
  // Sent at once, so that no other statement comes in between.
  const opened = send(pool, connection, {
    text: `begin isolation level read committed; ${pool.setup}`,
    simple: true,
  })
  const result = send(pool, connection, statement)
  const ended = send(pool, connection, { text: 'commit' })
  const [response] = await Promise.all([result, opened, ended])
  return response
}

const watch = (pool: PoolState, connection: Connection): void => {
  const { responseMs } = pool.limits
  if (responseMs === 0) return
  if (connection.pending.size === 1) connection.silentMs = 0
  if (!connection.watch) setWatch(pool, connection)
  else if (connection.pending.size === 1) connection.watch.refresh()
}

const setWatch = (pool: PoolState, connection: Connection): void => {
  const left = pool.limits.responseMs - connection.silentMs
  const ms = connection.client.suspect ? Math.min(SUSPECT_AFTER_MS, left) : left
  connection.watch = setTimeout(() => checkSilence(pool, connection, ms), ms).unref()
}

/** Every response restarts the time: the connection was silent throughout it. */
const checkSilence = (pool: PoolState, connection: Connection, ms: number): void => {
  connection.watch = undefined
  const [oldest] = connection.pending.keys()
  if (!oldest) return
  connection.silentMs += ms
  if (connection.silentMs < pool.limits.responseMs) {
    setWatch(pool, connection)
    connection.client.suspect!()
    return
  }
  connection.client.cancel(oldest)
  discard(pool, connection, codedError('RESPONSE_TIMEOUT', 'the database does not respond'))
}

/**
 * Returns the error to throw for one that the server reports. One that takes no changes has become a standby:
 * it is left, with all connections that nobody uses, so that the next ones lead to the server in its place.
 */
const toStatementError = (pool: PoolState, connection: Connection, error: Error): Error => {
  const explained = pool.explainError?.(error) ?? error
  if ((explained as { code?: string }).code !== errorCode.readOnlyTransaction) return explained
  const isLeft = (one: Connection) => one === connection || (!one.held && one.pending.size === 0)
  for (const one of [...pool.connections].filter(isLeft)) discard(pool, one, explained)
  return explained
}

const discard = (pool: PoolState, connection: Connection, reason: Error): void => {
  if (connection.lost) return
  connection.lost = pool.explainLoss?.() ?? reason
  clearTimeout(connection.watch)
  pool.connections.delete(connection)
  connection.client.destroy()
  for (const reject of connection.pending.values()) reject(connection.lost)
  serveWaiters(pool)
}

const openConnection = (pool: PoolState): Connection => {
  const client = pool.openClient((reason = connectionClosedError()) => discard(pool, connection, reason))
  const connection: Connection = {
    client,
    pending: new Map(),
    queued: [],
    held: false,
    retries: false,
    silentMs: 0,
    service: pool.maxPending === undefined ? undefined : createServiceTime(),
  }
  pool.connections.add(connection)
  if (pool.opening !== undefined) send(pool, connection, { text: pool.opening, simple: true }).catch(() => {})
  return connection
}

/** Finds an idle connection, or opens one; a statement by itself may join the least busy. */
const findConnection = (pool: PoolState, exclusive: boolean): Connection | undefined => {
  const { maxPending = MAX_PENDING } = pool
  let leastBusy: Connection | undefined
  for (const connection of pool.connections) {
    if (connection.held || connection.retries) continue
    const { size } = connection.pending
    if (size === 0) return connection
    const most = connection.service ? getMaxPending(connection.service, maxPending) : maxPending
    if (size < (leastBusy?.pending.size ?? Infinity) && size < most) leastBusy = connection
  }
  if (pool.connections.size < pool.max) return openConnection(pool)
  return exclusive ? undefined : leastBusy
}

/** Hands out connections in the order of the requests: a transaction waits until one has nothing to do. */
const serveWaiters = (pool: PoolState): void => {
  while (pool.waiters.length > 0) {
    const [{ exclusive, reader, reject }] = pool.waiters as [Waiter]
    if (reader?.isGone()) {
      pool.waiters.shift()
      reject(clientGoneError())
      continue
    }
    const connection = findConnection(pool, exclusive)
    if (!connection) return
    pool.waiters.shift()!.grant(connection)
  }
}

/** Calls `use` with a connection as soon as there is one. */
const withConnection = <T>(
  pool: PoolState,
  use: (connection: Connection) => Promise<T>,
  exclusive = false,
): Promise<T> => {
  if (pool.closed) return Promise.reject(codedError('CONNECTION_ENDED', 'the storage is closed'))
  const reader = getReader()
  if (reader?.isGone()) return Promise.reject(clientGoneError())
  const connection = pool.waiters.length === 0 ? findConnection(pool, exclusive) : undefined
  if (connection) return use(connection)
  const since = performance.now()
  const countWait = (): void => {
    pool.waited.count++
    pool.waited.ms += performance.now() - since
  }
  return new Promise<T>((resolve, reject) => {
    const waiter: Waiter = {
      exclusive,
      reader,
      grant: (granted) => {
        clearTimeout(timer)
        countWait()
        use(granted).then(resolve, reject)
      },
      reject: (error) => {
        clearTimeout(timer)
        reject(error)
      },
    }
    const expire = (): void => {
      pool.waiters.splice(pool.waiters.indexOf(waiter), 1)
      countWait()
      reject(codedError('ACQUIRE_TIMEOUT', 'no connection to the database became free'))
      serveWaiters(pool)
    }
    const { acquireMs } = pool.limits
    const timer = acquireMs > 0 ? setTimeout(expire, acquireMs) : undefined
    pool.waiters.push(waiter)
  })
}

const acquire = (pool: PoolState): Promise<Connection> =>
  withConnection(
    pool,
    (connection) => {
      connection.held = true
      return Promise.resolve(connection)
    },
    true,
  )

const closePool = async (pool: PoolState): Promise<void> => {
  pool.closed = true
  for (const { reject } of pool.waiters.splice(0))
    reject(codedError('CONNECTION_ENDED', 'the storage is closed'))
  const isBusy = () => [...pool.connections].some(({ held, pending }) => held || pending.size > 0)
  const deadline = performance.now() + CLOSE_GRACE_MS
  while (isBusy() && performance.now() < deadline) await pause(10)
  const connections = [...pool.connections]
  const ended = Promise.all(connections.map(({ client }) => client.end()))
  await waitAtMost(END_TIMEOUT_MS, ended)
  for (const connection of connections) discard(pool, connection, connectionClosedError())
}
