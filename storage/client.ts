import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import postgres, { type PendingQuery, type Row, type Sql } from 'postgres'
import { toIsoTime } from './times.ts'

/** Where a database is reached: a URL, or a function that connects to the embedded one. */
export type Target = string | (() => Promise<Socket>)

/** Parameters of a session, such as `statement_timeout`. */
export type SessionSettings = Record<string, string | number>

/** Gets the text of each notification to a session that listens. */
export type OnNotify = (text: string) => void

export type PendingStatement = PendingQuery<(Row & Iterable<Row>)[]>

/** One connection in postgres.js. It never reconnects: `onClose` is called once, and it is replaced. */
export type Client = {
  sql: Sql
  /** Asks the server to stop a statement that runs. The request may be lost, and nobody waits for it. */
  cancel: (statement: PendingStatement) => void
  /** Closes the connection in the regular way. */
  end: () => Promise<void>
  /** Closes it at once; statements without a response fail. */
  destroy: () => void
}

const CONNECT_TIMEOUT_SECONDS = 10
const CANCEL_TIMEOUT_MS = 2_000

const timestamp = { to: 1184, from: [1114, 1184], serialize: (v: unknown) => v as string, parse: toIsoTime }
const json = {
  to: 3802,
  from: [114, 3802],
  serialize: (v: unknown) => (typeof v === 'string' ? v : JSON.stringify(v)),
  parse: (text: string) => JSON.parse(text) as unknown,
}

type Address = { host: string; port: number } | { path: string }

/** Returns the addresses in a URL: several hosts, or the path of a unix socket. */
const parseAddresses = (url: string): Address[] => {
  const { host, port, path } = postgres(url, { max: 1 }).options as unknown as {
    host: string[]
    port: number[]
    path: string | false
  }
  return path ? [{ path }] : host.map((name, i) => ({ host: name, port: port[i] ?? port[0]! }))
}

const NEXT_ADDRESS_AFTER_MS = 2_000

/** Connects to the first of several addresses that accepts; the last one reports its own error. */
const connectToFirst = async ([address, ...others]: Address[]): Promise<Socket> => {
  const socket = connect(address!)
  // postgres.js reads the host for the name in the certificate.
  if ('host' in address!) Object.assign(socket, { host: address.host, port: address.port })
  if (others.length === 0) return socket
  const isConnected = await once(socket, 'connect', { signal: AbortSignal.timeout(NEXT_ADDRESS_AFTER_MS) })
    .then(() => true)
    .catch(() => false)
  if (isConnected) return socket
  socket.on('error', () => {}).destroy()
  return await connectToFirst(others)
}

/** What identifies a session in the protocol's cancel request. */
type SessionKey = { pid: number | null; secret: number }

const CANCEL_REQUEST_CODE = 80_877_102

/** Sends a cancel request over a connection of its own. */
const sendCancelRequest = async (open: () => Promise<Socket>, { pid, secret }: SessionKey): Promise<void> => {
  const message = Buffer.alloc(16)
  for (const [i, value] of [16, CANCEL_REQUEST_CODE, pid!, secret].entries())
    message.writeUInt32BE(value, i * 4)
  const socket = await open()
  socket.on('error', () => {})
  socket.end(message)
  setTimeout(() => socket.destroy(), CANCEL_TIMEOUT_MS).unref()
}

/**
 * Returns the function that opens clients of a database. postgres.js would reconnect by itself; but in 3.4 a
 * message that was unsent when a connection closed keeps the next one from starting, and a server that
 * accepts and closes makes it reconnect for ever. So each client connects once.
 */
export const createClientFactory = (target: Target, prepare: boolean) => {
  const addresses = typeof target === 'string' ? parseAddresses(target) : []
  const open = typeof target === 'string' ? () => connectToFirst(addresses) : target
  return (settings: SessionSettings, onClose: () => void, onNotify?: OnNotify): Client => {
    const { openOnce, destroySocket } = createSocketOpener(open, onClose)
    const options = {
      ...toClientOptions(settings, prepare),
      max: 1,
      onclose: onClose,
      onnotify: onNotify && ((_channel: string, text: string) => onNotify(text)),
      socket: openOnce,
      // Of several hosts postgres.js would swallow the error of the first.
      ...(typeof target === 'string'
        ? { host: 'first' }
        : { user: 'postgres', database: 'postgres', pass: '', ssl: false }),
    }
    const sql = typeof target === 'string' ? postgres(target, options as never) : postgres(options as never)
    return {
      sql,
      cancel: (statement) => {
        const { state } = statement as unknown as { state: SessionKey | null }
        if (typeof state?.pid === 'number') sendCancelRequest(open, state).catch(() => {})
      },
      end: () => sql.end(),
      destroy: () => {
        destroySocket()
        sql.end({ timeout: 0 }).catch(() => {})
      },
    }
  }
}

/** Returns the options of postgres.js that all connections have. */
export const toClientOptions = (settings: SessionSettings, prepare: boolean) => ({
  prepare,
  onnotice: () => {},
  connection: toStartupParameters(settings),
  types: { timestamp, json },
  connect_timeout: CONNECT_TIMEOUT_SECONDS,
  idle_timeout: 0,
  max_lifetime: null,
  transform: { undefined: null },
})

/** As text: postgres.js leaves out a parameter that is 0. */
const toStartupParameters = (settings: SessionSettings): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ application_name: 'wcrm', TimeZone: 'UTC', ...settings }).map(([k, v]) => [
      k,
      String(v),
    ]),
  )

/** Opens one socket; a second attempt, or one after `destroySocket`, closes the connection. */
const createSocketOpener = (open: () => Promise<Socket>, onClose: () => void) => {
  let socket: Socket | undefined
  let isOpened = false
  let isDestroyed = false
  return {
    openOnce: async (): Promise<Socket> => {
      try {
        if (isOpened) throw connectionClosedError()
        isOpened = true
        socket = await open()
        if (!isDestroyed) return socket
        socket.destroy()
        throw connectionClosedError()
      } catch (error) {
        // postgres.js does not report this one.
        setImmediate(onClose)
        throw error
      }
    },
    destroySocket: (): void => {
      isDestroyed = true
      socket?.destroy()
    },
  }
}

/** The error of postgres.js for a connection that closed. */
export const connectionClosedError = (): Error =>
  Object.assign(new Error('the connection to the database is closed'), { code: 'CONNECTION_CLOSED' })
