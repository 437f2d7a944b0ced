import type { Socket } from 'node:net'
import postgres, { type PendingQuery, type Row, type Sql } from 'postgres'
import {
  type Address,
  connectTo,
  connectToFirst,
  parseServers,
  type Role,
  toRoleOption,
} from './addresses.ts'
import { arrayTypes } from './array-types.ts'
import { codedError } from './error-codes.ts'
import { createServerFinder, type ServerFinder } from './find-server.ts'
import type { SessionSettings } from './session-settings.ts'
import { toIsoTime } from '../values/times.ts'
import { beginTls, loadTls, type Tls } from './tls.ts'

/** Where a database is reached: a URL, or a function that connects to the embedded one. */
export type Target = string | (() => Promise<Socket>)

/** Gets the text of each notification to a session that listens. */
export type OnNotify = (text: string) => void

export type PendingStatement = PendingQuery<(Row & Iterable<Row>)[]>

/** One connection in postgres.js. It never reconnects: `onClose` is called once, and it is replaced. */
export type Client = {
  sql: Sql
  /** Asks the server to stop a statement that runs. The request may be lost, and nobody waits for it. */
  cancel: (statement: PendingStatement) => void
  /**
   * Has it checked whether another server of the cluster has taken the place of this one, which does not
   * respond; it is then closed. Absent where there is no other.
   */
  suspect?: () => void
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

/** What identifies a session in the protocol's cancel request. */
type SessionKey = { pid: number | null; secret: number }

const CANCEL_REQUEST_CODE = 80_877_102

/** Sends a cancel request over a connection of its own. */
const sendCancelRequest = async (open: Open, { pid, secret }: SessionKey): Promise<void> => {
  const message = Buffer.alloc(16)
  for (const [i, value] of [16, CANCEL_REQUEST_CODE, pid!, secret].entries())
    message.writeUInt32BE(value, i * 4)
  const { socket } = await open()
  socket.on('error', () => {})
  socket.end(message)
  setTimeout(() => socket.destroy(), CANCEL_TIMEOUT_MS).unref()
}

/** Connects. `address`: the one that was taken; undefined for the embedded database. */
type Open = () => Promise<{ socket: Socket; address?: Address }>

/** `reason`: why, when that is more than a connection that closed. */
export type OnClose = (reason?: Error) => void

type OpenClient = (settings: SessionSettings, onClose: OnClose, onNotify?: OnNotify) => Client

/**
 * Returns the function that opens clients of a database. postgres.js would reconnect by itself; but in 3.4 a
 * message that was unsent when a connection closed keeps the next one from starting, and a server that
 * accepts and closes makes it reconnect for ever. So each client connects once.
 */
export const createClientFactory = (target: Target, prepare: boolean): OpenClient => {
  if (typeof target !== 'string')
    return createOpener({ open: async () => ({ socket: await target() }), prepare })
  const servers = parseServers(target)
  const { addresses, role, url } = servers
  const tls = loadTls(servers.tls)
  if (role === 'any' || addresses.length === 1)
    return createOpener({ url, role, open: () => connectToFirst(addresses), prepare, tls })
  const finder = createServerFinder(servers, (address) => askRole(url, address, tls))
  const open: Open = async () => {
    const address = await finder.find()
    return { socket: connectTo(address), address }
  }
  return createOpener({ url, role, open, prepare, finder, tls })
}

/** Asks one server over a connection of its own whether it takes changes. */
const askRole = async (
  url: string,
  address: Address,
  tls: Tls | undefined,
): Promise<{ isPrimary: boolean }> => {
  let lose: (error: Error) => void
  const lost = new Promise<never>((_, reject) => {
    lose = reject
  })
  lost.catch(() => {})
  const open: Open = () => Promise.resolve({ socket: connectTo(address) })
  const client = createOpener({ url, open, prepare: false, tls })({}, () => lose(connectionClosedError()))
  try {
    const answered = client.sql.unsafe<{ is_primary: boolean }[]>(
      "select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as is_primary",
    )
    const [row] = await Promise.race([answered, lost])
    return { isPrimary: row!.is_primary }
  } finally {
    client.destroy()
  }
}

/** PostgreSQL's function that waits for standbys at a commit. */
const WAITS_FOR_STANDBYS = 'SyncRepWaitForLSN'

/**
 * A server that gives up the wait for its standbys, for a timeout or a cancel request, reports the commit as
 * done, with a mere warning. The change would be lost with that server, so its outcome is not known.
 */
const isUnreplicatedCommit = (notice: { routine?: string }): boolean => notice.routine === WAITS_FOR_STANDBYS

const unreplicatedError = (): Error =>
  codedError('COMMIT_NOT_REPLICATED', 'a commit did not reach the synchronous standbys in time')

type OpenerOptions = {
  /** Absent for the embedded database. */
  url?: string
  role?: Role
  open: Open
  prepare: boolean
  /** Of a cluster, where another server may take the place of this one. */
  finder?: ServerFinder
  tls?: Tls | undefined
}

const createOpener = ({ url, role = 'any', open, prepare, finder, tls }: OpenerOptions): OpenClient => {
  const live = new Set<{ address: () => Address | undefined; lose: () => void }>()
  return (settings, onClose, onNotify) => {
    const close: OnClose = (reason) => {
      live.delete(entry)
      onClose(reason)
    }
    const opener = createSocketOpener(open, tls, () => close())
    const entry = {
      address: opener.address,
      lose: () => {
        opener.destroySocket()
        close()
      },
    }
    if (finder) live.add(entry)
    const options = {
      ...toClientOptions(settings, prepare),
      max: 1,
      // `arrayTypes` has them.
      fetch_types: false,
      onclose: () => close(),
      onnotice: (notice: { routine?: string }) => {
        if (!isUnreplicatedCommit(notice)) return
        opener.destroySocket()
        close(unreplicatedError())
      },
      onnotify: onNotify && ((_channel: string, text: string) => onNotify(text)),
      socket: opener.openOnce,
      // The opener has begun it.
      ssl: false,
      // Of several hosts postgres.js would swallow the error of the first.
      ...(url === undefined
        ? { user: 'postgres', database: 'postgres', pass: '' }
        : // With several, the finder has chosen.
          { host: 'first', ...(finder && role === 'prefer-standby' ? {} : toRoleOption(role)) }),
    }
    const sql = url === undefined ? postgres(options as never) : postgres(url, options as never)
    return {
      sql,
      cancel: (statement) => {
        const { state } = statement as unknown as { state: SessionKey | null }
        const address = opener.address()
        const openSame: Open = address ? () => Promise.resolve({ socket: connectTo(address) }) : open
        if (typeof state?.pid === 'number') sendCancelRequest(openSame, state).catch(() => {})
      },
      ...(finder ? { suspect: () => void leaveReplaced(finder, live, opener.address()) } : {}),
      end: () => sql.end(),
      destroy: () => {
        live.delete(entry)
        opener.destroySocket()
        sql.end({ timeout: 0 }).catch(() => {})
      },
    }
  }
}

/** Closes the connections to a server that does not answer any more, when another has taken its place. */
const leaveReplaced = async (
  finder: ServerFinder,
  live: ReadonlySet<{ address: () => Address | undefined; lose: () => void }>,
  address: Address | undefined,
): Promise<void> => {
  if (!address || !(await finder.isReplaced(address))) return
  for (const entry of live) if (entry.address() === address) entry.lose()
}

/** Returns the options of postgres.js that all connections have. */
export const toClientOptions = (settings: SessionSettings, prepare: boolean) => ({
  prepare,
  onnotice: () => {},
  connection: toStartupParameters(settings),
  types: { timestamp, json, ...arrayTypes },
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
const createSocketOpener = (open: Open, tls: Tls | undefined, onClose: () => void) => {
  let opened: { socket: Socket; address?: Address } | undefined
  let isOpened = false
  let isDestroyed = false
  return {
    address: (): Address | undefined => opened?.address,
    openOnce: async (): Promise<Socket> => {
      try {
        if (isOpened) throw connectionClosedError()
        isOpened = true
        opened = await open()
        const { address, socket } = opened
        if (tls && address && !isDestroyed)
          opened = { address, socket: await beginTls(socket, address, tls, CONNECT_TIMEOUT_SECONDS * 1000) }
        if (!isDestroyed) return opened.socket
        opened.socket.destroy()
        throw connectionClosedError()
      } catch (error) {
        // postgres.js does not report this one.
        setImmediate(onClose)
        throw error
      }
    },
    destroySocket: (): void => {
      isDestroyed = true
      opened?.socket.destroy()
    },
  }
}

/** The error of postgres.js for a connection that closed. */
export const connectionClosedError = (): Error =>
  codedError('CONNECTION_CLOSED', 'the connection to the database is closed')
