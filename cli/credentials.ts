import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { usage } from './fault.ts'
import { writePrivately } from './files.ts'

type Env = Readonly<Record<string, string | undefined>>
type Login = { store: 'keychain' | 'file'; key?: string }
type Kept = { url?: string; logins: Record<string, Login> }

/** Where a key was put; `none` with the reason when it could be put nowhere. */
export type Stored = { store: 'keychain' | 'file' | 'none'; path?: string; reason?: string }

/** The address that servers listen on unless told otherwise. */
const defaultUrl = 'http://127.0.0.1:8787'

/** A base URL without its last slash. */
const baseUrl = (text: string): string => {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw usage(`"${text}" is not the URL of a server.`, '--url', `For example ${defaultUrl}.`)
  return url.href.replace(/\/+$/, '')
}

/** The name under which a server's key is kept: the names of this machine count as one. */
const nameOf = (base: string): string =>
  base.replace(/^(https?:\/\/)(localhost|\[::1\])(?=[:/]|$)/, '$1127.0.0.1')

export const credentialsPath = (env: Env): string =>
  join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'wcrm', 'credentials.json')

const readKept = (env: Env): Kept => {
  try {
    const { url, logins } = JSON.parse(readFileSync(credentialsPath(env), 'utf8')) as Partial<Kept>
    return { ...(url ? { url } : {}), logins: logins ?? {} }
  } catch {
    return { logins: {} }
  }
}

const writeKept = (env: Env, kept: Kept): void =>
  writePrivately(credentialsPath(env), `${JSON.stringify(kept, undefined, 2)}\n`)

/**
 * The keychain's entry; throws where there is no keychain. A locked one may ask its owner, but not for
 * ever.
 */
const keychain = async (url: string, env: Env) => {
  if (env['WCRM_KEYCHAIN'] === 'off') throw new Error('switched off by WCRM_KEYCHAIN')
  const { AsyncEntry } = await import('@napi-rs/keyring')
  // Unpinned, Linux falls back to the kernel's key ring, which forgets at logout.
  const entry = new AsyncEntry('wcrm', url, { linux: { store: 'secret-service' } })
  const signal = AbortSignal.timeout(30_000)
  return {
    read: () => entry.getPassword(signal),
    write: (key: string) => entry.setPassword(key, signal),
    remove: () => entry.deletePassword(signal),
  }
}

/** Keeps the key of a server for the command line and makes that server the default one. Never throws. */
export const storeCredentials = async ({
  url,
  key,
  env,
}: {
  url: string
  key: string
  env: Env
}): Promise<Stored> => {
  try {
    const base = baseUrl(url)
    const name = nameOf(base)
    const kept = readKept(env)
    let reason: string | undefined
    try {
      await (await keychain(name, env)).write(key)
    } catch (error) {
      reason = (error as Error).message
    }
    const login: Login = reason === undefined ? { store: 'keychain' } : { store: 'file', key }
    writeKept(env, { url: base, logins: { ...kept.logins, [name]: login } })
    return { store: login.store, path: credentialsPath(env), ...(reason === undefined ? {} : { reason }) }
  } catch (error) {
    return { store: 'none', reason: (error as Error).message }
  }
}

/** Forgets the key of a server; false when none was kept. */
export const removeCredentials = async (url: string, env: Env): Promise<boolean> => {
  const kept = readKept(env)
  const name = nameOf(baseUrl(url))
  const login = kept.logins[name]
  if (!login) return false
  if (login.store === 'keychain') await (await keychain(name, env)).remove()
  const { [name]: _gone, ...logins } = kept.logins
  writeKept(env, { ...(kept.url && nameOf(kept.url) !== name ? { url: kept.url } : {}), logins })
  return true
}

/** The server and the key of a call. A kept key goes to the server it was kept for, and to no other. */
export const connection = async (
  env: Env,
  givenUrl?: string,
): Promise<{ url: string; key: string | undefined }> => {
  const kept = readKept(env)
  const url = baseUrl(givenUrl ?? (env['WCRM_URL'] || kept.url || defaultUrl))
  if (env['WCRM_API_KEY']) return { url, key: env['WCRM_API_KEY'].trim() }
  const login = kept.logins[nameOf(url)]
  if (login?.store !== 'keychain') return { url, key: login?.key }
  return {
    url,
    key:
      (await keychain(nameOf(url), env)
        .then((entry) => entry.read())
        .catch(() => undefined)) ?? undefined,
  }
}
