import { setTimeout as pause } from 'node:timers/promises'
import type { ParameterOrJSON } from 'postgres'
import type { DatabaseClient, Statement } from './client.ts'
import { clientGoneError, type ClientPresence, getReader } from './client-presence.ts'
import { codedError, errorCode, markConnectError } from './error-codes.ts'
import type { OnClose, PendingStatement, Session, StatementResult } from './session.ts'
import { connectionClosedError } from './sockets.ts'
import { createTransaction } from './transaction.ts'
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
  /** How many statements may queue on a connection; 100 when absent. */
  maxPending?: number
  limits: PoolLimits
  openSession: (onClose: OnClose) => Session
  /** Statements that set, within a transaction, what a pooler does not let a session keep. */
  setup?: string | undefined
  /** The statement that a connection opens with. */
  opening?: string | undefined
  /** Returns what an error of the server means. */
  explainError?: ((error: Error) => Error) | undefined
  /** Returns what a lost connection means for its statements, when that is more than its loss. */
  explainLoss?: (() => Error | undefined) | undefined
}

type Connection = {
  session: Session
  /** Statements without a response, oldest first, with what tells them that there will be none. */
  pending: Map<PendingStatement, (reason: Error) => void>
  /** It has answered its first statement: until then postgres.js would not keep the order of others. */
  isOpen: boolean
  /** A transaction has it. */
  isHeld: boolean
  /** When it began to open. */
  since: number
  /** Why it can no longer be used. */
  lost?: Error
  watch?: NodeJS.Timeout | undefined
}

/** Waits for a connection. `grant` uses it at once, so that no other takes it in between. */
type Waiter = {
  since: number
  exclusive: boolean
  /** The client that the statement is for: when it disconnects, the waiter is removed from the queue. */
  reader: ClientPresence | undefined
  grant: (connection: Connection) => void
  reject: (error: Error) => void
}

type Pool = PoolOptions & {
  connections: Set<Connection>
  waiters: Waiter[]
  isClosed: boolean
  waited: { count: number; ms: number }
}

const MAX_PENDING = 100
const CLOSE_GRACE_MS = 4_000
const END_TIMEOUT_MS = 1_000

/** Returns a client of connections with the same settings. A connection is opened when it is first needed. */
export const createPool = (options: PoolOptions): DatabaseClient => {
  const pool: Pool = {
    ...options,
    connections: new Set(),
    waiters: [],
    isClosed: false,
    waited: { count: 0, ms: 0 },
  }
  return {
    run: (statement) => withConnection(pool, false, (connection) => runAlone(pool, connection, statement)),
    begin: (settings = {}) =>
      withConnection(pool, true, async (connection) => {
        connection.isHeld = true
        const held = {
          send: (statement: Statement) => send(pool, connection, statement),
          isLost: () => connection.lost !== undefined,
          release: (isClean: boolean) => {
            connection.isHeld = false
            if (isClean) serveWaiters(pool)
            else discard(pool, connection, connectionClosedError())
          },
          setup: pool.setup,
        }
        return createTransaction(held, settings)
      }),
    stats: () => ({
      open: pool.connections.size,
      busy: [...pool.connections].filter(isBusy).length,
      waiting: pool.waiters.length,
      waited: pool.waited.count,
      waitedSeconds: pool.waited.ms / 1000,
    }),
    close: () => closePool(pool),
  }
}

const isBusy = ({ isHeld, pending }: Connection): boolean => isHeld || pending.size > 0

/** The severity of an error of the server; undefined for one of the socket or of postgres.js. */
const getSeverity = (error: unknown): string | undefined => {
  // A pooler sends the localized form alone.
  const { severity, severity_local: local } = error as { severity?: string; severity_local?: string }
  return severity ?? local
}

/** Sends a statement and waits for its response. */
const send = async (
  pool: Pool,
  connection: Connection,
  { text, parameters = [], prepare = true, simple = false }: Statement,
): Promise<StatementResult> => {
  if (connection.lost) throw connection.lost
  const options = { prepare: prepare && !simple, simple }
  const query = connection.session.sql.unsafe(text, parameters as ParameterOrJSON<never>[], options)
  if (!simple) void query.values()
  onRepeat(query, () => discard(pool, connection, connectionClosedError()))
  try {
    return dropHoles(await waitForResponse(pool, connection, query))
  } catch (error) {
    const severity = getSeverity(error)
    if (severity === 'ERROR') throw toStatementError(pool, connection, error as Error)
    discard(pool, connection, error as Error)
    throw severity ? error : connection.lost!
  } finally {
    connection.pending.delete(query)
    connection.watch?.refresh()
    serveWaiters(pool)
  }
}

/**
 * Has a statement sent, and its outcome handed to these functions instead of to the promise that the statement is.
 * Each of those is kept alive by one before it until the whole heap is collected, with the rows it was resolved
 * with; measured: a scavenge then copies 3.5 MB instead of 1.2 (docs/decisions/0069-rows-that-die-young.md).
 */
const waitForResponse = (
  pool: Pool,
  connection: Connection,
  query: PendingStatement,
): Promise<StatementResult> =>
  new Promise((resolve, reject) => {
    connection.pending.set(query, reject)
    watch(pool, connection)
    void Object.assign(query, { resolve, reject })
    void query.execute()
  })

type Repeatable = PendingStatement & { onRepeat?: () => void }

/** Without a value, and one for all statements, which then keep the same hidden class. */
const REPEATED: PropertyDescriptor & ThisType<Repeatable> = {
  set() {
    this.onRepeat!()
  },
}

/**
 * Calls the listener when postgres.js is about to send a statement again whose prepared form became invalid. It does so
 * behind all that was sent meanwhile, whose rows it then mixes up (docs/upstream.md).
 */
const onRepeat = (query: PendingStatement, listener: () => void): void => {
  ;(query as Repeatable).onRepeat = listener
  void Object.defineProperty(query, 'retried', REPEATED)
}

/**
 * postgres.js (3.4, its issue 1181) does not forget the rows that a statement sent before it failed: it begins the next
 * result of the connection with as many holes.
 */
const dropHoles = (result: StatementResult): StatementResult => {
  let holes = 0
  while (holes < result.length && !(holes in result)) holes++
  if (holes > 0) result.splice(0, holes)
  return result
}

/**
 * Runs a statement outside of a transaction. Behind a pooler it is made one, in the same round trip, so that
 * the pool's settings hold for it.
 */
const runAlone = async (
  pool: Pool,
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

/** Every response restarts the time. */
const watch = (pool: Pool, connection: Connection): void => {
  const { responseMs } = pool.limits
  if (connection.watch && connection.pending.size === 1) connection.watch.refresh()
  if (connection.watch || responseMs === 0) return
  const expire = (): void => {
    connection.watch = undefined
    if (connection.pending.size > 0)
      leaveServer(pool, connection, codedError('RESPONSE_TIMEOUT', 'the database does not respond'))
  }
  connection.watch = setTimeout(expire, responseMs).unref()
}

/**
 * Closes a connection to a server that is of no use any more, and all that nobody uses, so that the next ones may lead
 * to the server in its place.
 */
const leaveServer = (pool: Pool, connection: Connection, reason: Error): void => {
  for (const one of pool.connections)
    if (one === connection || (one.isOpen && !isBusy(one))) discard(pool, one, reason)
}

/** Returns the error to throw for one that the server reports. One that takes no changes has become a standby. */
const toStatementError = (pool: Pool, connection: Connection, error: Error): Error => {
  const explained = pool.explainError?.(error) ?? error
  if ((explained as { code?: string }).code === errorCode.readOnlyTransaction)
    leaveServer(pool, connection, explained)
  return explained
}

/**
 * postgres.js leaves some statements of a lost connection without an answer, such as those behind one that cannot be
 * opened: this ends the wait of all.
 */
const discard = (pool: Pool, connection: Connection, reason: Error): void => {
  if (connection.lost) return
  const lost = pool.explainLoss?.() ?? reason
  connection.lost = lost
  clearTimeout(connection.watch)
  pool.connections.delete(connection)
  connection.session.destroy()
  for (const reject of connection.pending.values()) reject(lost)
  if (!connection.isOpen) refuseWaiters(pool, connection, lost)
  serveWaiters(pool)
}

/**
 * Tells those who waited when a connection began to open why it could not be opened: the first of them, or all when no
 * other is open.
 */
const refuseWaiters = (pool: Pool, { since }: Connection, reason: Error): void => {
  markConnectError(reason)
  const refused = pool.waiters.filter((waiter) => waiter.since <= since)
  if ([...pool.connections].some(({ isOpen }) => isOpen)) refused.splice(1)
  pool.waiters = pool.waiters.filter((waiter) => !refused.includes(waiter))
  for (const { reject } of refused) reject(reason)
}

const openConnection = (pool: Pool): void => {
  const session = pool.openSession((reason = connectionClosedError()) => discard(pool, connection, reason))
  const connection: Connection = {
    session,
    pending: new Map(),
    isOpen: false,
    isHeld: false,
    since: performance.now(),
  }
  pool.connections.add(connection)
  void send(pool, connection, { text: pool.opening ?? 'select 1', simple: true })
    .catch(() => {})
    .then(() => {
      connection.isOpen = true
      serveWaiters(pool)
    })
}

/** Finds an idle connection; a statement by itself may join the least busy when all are open. */
const findConnection = (pool: Pool, exclusive: boolean): Connection | undefined => {
  let leastBusy: Connection | undefined
  let areAllOpen = pool.connections.size === pool.max
  for (const connection of pool.connections) {
    if (!connection.isOpen) areAllOpen = false
    if (connection.isHeld || !connection.isOpen) continue
    const { size } = connection.pending
    if (size === 0) return connection
    if (size < (leastBusy?.pending.size ?? pool.maxPending ?? MAX_PENDING)) leastBusy = connection
  }
  return areAllOpen && !exclusive ? leastBusy : undefined
}

/**
 * Hands out connections in the order of the requests: a transaction waits until one has nothing to do. Opens one for
 * each that waits, as far as there may be so many.
 */
const serveWaiters = (pool: Pool): void => {
  while (pool.waiters.length > 0) {
    const [{ exclusive, reader, reject }] = pool.waiters as [Waiter]
    if (reader?.isGone()) {
      pool.waiters.shift()
      reject(clientGoneError())
      continue
    }
    const connection = findConnection(pool, exclusive)
    if (!connection) break
    pool.waiters.shift()!.grant(connection)
  }
  if (pool.waiters.length === 0) return
  let opening = [...pool.connections].filter(({ isOpen }) => !isOpen).length
  for (; opening < pool.waiters.length && pool.connections.size < pool.max; opening++) openConnection(pool)
}

/** Calls `use` with a connection as soon as there is one. `exclusive`: one with nothing to do. */
const withConnection = <T>(
  pool: Pool,
  exclusive: boolean,
  use: (connection: Connection) => Promise<T>,
): Promise<T> => {
  if (pool.isClosed) return Promise.reject(codedError('CONNECTION_ENDED', 'the storage is closed'))
  const reader = getReader()
  if (reader?.isGone()) return Promise.reject(clientGoneError())
  const connection = pool.waiters.length === 0 ? findConnection(pool, exclusive) : undefined
  if (connection) return use(connection)
  const since = performance.now()
  return new Promise<T>((resolve, reject) => {
    const stopWaiting = (): void => {
      clearTimeout(timer)
      pool.waited.count++
      pool.waited.ms += performance.now() - since
    }
    const waiter: Waiter = {
      since,
      exclusive,
      reader,
      grant: (granted) => {
        stopWaiting()
        use(granted).then(resolve, reject)
      },
      reject: (error) => {
        stopWaiting()
        reject(error)
      },
    }
    const expire = (): void => {
      pool.waiters.splice(pool.waiters.indexOf(waiter), 1)
      waiter.reject(codedError('ACQUIRE_TIMEOUT', 'no connection to the database became free'))
      serveWaiters(pool)
    }
    const { acquireMs } = pool.limits
    const timer = acquireMs > 0 ? setTimeout(expire, acquireMs) : undefined
    pool.waiters.push(waiter)
    serveWaiters(pool)
  })
}

const closePool = async (pool: Pool): Promise<void> => {
  pool.isClosed = true
  for (const { reject } of pool.waiters.splice(0))
    reject(codedError('CONNECTION_ENDED', 'the storage is closed'))
  const deadline = performance.now() + CLOSE_GRACE_MS
  while ([...pool.connections].some(isBusy) && performance.now() < deadline) await pause(10)
  const connections = [...pool.connections]
  const ended = Promise.all(connections.map(({ session }) => session.end()))
  await waitAtMost(END_TIMEOUT_MS, ended)
  for (const connection of connections) discard(pool, connection, connectionClosedError())
}
