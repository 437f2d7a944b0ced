import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { usageError } from './error.ts'
import { makePrivate, writePrivateFile } from './files.ts'

type Env = Readonly<Record<string, string | undefined>>
type StoredLogin = { store: 'keychain' | 'file'; key?: string }
type StoredCredentials = { url?: string; logins: Record<string, StoredLogin> }

/** Where a key was stored; `none` with the reason when it could not be stored. */
export type StoreResult = { store: 'keychain' | 'file' | 'none'; path?: string; reason?: string }

const KEYCHAIN_TIMEOUT_MS = 30_000

/** The default address of servers. */
const DEFAULT_URL = 'http://127.0.0.1:8787'

/** Parses a base URL; drops trailing slashes. Throws a usage error when it is not http(s). */
const parseBaseUrl = (text: string): string => {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw usageError(`"${text}" is not an http(s) URL.`, '--url', `For example ${DEFAULT_URL}.`)
  return url.href.replace(/\/+$/, '')
}

/** Returns the name under which a server's key is stored: all names of this machine count as one. */
const credentialName = (base: string): string =>
  base.replace(/^(https?:\/\/)(localhost|\[::1\])(?=[:/]|$)/, '$1127.0.0.1')

export const credentialsPath = (env: Env): string =>
  join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'wcrm', 'credentials.json')

type Warn = (message: string) => void

/** Reads the file, which becomes its owner's alone. */
const readCredentialsFile = (env: Env, warn: Warn = () => {}): StoredCredentials => {
  try {
    const path = credentialsPath(env)
    makePrivate(dirname(path))
    if (makePrivate(path))
      warn(
        `Warning: ${path} could be read by other users of this machine; now it is yours alone. ` +
          'If somebody did, replace the key in it.\n',
      )
    const { url, logins } = JSON.parse(readFileSync(path, 'utf8')) as Partial<StoredCredentials>
    return { ...(url ? { url } : {}), logins: logins ?? {} }
  } catch {
    return { logins: {} }
  }
}

const writeCredentialsFile = (env: Env, stored: StoredCredentials): void =>
  writePrivateFile(credentialsPath(env), `${JSON.stringify(stored, undefined, 2)}\n`)

/**
 * Opens the keychain entry of a server; throws where there is no keychain. A locked keychain may prompt its
 * owner, for up to 30 seconds.
 */
const openKeychainEntry = async (url: string, env: Env) => {
  if (env['WCRM_KEYCHAIN'] === 'off') throw new Error('switched off by WCRM_KEYCHAIN')
  const { AsyncEntry } = await import('@napi-rs/keyring')
  // Unpinned, Linux falls back to the kernel's key ring, which forgets at logout.
  const entry = new AsyncEntry('wcrm', url, { linux: { store: 'secret-service' } })
  const signal = AbortSignal.timeout(KEYCHAIN_TIMEOUT_MS)
  return {
    read: () => entry.getPassword(signal),
    write: (key: string) => entry.setPassword(key, signal),
    remove: () => entry.deletePassword(signal),
  }
}

/** Stores the key of a server and makes that server the default. Never throws. */
export const storeCredentials = async ({
  url,
  key,
  env,
}: {
  url: string
  key: string
  env: Env
}): Promise<StoreResult> => {
  try {
    const base = parseBaseUrl(url)
    const name = credentialName(base)
    const stored = readCredentialsFile(env)
    let reason: string | undefined
    try {
      await (await openKeychainEntry(name, env)).write(key)
    } catch (error) {
      reason = (error as Error).message
    }
    const login: StoredLogin = reason === undefined ? { store: 'keychain' } : { store: 'file', key }
    writeCredentialsFile(env, { url: base, logins: { ...stored.logins, [name]: login } })
    return { store: login.store, path: credentialsPath(env), ...(reason === undefined ? {} : { reason }) }
  } catch (error) {
    return { store: 'none', reason: (error as Error).message }
  }
}

/** Deletes the stored key of a server; false when there was none. */
export const removeCredentials = async (url: string, env: Env): Promise<boolean> => {
  const stored = readCredentialsFile(env)
  const name = credentialName(parseBaseUrl(url))
  const login = stored.logins[name]
  if (!login) return false
  if (login.store === 'keychain') await (await openKeychainEntry(name, env)).remove()
  const { [name]: _removed, ...logins } = stored.logins
  writeCredentialsFile(env, {
    ...(stored.url && credentialName(stored.url) !== name ? { url: stored.url } : {}),
    logins,
  })
  return true
}

/**
 * Returns the key when a header can hold it. Throws a usage error when not: the error of `fetch` would quote
 * it.
 */
export const requireHeaderText = (key: string, source: string): string => {
  if (/^[\x21-\x7e]+$/.test(key)) return key
  throw usageError(
    `${source} has characters that no API key has, such as a space or a line break. Copy the key again.`,
  )
}

/** Returns the server and the key to use. A stored key is sent only to the server that it was stored for. */
export const loadCredentials = async (
  env: Env,
  givenUrl?: string,
  warn?: Warn,
): Promise<{ url: string; key: string | undefined }> => {
  const stored = readCredentialsFile(env, warn)
  const url = parseBaseUrl(givenUrl ?? (env['WCRM_URL'] || stored.url || DEFAULT_URL))
  if (env['WCRM_API_KEY']) return { url, key: requireHeaderText(env['WCRM_API_KEY'].trim(), 'WCRM_API_KEY') }
  const login = stored.logins[credentialName(url)]
  if (login?.store !== 'keychain') return { url, key: login?.key }
  return {
    url,
    key:
      (await openKeychainEntry(credentialName(url), env)
        .then((entry) => entry.read())
        .catch(() => undefined)) ?? undefined,
  }
}

/** Says where the key of a server comes from, in words; see `loadCredentials`. */
export const findKeySource = (env: Env, url: string): string => {
  if (env['WCRM_API_KEY']) return 'WCRM_API_KEY'
  const login = readCredentialsFile(env).logins[credentialName(url)]
  return login?.store === 'keychain' ? 'the keychain' : `the file ${credentialsPath(env)}`
}
