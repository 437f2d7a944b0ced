import { SESSION_DEFAULTS } from './session-settings.ts'

/** What a URL says for the client alone, as libpq understands it, and what is left of it for postgres.js. */
export type ReadUrl = {
  /** With hosts where postgres.js reads them, and without what it would send to the server. */
  url: string
  /** The path of a unix socket. */
  path?: string
  /** The file of the certificates to trust, or `system` for those of Node. */
  rootCertificates?: string
  clientCertificate?: ClientCertificate
}

/** By what the service proves who it is: files of PEM, and the password of the key. */
export type ClientCertificate = { file?: string; keyFile?: string; password?: string }

const PARTS = /^([^:]*:\/\/)([^/?]*@)?([^/?]*)([^?]*)(?:\?(.*))?$/s

/** A name, a path or, in brackets, an address of IPv6, and a port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/

const DEFAULT_PORT = '5432'

/** Values of `sslmode` that do without TLS where there is none. */
const OPTIONAL_TLS = new Set(['allow', 'prefer'])

/**
 * What the service sets for its own sessions. postgres.js gives a URL the last word, but results are read by these,
 * and a restore finds the servers that run by the name of their sessions.
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

/** Writes hosts and ports as an authority has them. */
const toAuthority = (hosts: string, ports: string): string => {
  const portOf = ports.split(',')
  return hosts
    .split(',')
    .map((text, i) => {
      const isBareIpv6 = !text.startsWith('[') && text.split(':').length > 2
      const [, host = ''] = HOST.exec(isBareIpv6 ? `[${text}]` : text) ?? []
      const port = portOf[i] ?? portOf[0]
      return port ? `${host}:${port}` : host
    })
    .join(',')
}

/** Reads a URL; hosts, ports and the user may stand among its parameters, and a host may be the folder of a socket. */
export const readUrl = (text: string): ReadUrl => {
  const [, scheme = '', credentials = '', authority = '', database = '', query = ''] = PARTS.exec(text) ?? []
  const parameters = new URLSearchParams(query)
  const take = (name: string): string | null => {
    const value = parameters.get(name)
    parameters.delete(name)
    return value
  }
  const [host, port, rootCertificates] = [take('host'), take('port'), take('sslrootcert')]
  const [clientFile, keyFile, password] = [take('sslcert'), take('sslkey'), take('sslpassword')]
  const own = [...parameters.keys()].filter((name) => OWN_PARAMETERS.has(name.toLowerCase()))
  for (const name of own) parameters.delete(name)
  if (rootCertificates === 'system' || (rootCertificates && !parameters.has('sslmode')))
    parameters.set('sslmode', 'verify-full')
  // Of a connection without TLS nobody would see the certificate.
  else if (clientFile && OPTIONAL_TLS.has(parameters.get('sslmode') ?? 'prefer'))
    parameters.set('sslmode', 'require')
  const written = /^%2f/i.test(authority) ? decodeURIComponent(authority) : authority
  const [, writtenHost = '', writtenPort] = HOST.exec(written) ?? []
  const folder = [host, writtenHost].find((one) => one?.startsWith('/'))
  const hosts = (): string => {
    if (folder) return 'localhost'
    return host || port ? toAuthority(host || authority, port ?? writtenPort ?? '') : authority
  }
  const rest = parameters.toString()
  return {
    url: `${scheme}${credentials}${hosts()}${database}${rest && `?${rest}`}`,
    ...(folder ? { path: `${folder}/.s.PGSQL.${port ?? (writtenPort || DEFAULT_PORT)}` } : {}),
    ...(rootCertificates ? { rootCertificates } : {}),
    ...(clientFile || keyFile
      ? {
          clientCertificate: {
            ...(clientFile ? { file: clientFile } : {}),
            ...(keyFile ? { keyFile } : {}),
            ...(password ? { password } : {}),
          },
        }
      : {}),
  }
}
