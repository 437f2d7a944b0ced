import { readFileSync } from 'node:fs'
import { type ConnectionOptions, createSecureContext } from 'node:tls'
import type { TlsSettings } from './database-url.ts'
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
  const { mode, rootFile } = settings
  const isVerified = !UNVERIFIED.has(mode) || (rootFile !== undefined && UNNAMED.has(mode))
  const isNamed = rootFile === undefined || !UNNAMED.has(mode)
  const identity: ConnectionOptions = {
    rejectUnauthorized: isVerified,
    ...(isVerified && rootFile !== undefined ? { ca: readNamed('sslrootcert', rootFile) } : {}),
    ...(isNamed ? {} : { checkServerIdentity: () => undefined }),
    ...readClientCertificate(settings),
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

const readClientCertificate = ({
  certificateFile: file,
  keyFile,
  keyPassword: password,
}: TlsSettings): ConnectionOptions => {
  if (file === undefined && keyFile === undefined) return {}
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
