/** PostgreSQL's code. */
const DISK_FULL = '53100'

const DATABASE_SETTING = '--database-url (WCRM_DATABASE_URL)'
const NAME_CLIENT_CERTIFICATE = `name one that it trusts, and its key, by sslcert and sslkey in ${DATABASE_SETTING}`
const CHECK_URL = `check ${DATABASE_SETTING}`

/** Why a connection to the database failed, by codes of Node and of storage/. */
const CONNECTION_FAILURES: readonly { codes: readonly string[]; reason: string }[] = [
  { codes: ['ECONNREFUSED', 'ENOENT'], reason: 'nothing listens at its address' },
  { codes: ['ENOTFOUND', 'EAI_AGAIN'], reason: 'its host name has no address here' },
  { codes: ['CONNECT_TIMEOUT', 'ETIMEDOUT', 'RESPONSE_TIMEOUT', 'ACQUIRE_TIMEOUT'], reason: 'no answer' },
  {
    codes: ['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'EADDRNOTAVAIL', 'EACCES'],
    reason: 'its address cannot be reached',
  },
  {
    codes: ['ECONNRESET', 'EPIPE', 'CONNECTION_CLOSED', 'CONNECTION_DESTROYED'],
    reason: 'the connection was closed',
  },
  { codes: ['NO_SERVER'], reason: 'none of its addresses answers as the server that is asked for' },
]

/** Codes of PostgreSQL, whose message says which user or database is meant, and never a password. */
const REFUSALS: Readonly<Record<string, string>> = {
  '28P01': `check the user and the password in ${DATABASE_SETTING}`,
  '28000': `check the user in ${DATABASE_SETTING}, and pg_hba.conf`,
  '3D000': `create it, or check its name in ${DATABASE_SETTING}`,
  '53300': 'raise its max_connections, or lower WCRM_DATABASE_CONNECTIONS',
  '57P03': `try again in a moment, or ${CHECK_URL}`,
}

/** Codes of PostgreSQL for a database that a server cannot work in. */
const UNFIT: Readonly<Record<string, string>> = {
  '42501': `let the user in ${DATABASE_SETTING} own the database, or grant it CREATE on that and its schema`,
  '25006': `name a primary server in ${DATABASE_SETTING}; default_transaction_read_only must be off`,
  '22P05': 'create the database with encoding UTF8',
  '55P03': 'wait until what locks its tables has ended, such as wcrm admin move, then try again',
  '42704': 'the schema of the extensions pg_trgm and btree_gin must be in the search_path of the database',
}

/** The file system has such codes too. */
const SOCKET_CALLS = new Set(['connect', 'getaddrinfo'])
const SHARED_CODES = new Set(['ENOENT', 'EACCES'])

/**
 * Explains why the database cannot be connected to, or has no space, in one line that names the setting; undefined
 * for other errors.
 */
export const describeDatabaseError = (error: unknown): string | undefined => {
  const { code, message = '', syscall } = (error ?? {}) as Partial<NodeJS.ErrnoException>
  if (code === undefined) return undefined
  if (code === DISK_FULL || code === 'ENOSPC')
    return 'the disk of the database is full; free some space on it, then try again'
  const say = (reason: string, fix: string) => `cannot connect to the database: ${reason} (${code}); ${fix}`
  const [, parameter] = /^unrecognized configuration parameter "([^"]*)"/.exec(message) ?? []
  if (parameter !== undefined)
    return say(
      `it knows no parameter ${parameter}`,
      `remove ${parameter} from the URL in ${DATABASE_SETTING}`,
    )
  if (code === 'UNUSABLE_TLS_FILE') return `cannot connect to the database: ${message}; ${CHECK_URL}`
  if (code === '28000' && message.includes('client certificate')) return say(message, NAME_CLIENT_CERTIFICATE)
  if (/_ALERT_/.test(code))
    return say('it refuses the certificate of sslcert, or that there is none', NAME_CLIENT_CERTIFICATE)
  if (code === 'NO_TLS' || /^[^\n]*before secure TLS connection/.test(message))
    return say('it speaks no TLS', `turn that on at its server, or check sslmode in ${DATABASE_SETTING}`)
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code))
    return say(
      'its certificate is not trusted here',
      `name its authority by sslrootcert or NODE_EXTRA_CA_CERTS, or check the host and sslmode in ${DATABASE_SETTING}`,
    )
  if (Object.hasOwn(UNFIT, code)) return `cannot use the database: ${message} (${code}); ${UNFIT[code]!}`
  if (Object.hasOwn(REFUSALS, code)) return say(message, REFUSALS[code]!)
  if (SHARED_CODES.has(code) && !SOCKET_CALLS.has(syscall ?? '')) return undefined
  const failure = CONNECTION_FAILURES.find(({ codes }) => codes.includes(code))
  return failure && say(failure.reason, CHECK_URL)
}

/** As commands with verbs print it. */
export const toSentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`

/** What a command calls the settings of a port that it listens on, and what to do when the port is in use. */
export type PortSettings = { host: string; port: string; whenTaken: string }

/** An error whose message explains why a port cannot be listened on, in one line that names the setting. */
export const listenError = (
  cause: unknown,
  { host, port }: { host: string; port: number },
  settings: PortSettings,
): Error => {
  const { code, message } = cause as NodeJS.ErrnoException
  const describe = (): string => {
    switch (code) {
      case 'EADDRINUSE':
        return `port ${port} is in use; ${settings.whenTaken}`
      case 'EACCES':
        return `this user may not listen on port ${port}; use another ${settings.port}`
      case 'EADDRNOTAVAIL':
        return `this machine does not have the address ${host}; check ${settings.host}`
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
        return `the host ${host} has no address here (${code}); check ${settings.host}`
      default: {
        const names = [...new Set([settings.host, settings.port])].join(' and ')
        return `cannot listen on ${host}, port ${port} (${code ?? message}); check ${names}`
      }
    }
  }
  return new Error(describe(), { cause })
}
