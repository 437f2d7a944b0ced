import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import postgres from 'postgres'

/** Where a server of a database listens. */
export type Address = { host: string; port: number } | { path: string }

/** Which of several servers a session is for, as libpq names them. */
export type Role = 'any' | 'primary' | 'standby' | 'prefer-standby'

/** What a URL says of the servers: their addresses, and which of them is meant. */
export type Servers = { addresses: Address[]; role: Role }

const ROLES: Readonly<Record<string, Role>> = {
  'read-write': 'primary',
  primary: 'primary',
  'read-only': 'standby',
  standby: 'standby',
  'prefer-standby': 'prefer-standby',
}

const NEXT_ADDRESS_AFTER_MS = 2_000

/** Returns the servers in a URL: several hosts, or the path of a unix socket. */
export const parseServers = (url: string): Servers => {
  const {
    host,
    port,
    path,
    target_session_attrs: target,
  } = postgres(url, { max: 1 }).options as unknown as {
    host: string[]
    port: number[]
    path: string | false
    target_session_attrs: string | null
  }
  return {
    addresses: path ? [{ path }] : host.map((name, i) => ({ host: name, port: port[i] ?? port[0]! })),
    role: ROLES[target ?? ''] ?? 'any',
  }
}

/** Whether `parseServers` understands a URL, and each port in it is one. */
export const isDatabaseUrl = (url: string): boolean => {
  try {
    const { addresses } = parseServers(url)
    return addresses.every((at) => 'path' in at || (at.port > 0 && at.port <= 65_535))
  } catch {
    return false
  }
}

/** Returns the URL without `target_session_attrs`: postgres.js takes a standby for `read-write`. */
export const withoutRole = (url: string): string =>
  url.replace(/([?&])target_session_attrs=[^&]*(&|$)/, (_, before: string, after: string) =>
    after ? before : '',
  )

/** As postgres.js understands it, which then checks each session. */
export const toRoleOption = (role: Role): { target_session_attrs?: Role } =>
  role === 'any' ? {} : { target_session_attrs: role }

/** Begins to connect. */
export const connectTo = (address: Address): Socket => {
  const socket = connect(address)
  // postgres.js reads the host for the name in the certificate.
  if ('host' in address) Object.assign(socket, { host: address.host, port: address.port })
  return socket
}

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
