import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { isIP, type Socket } from 'node:net'
import { checkServerIdentity, connect, type ConnectionOptions, createSecureContext } from 'node:tls'
import { type Address, nameSocket, type TlsSettings } from './addresses.ts'
import type { ClientCertificate } from './database-url.ts'
import { codedError } from './error-codes.ts'

/** As postgres.js has it: these encrypt, and trust every certificate. */
const UNVERIFIED = new Set(['require', 'allow', 'prefer'])

/** As libpq has it: with certificates of one's own these do not compare the name of the host. */
const UNNAMED = new Set(['require', 'verify-ca'])

/** The code of an error of a file that a URL names for TLS. */
const UNUSABLE_FILE = 'UNUSABLE_TLS_FILE'

/** `identity`: what Node is to check of the server's certificate, and the service's own one. */
export type Tls = TlsSettings & { identity: ConnectionOptions }

/** Reads the certificates to trust, and the service's own one. */
export const loadTls = (settings: TlsSettings | undefined): Tls | undefined => {
  if (!settings) return undefined
  const { mode, rootFile, clientCertificate } = settings
  const isVerified = !UNVERIFIED.has(mode) || (rootFile !== undefined && UNNAMED.has(mode))
  const isNamed = rootFile === undefined || !UNNAMED.has(mode)
  const identity: ConnectionOptions = {
    rejectUnauthorized: isVerified,
    ...(isVerified && rootFile !== undefined ? { ca: readNamed('sslrootcert', rootFile) } : {}),
    ...(isNamed ? {} : { checkServerIdentity: () => undefined }),
    ...(clientCertificate ? readClientCertificate(clientCertificate) : {}),
  }
  return { ...settings, identity }
}

const readNamed = (parameter: string, file: string): Buffer => {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw codedError(UNUSABLE_FILE, `${parameter} names ${file}, which cannot be read (${code})`)
  }
}

const readClientCertificate = ({ file, keyFile, password }: ClientCertificate): ConnectionOptions => {
  if (file === undefined || keyFile === undefined)
    throw codedError(UNUSABLE_FILE, 'sslcert and sslkey are given together, or none of them')
  const cert = readNamed('sslcert', file)
  const key = readNamed('sslkey', keyFile)
  const unsealed = password === undefined ? { key } : { key, passphrase: password }
  const opened = password === undefined ? 'is not sealed by a password' : 'sslpassword opens'
  // One after the other, to name the one that is wrong.
  tryOut({ cert }, `sslcert names ${file}, which holds no certificate in PEM`)
  tryOut(unsealed, `sslkey names ${keyFile}, which holds no key in PEM that ${opened}`)
  tryOut({ cert, ...unsealed }, 'the certificate of sslcert is of another key than that of sslkey')
  return { cert, ...unsealed }
}

const tryOut = (options: ConnectionOptions, problem: string): void => {
  try {
    createSecureContext(options)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw codedError(UNUSABLE_FILE, `${problem} (${code})`)
  }
}

/**
 * As postgres.js understands it, which then begins TLS by itself. It tells Node the name of a host, but not an address:
 * Node would compare the certificate with `localhost`.
 */
export const toTlsOption = (tls: Tls | undefined, addresses: readonly Address[]) => {
  if (!tls) return {}
  const { mode, identity, clientCertificate } = tls
  if (!identity.rejectUnauthorized) return { ssl: clientCertificate ? identity : mode }
  const names = addresses.flatMap((one) => ('host' in one ? [one.host] : []))
  const check: ConnectionOptions['checkServerIdentity'] = (host, certificate) => {
    const meant = names.includes(host) && !isIP(host) ? [host] : names.filter((name) => isIP(name))
    const errors = meant.map((name) => checkServerIdentity(name, certificate))
    return errors.includes(undefined) ? undefined : (errors[0] ?? checkServerIdentity(host, certificate))
  }
  return { ssl: { checkServerIdentity: check, ...identity } }
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const YES = 'S'.charCodeAt(0)

/**
 * Begins TLS on a connection to a server. postgres.js would do so, but keep the encrypted socket to itself: when
 * the one below is destroyed, what it still writes to the encrypted one is an error that nobody handles.
 */
export const beginTls = async (
  socket: Socket,
  address: Address,
  { mode, isDirect, identity }: Tls,
  timeoutMs: number,
): Promise<Socket> => {
  // PostgreSQL has none on a unix socket, and libpq does not ask.
  if ('path' in address) return socket
  const end = new AbortController()
  const lose = () => end.abort(codedError('CONNECTION_CLOSED', 'the connection to the database is closed'))
  const timer = setTimeout(() => {
    end.abort(codedError('CONNECT_TIMEOUT', 'the database does not begin TLS in time'))
  }, timeoutMs)
  socket.once('close', lose)
  try {
    if (!isDirect && !(await hasTls(socket, end.signal))) {
      if (mode === 'prefer') return socket
      throw codedError('NO_TLS', 'the server of the database has no TLS')
    }
    return await encrypt(socket, address, { isDirect, identity }, end.signal)
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
  { isDirect, identity }: Pick<Tls, 'isDirect' | 'identity'>,
  signal: AbortSignal,
): Promise<Socket> => {
  const secure = connect({
    socket,
    host,
    ...(isIP(host) ? {} : { servername: host }),
    ...(isDirect ? { ALPNProtocols: ['postgresql'] } : {}),
    ...identity,
  })
  try {
    await once(secure, 'secureConnect', { signal })
    return nameSocket(secure, { host, port })
  } catch (error) {
    secure.on('error', () => {}).destroy()
    throw error
  }
}
