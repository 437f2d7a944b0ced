import postgres from 'postgres'
import { SESSION_DEFAULTS } from './session-settings.ts'

/** Where a server of a database listens. */
export type Address = { host: string; port: number } | { path: string }

/** Which of several servers a session is for, as postgres.js names them. */
type Role = 'any' | 'primary' | 'standby'

/** How a URL asks for TLS. */
export type TlsSettings = {
  /** A value of `sslmode`. */
  mode: string
  /** Whether TLS begins at once, without a question to the server. */
  isDirect: boolean
  /** The file of the certificates to trust; those that Node trusts when absent. */
  rootFile: string | undefined
  /** By what the service proves who it is: files of PEM, and the password of the key. */
  certificateFile: string | undefined
  keyFile: string | undefined
  keyPassword: string | undefined
}

/** What a URL says, as libpq understands it. */
export type Servers = {
  addresses: Address[]
  role: Role
  tls: TlsSettings | undefined
  /** The other parameters, which are sent to the server. */
  parameters: Record<string, string>
  /** What is left of it for postgres.js: the user and the database. */
  url: string
}

const PARTS = /^([^:]*:\/\/)([^/?]*@)?([^/?]*)([^?]*)(?:\?(.*))?$/s

/** A name, a path or, in brackets, an address of IPv6, and a port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/

const DEFAULT_PORT = '5432'

/** postgres.js takes a standby for `read-write`: it looks at what a server reports for its defaults alone. */
const ROLES: Readonly<Record<string, Role>> = {
  any: 'any',
  'read-write': 'primary',
  primary: 'primary',
  'read-only': 'standby',
  standby: 'standby',
}

/** Values of `sslmode` that do without TLS where there is none. */
const OPTIONAL_TLS = new Set(['allow', 'prefer'])

/**
 * What the service sets for its own sessions, whatever a URL says: results are read by these, and a restore finds the
 * servers that run by the name of their sessions.
 */
const OWN_PARAMETERS = new Set([
  'application_name',
  'client_encoding',
  'fallback_application_name',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
  'jit',
  'lock_timeout',
  'plan_cache_mode',
  'statement_timeout',
  'timezone',
  ...Object.keys(SESSION_DEFAULTS).map((name) => name.toLowerCase()),
])

const toAddress = (name: string, port: string): Address =>
  name.startsWith('/')
    ? { path: `${name}/.s.PGSQL.${port}` }
    : { host: name.replace(/^\[(.*)\]$/, '$1') || 'localhost', port: Number(port) }

/** Reads a URL; hosts, ports and the user may stand among its parameters, and a host may be the folder of a socket. */
export const parseServers = (text: string): Servers => {
  const [, scheme = '', credentials = '', authority = '', database = '', query = ''] = PARTS.exec(text) ?? []
  const parameters = new URLSearchParams(query)
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) || undefined
    parameters.delete(name)
    return value
  }
  const written = authority.split(',').map((one) => HOST.exec(decodeURIComponent(one)) ?? [])
  const names = take('host')?.split(',') ?? written.map(([, name = '']) => name)
  const ports = take('port')?.split(',') ?? written.map(([, , port]) => port)
  const role = ROLES[take('target_session_attrs') ?? 'any']
  if (!role) throw new Error('not a role of a server')
  return {
    addresses: names.map((name, i) => toAddress(name, ports[i] || ports[0] || DEFAULT_PORT)),
    role,
    tls: takeTls(take),
    parameters: Object.fromEntries(
      [...parameters].filter(([name]) => !OWN_PARAMETERS.has(name.toLowerCase())),
    ),
    url: `${scheme}${credentials}localhost${database}`,
  }
}

const takeTls = (take: (name: string) => string | undefined): TlsSettings | undefined => {
  const rootFile = take('sslrootcert')
  const settings = {
    isDirect: take('sslnegotiation') === 'direct',
    rootFile: rootFile === 'system' ? undefined : rootFile,
    certificateFile: take('sslcert'),
    keyFile: take('sslkey'),
    keyPassword: take('sslpassword'),
  }
  let mode = take('sslmode') ?? take('ssl')
  if (rootFile === 'system' || (rootFile && !mode)) mode = 'verify-full'
  // Of a connection without TLS nobody would see the certificate.
  else if (settings.certificateFile && OPTIONAL_TLS.has(mode ?? 'prefer')) mode = 'require'
  return !mode || mode === 'disable' || mode === 'false' ? undefined : { mode, ...settings }
}

/** Whether `parseServers` and postgres.js understand a URL, and each port in it is one. */
export const isDatabaseUrl = (text: string): boolean => {
  try {
    const { addresses, url } = parseServers(text)
    postgres(url, { max: 1 })
    return addresses.every((at) => 'path' in at || (at.port > 0 && at.port <= 65_535))
  } catch {
    return false
  }
}

/** Whether a URL names one server and not several. */
export const namesOneServer = (url: string): boolean => parseServers(url).addresses.length === 1
