import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import postgres from 'postgres'
import { type ClientCertificate, readUrl } from './database-url.ts'

/** Where a server of a database listens. */
export type Address = { host: string; port: number } | { path: string }

/** Which of several servers a session is for, as libpq names them. */
export type Role = 'any' | 'primary' | 'standby' | 'prefer-standby'

/** How a URL asks for TLS. */
export type TlsSettings = {
  /** A value of `sslmode`. */
  mode: string
  /** Whether TLS begins at once, without a question to the server. */
  isDirect: boolean
  /** The file of the certificates to trust; those that Node trusts when absent. */
  rootFile?: string
  clientCertificate?: ClientCertificate
}

/** What a URL says of the servers: their addresses, which of them is meant, and whether to encrypt. */
export type Servers = {
  addresses: Address[]
  role: Role
  tls?: TlsSettings
  /** The URL for postgres.js, which does not have to find the servers any more: it takes a standby for `read-write`. */
  url: string
}

const ROLES: Readonly<Record<string, Role>> = {
  'read-write': 'primary',
  primary: 'primary',
  'read-only': 'standby',
  standby: 'standby',
  'prefer-standby': 'prefer-standby',
}

const NEXT_ADDRESS_AFTER_MS = 2_000

const DEFAULT_PORT = 5432

/** An address of IPv6 in brackets, which postgres.js does not understand, or a name, with a port. */
const HOST = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/

const parseHosts = (text: string): Address[] =>
  text.split(',').map((one) => {
    const [, inBrackets, name, port] = HOST.exec(one) ?? []
    const host = inBrackets ?? name
    if (!host) throw new Error('not a host')
    return { host, port: port === undefined ? DEFAULT_PORT : Number(port) }
  })

/** Returns the servers in a URL: several hosts, or the path of a unix socket. */
export const parseServers = (text: string): Servers => {
  const { url, path: socketPath, rootCertificates, clientCertificate } = readUrl(text)
  const {
    host,
    port,
    path,
    ssl,
    sslnegotiation,
    target_session_attrs: target,
  } = postgres(url, { max: 1 }).options as unknown as {
    host: string[]
    port: number[]
    path: string | false
    ssl: string | false
    sslnegotiation: string | null
    target_session_attrs: string | null
  }
  const [, authority = ''] = /^[^:]*:\/\/(?:[^/?]*@)?([^/?]*)/.exec(url) ?? []
  const parse = (): Address[] => {
    if (socketPath ?? path) return [{ path: socketPath ?? (path as string) }]
    if (authority.includes('[')) return parseHosts(authority)
    return host.map((name, i) => ({ host: name, port: port[i] ?? port[0]! }))
  }
  return {
    addresses: parse(),
    role: ROLES[target ?? ''] ?? 'any',
    ...(ssl ? { tls: toTlsSettings(ssl, sslnegotiation, { rootCertificates, clientCertificate }) } : {}),
    url: withoutRole(url),
  }
}

const toTlsSettings = (
  mode: string,
  negotiation: string | null,
  {
    rootCertificates,
    clientCertificate,
  }: { rootCertificates: string | undefined; clientCertificate: ClientCertificate | undefined },
): TlsSettings => ({
  mode,
  isDirect: negotiation === 'direct',
  ...(rootCertificates && rootCertificates !== 'system' ? { rootFile: rootCertificates } : {}),
  ...(clientCertificate ? { clientCertificate } : {}),
})

/** Whether `parseServers` understands a URL, and each port in it is one. */
export const isDatabaseUrl = (url: string): boolean => {
  try {
    const { addresses } = parseServers(url)
    return addresses.every((at) => 'path' in at || (at.port > 0 && at.port <= 65_535))
  } catch {
    return false
  }
}

const withoutRole = (url: string): string =>
  url.replace(/([?&])target_session_attrs=[^&]*(&|$)/, (_, before: string, after: string) =>
    after ? before : '',
  )

/** Whether a URL names one server and not several. */
export const namesOneServer = (url: string): boolean => parseServers(url).addresses.length === 1

/** As postgres.js understands it, which then checks each session. */
export const toRoleOption = (role: Role): { target_session_attrs?: Role } =>
  role === 'any' ? {} : { target_session_attrs: role }

/** As postgres.js understands them, which then connects by itself. */
export const toHostOptions = (addresses: readonly Address[]) => {
  const [first] = addresses
  // PostgreSQL has no TLS on a unix socket.
  if (first && 'path' in first) return { path: first.path, ssl: false }
  const hosts = addresses.filter((one) => 'host' in one)
  return hosts.length === 0 ? {} : { host: hosts.map((one) => one.host), port: hosts.map((one) => one.port) }
}

/** Begins to connect. */
export const connectTo = (address: Address): Socket => {
  const socket = connect(address)
  return 'host' in address ? nameSocket(socket, address) : socket
}

/** postgres.js names the address in its errors. */
export const nameSocket = <T extends Socket>(socket: T, { host, port }: { host: string; port: number }): T =>
  Object.assign(socket, { host, port })

/** Connects to the first of several addresses that accepts; the last one reports its own error. */
export const connectToFirst = async ([address, ...others]: readonly Address[]): Promise<{
  socket: Socket
  address: Address
}> => {
  const socket = connectTo(address!)
  if (others.length === 0) return { socket, address: address! }
  const isConnected = await once(socket, 'connect', { signal: AbortSignal.timeout(NEXT_ADDRESS_AFTER_MS) })
    .then(() => true)
    .catch(() => false)
  if (isConnected) return { socket, address: address! }
  socket.on('error', () => {}).destroy()
  return await connectToFirst(others)
}
