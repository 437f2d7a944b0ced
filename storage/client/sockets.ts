import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectByTls } from 'node:tls'
import type { Address, Servers } from './database-url.ts'
import { codedError } from './error-codes.ts'
import { loadTls, type Tls } from './tls.ts'

export const CONNECT_TIMEOUT_MS = 10_000
/** How long an address may take while there are others. */
const NEXT_ADDRESS_AFTER_MS = 2_000

/** The error of postgres.js for a connection that closed. */
export const connectionClosedError = (): Error =>
  codedError('CONNECTION_CLOSED', 'the connection to the database is closed')

/**
 * Returns the function that connects to the servers of a database, encrypted where that is asked for. Addresses are
 * tried one after another: of servers in a role from the one that was not left yet, since postgres.js closes a
 * connection to a server in another role, and a server that fails closes its own.
 */
export const createSocketOpener = ({ addresses, role, tls: settings }: Servers): (() => Promise<Socket>) => {
  const tls = loadTls(settings)
  let first = 0
  const leave = (index: number): void => {
    if (role !== 'any' && first === index) first = (index + 1) % addresses.length
  }
  return async () => {
    const order = addresses.map((_, i) => (first + i) % addresses.length)
    for (const [n, index] of order.entries()) {
      const isLast = n === order.length - 1
      try {
        const socket = await openSocket(
          addresses[index]!,
          tls,
          isLast ? CONNECT_TIMEOUT_MS : NEXT_ADDRESS_AFTER_MS,
        )
        return socket.once('close', () => leave(index))
      } catch (error) {
        leave(index)
        if (isLast) throw role !== 'any' && n > 0 ? noServerError() : error
      }
    }
    throw noServerError()
  }
}

export const noServerError = (): Error =>
  codedError('NO_SERVER', 'none of the addresses of the database answers as the server that is asked for')

const openSocket = async (address: Address, tls: Tls | undefined, timeoutMs: number): Promise<Socket> => {
  const socket = connect(address)
  const end = new AbortController()
  const close = () => end.abort(connectionClosedError())
  const timer = setTimeout(() => {
    end.abort(codedError('CONNECT_TIMEOUT', 'the database does not answer in time'))
  }, timeoutMs)
  try {
    await once(socket, 'connect', { signal: end.signal })
    socket.once('close', close)
    // PostgreSQL has no TLS on a unix socket, and libpq does not ask.
    return tls && 'host' in address
      ? await beginTls(socket, address.host, { tls, signal: end.signal })
      : socket
  } catch (error) {
    socket.on('error', () => {}).destroy()
    throw end.signal.aborted ? end.signal.reason : error
  } finally {
    clearTimeout(timer)
    socket.off('close', close)
  }
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const YES = 'S'.charCodeAt(0)

/**
 * Begins TLS on a connection to a server. postgres.js would do so, but keep the encrypted socket to itself: when
 * the one below is destroyed, what it still writes to the encrypted one is an error that nobody handles.
 */
const beginTls = async (
  socket: Socket,
  host: string,
  { tls: { mode, isDirect, identity }, signal }: { tls: Tls; signal: AbortSignal },
): Promise<Socket> => {
  if (!isDirect) {
    socket.write(SSL_REQUEST)
    const [answer] = (await once(socket, 'data', { signal })) as [Buffer]
    if (answer[0] !== YES) {
      if (mode === 'prefer') return socket
      throw codedError('NO_TLS', 'the server of the database has no TLS')
    }
  }
  const secure = connectByTls({
    socket,
    host,
    ...(isIP(host) ? {} : { servername: host }),
    ...(isDirect ? { ALPNProtocols: ['postgresql'] } : {}),
    ...identity,
  })
  try {
    await once(secure, 'secureConnect', { signal })
    return secure
  } catch (error) {
    secure.on('error', () => {}).destroy()
    throw error
  }
}
