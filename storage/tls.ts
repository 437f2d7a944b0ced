import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { type Address, nameSocket, type TlsSettings } from './addresses.ts'

/** As postgres.js has it: these encrypt, and trust every certificate. */
const UNVERIFIED = new Set(['require', 'allow', 'prefer'])

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const YES = 'S'.charCodeAt(0)

/**
 * Begins TLS on a connection to a server. postgres.js would do so, but keep the encrypted socket to itself: when
 * the one below is destroyed, what it still writes to the encrypted one is an error that nobody handles.
 */
export const beginTls = async (
  socket: Socket,
  address: Address,
  { mode, isDirect }: TlsSettings,
  timeoutMs: number,
): Promise<Socket> => {
  // PostgreSQL has none on a unix socket, and libpq does not ask.
  if ('path' in address) return socket
  const end = new AbortController()
  const lose = () =>
    end.abort(connectionError('CONNECTION_CLOSED', 'the connection to the database is closed'))
  const timer = setTimeout(() => {
    end.abort(connectionError('CONNECT_TIMEOUT', 'the database does not begin TLS in time'))
  }, timeoutMs)
  socket.once('close', lose)
  try {
    if (!isDirect && !(await hasTls(socket, end.signal))) {
      if (mode === 'prefer') return socket
      throw connectionError('NO_TLS', 'the server of the database has no TLS')
    }
    return await encrypt(socket, address, { mode, isDirect }, end.signal)
  } catch (error) {
    socket.on('error', () => {}).destroy()
    throw end.signal.aborted ? end.signal.reason : error
  } finally {
    clearTimeout(timer)
    socket.off('close', lose)
  }
}

const hasTls = async (socket: Socket, signal: AbortSignal): Promise<boolean> => {
  socket.write(SSL_REQUEST)
  const [answer] = (await once(socket, 'data', { signal })) as [Buffer]
  return answer[0] === YES
}

const encrypt = async (
  socket: Socket,
  { host, port }: { host: string; port: number },
  { mode, isDirect }: TlsSettings,
  signal: AbortSignal,
): Promise<Socket> => {
  const secure = connect({
    socket,
    host,
    ...(isIP(host) ? {} : { servername: host }),
    ...(isDirect ? { ALPNProtocols: ['postgresql'] } : {}),
    rejectUnauthorized: !UNVERIFIED.has(mode),
  })
  try {
    await once(secure, 'secureConnect', { signal })
    return nameSocket(secure, { host, port })
  } catch (error) {
    secure.on('error', () => {}).destroy()
    throw error
  }
}

const connectionError = (code: string, message: string): Error => Object.assign(new Error(message), { code })
