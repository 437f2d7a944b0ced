import type { Socket } from 'node:net'
import postgres, { type PendingQuery, type Row, type RowList, type Sql } from 'postgres'
import { toIsoTime } from '../values/times.ts'
import { arrayTypes } from './array-types.ts'
import { parseServers, type Servers } from './database-url.ts'
import { codedError } from './error-codes.ts'
import type { SessionSettings } from './session-settings.ts'
import { CONNECT_TIMEOUT_MS, connectionClosedError, createSocketOpener, noServerError } from './sockets.ts'

/** Where a database is reached: a URL, or a function that connects to the embedded one. */
type Target = string | (() => Promise<Socket>)

export type PendingStatement = PendingQuery<(Row & Iterable<Row>)[]>

export type StatementResult = RowList<(Row & Iterable<Row>)[]>

/** One session in postgres.js. It never reconnects: `onClose` is called once, and it is replaced. */
export type Session = {
  sql: Sql
  /** Closes the connection in the regular way. */
  end: () => Promise<void>
  /** Closes it at once; statements without a response fail. */
  destroy: () => void
}

/** `reason`: why, when that is more than a connection that closed. */
export type OnClose = (reason?: Error) => void

/** `onNotify` gets the text of each notification to a session that listens. */
type OpenSession = (settings: SessionSettings, onClose: OnClose, onNotify?: (text: string) => void) => Session

const timestamp = { to: 1184, from: [1114, 1184], serialize: (v: unknown) => v as string, parse: toIsoTime }
const json = {
  to: 3802,
  from: [114, 3802],
  serialize: (v: unknown) => (typeof v === 'string' ? v : JSON.stringify(v)),
  parse: (text: string) => JSON.parse(text) as unknown,
}

/** PostgreSQL's function that waits for standbys at a commit. */
const WAITS_FOR_STANDBYS = 'SyncRepWaitForLSN'

type Notice = { routine?: string }

/**
 * Returns the function that opens sessions of a database. postgres.js would reconnect by itself; but in 3.4 a
 * message that was unsent when a connection closed keeps the next one from starting, and a server that accepts and
 * closes makes it reconnect for ever (docs/upstream.md). So each session connects once.
 */
export const createSessionOpener = (target: Target, prepare: boolean): OpenSession => {
  const servers = typeof target === 'string' ? parseServers(target) : undefined
  const openSocket = servers ? createSocketOpener(servers) : (target as () => Promise<Socket>)
  return (settings, onClose, onNotify) => {
    const socket = createSocketHolder(openSocket, { attempts: countAttempts(servers), onFailure: onClose })
    const options = {
      ...toClientOptions(settings, prepare, servers?.parameters),
      ...(servers ? toServerOptions(servers) : { user: 'postgres', database: 'postgres', pass: '' }),
      max: 1,
      // `arrayTypes` has them.
      fetch_types: false,
      onclose: () => onClose(),
      // A server that gives up the wait for its standbys, for a timeout or a cancel request, reports the commit as
      // done, with a mere warning. The change would be lost with that server, so its outcome is not known.
      onnotice: ({ routine }: Notice) => {
        if (routine !== WAITS_FOR_STANDBYS) return
        socket.destroy()
        onClose(
          codedError('COMMIT_NOT_REPLICATED', 'a commit did not reach the synchronous standbys in time'),
        )
      },
      onnotify: onNotify && ((_channel: string, text: string) => onNotify(text)),
      socket: socket.open,
    }
    const sql = servers ? postgres(servers.url, options as never) : postgres(options as never)
    return {
      sql,
      end: () => sql.end(),
      destroy: () => {
        socket.destroy()
        sql.end({ timeout: 0 }).catch(() => {})
      },
    }
  }
}

/** postgres.js closes a connection to a server in another role than that which is asked for, and opens another. */
const countAttempts = (servers: Servers | undefined): number =>
  servers === undefined || servers.role === 'any' ? 1 : servers.addresses.length

/** Opens at most so many sockets, and none after `destroy`. */
const createSocketHolder = (
  open: () => Promise<Socket>,
  { attempts, onFailure }: { attempts: number; onFailure: (error: Error) => void },
) => {
  let current: Socket | undefined
  let left = attempts
  let isDestroyed = false
  return {
    open: async (): Promise<Socket> => {
      try {
        if (isDestroyed || left-- === 0) throw attempts > 1 ? noServerError() : connectionClosedError()
        current = await open()
        if (!isDestroyed) return current
        current.destroy()
        throw connectionClosedError()
      } catch (error) {
        // postgres.js reports this one to a statement at the most.
        setImmediate(onFailure, error as Error)
        throw error
      }
    },
    destroy: (): void => {
      isDestroyed = true
      current?.destroy()
    },
  }
}

/** Returns the options of postgres.js that all sessions have. `parameters`: of the URL. */
export const toClientOptions = (
  settings: SessionSettings,
  prepare: boolean,
  parameters: Record<string, string> = {},
) => ({
  prepare,
  onnotice: () => {},
  connection: { ...parameters, ...toStartupParameters(settings) },
  types: { timestamp, json, ...arrayTypes },
  connect_timeout: CONNECT_TIMEOUT_MS / 1000,
  idle_timeout: 0,
  max_lifetime: null,
  transform: { undefined: null },
})

/** Of several hosts it goes on to the next one when it is told to; we choose it. The socket is encrypted already. */
export const toServerOptions = ({ addresses, role }: Servers) => ({
  host: addresses.map((at) => ('path' in at ? at.path : at.host)),
  port: addresses.map((at) => ('path' in at ? 0 : at.port)),
  ssl: false,
  ...(role === 'any' ? {} : { target_session_attrs: role }),
})

/** As text: postgres.js leaves out a parameter that is 0. */
const toStartupParameters = (settings: SessionSettings): Record<string, string> =>
  Object.fromEntries(
    Object.entries({ application_name: 'wcrm', TimeZone: 'UTC', ...settings }).map(([name, value]) => [
      name,
      String(value),
    ]),
  )
