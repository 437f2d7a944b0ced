import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { isObject } from '../catalog/values.ts'
import { cliError } from './error.ts'
import { makePrivate, writePrivateFile } from './files.ts'

export type Env = Readonly<Record<string, string | undefined>>
export type Warn = (message: string) => void

/**
 * A key of a server under a name. `account`: its name in the keychain. `by`: `serve` when a server that created
 * its demo workspace stored it; such a key a later demo workspace may replace.
 */
export type Profile = {
  readonly url: string
  readonly store: 'keychain' | 'file'
  readonly account: string
  readonly key?: string
  readonly by?: 'serve'
}

/** `default`: the name of the profile that is used when nothing else is said. */
export type Credentials = { readonly default?: string; readonly profiles: Readonly<Record<string, Profile>> }

/** The format before profiles: one key for each server. */
type OldCredentials = {
  url?: string
  logins?: Record<string, { store: 'keychain' | 'file'; key?: string }>
}

export const credentialsPath = (env: Env): string =>
  join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'wcrm', 'credentials.json')

/** Returns the name under which a server's key is stored: all names of this machine count as one. */
export const credentialName = (base: string): string =>
  base.replace(/^(https?:\/\/)(localhost|\[::1\])(?=[:/]|$)/, '$1127.0.0.1')

/** The name of a profile that was not given one: where its server is. */
export const profileNameOf = (url: string): string =>
  credentialName(url)
    .replace(/^https?:\/\//, '')
    .replaceAll(/[^\w.:-]+/g, '-')
    .slice(0, 64)

/** Gives each key of the old format a profile; it stays where it is in the keychain. */
const upgrade = ({ url, logins = {} }: OldCredentials): Credentials => {
  const profiles: Record<string, Profile> = {}
  for (const [account, { store, key }] of Object.entries(logins)) {
    const base = profileNameOf(account)
    const name = Object.hasOwn(profiles, base) ? `${base}-${Object.keys(profiles).length}` : base
    const isDefault = url !== undefined && credentialName(url) === account
    profiles[name] = { url: isDefault ? url : account, store, account, ...(key === undefined ? {} : { key }) }
  }
  const [chosen] = Object.entries(profiles).find(([, profile]) => profile.url === url) ?? []
  return { ...(chosen === undefined ? {} : { default: chosen }), profiles }
}

const isProfile = (value: unknown): boolean =>
  isObject(value) && typeof value['url'] === 'string' && ['keychain', 'file'].includes(String(value['store']))

/** Parses the text of the file; undefined when it is not one. Never quotes the text: it holds keys. */
const parseCredentials = (text: string): Credentials | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value)) return undefined
  const { profiles, logins } = value
  if (profiles === undefined && (logins === undefined || isObject(logins)))
    return upgrade(value as OldCredentials)
  if (!isObject(profiles) || !Object.values(profiles).every(isProfile)) return undefined
  return value as Credentials
}

const fileError = (detail: string, hint: string): Error =>
  Object.assign(
    cliError(1, { type: 'about:blank', title: 'Credentials not readable', code: 'credentials_file', detail }),
    { hint },
  )

/** Makes the file and its folder their owner's alone, and says so when others could read the file. */
const protect = (path: string, warn: Warn): void => {
  try {
    makePrivate(dirname(path))
    if (makePrivate(path))
      warn(
        `Warning: ${path} could be read by other users of this machine; its permissions were corrected. ` +
          'Replace the key if somebody may have read it.\n',
      )
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return
    warn(
      `Warning: ${path} can be read by other users of this machine, and that cannot be changed (${code}). ` +
        `Its owner can: chmod 600 ${path}\n`,
    )
  }
}

/** Reads the profiles; none when there is no file. Throws an error with the fix when it is broken or not readable. */
export const readCredentials = (env: Env, warn: Warn = () => {}): Credentials => {
  const path = credentialsPath(env)
  if (!existsSync(path)) return { profiles: {} }
  protect(path, warn)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw fileError(
      `${path} cannot be read (${code}).`,
      `Make it yours (chown, chmod 600), or set WCRM_API_KEY and WCRM_URL.`,
    )
  }
  const stored = parseCredentials(text)
  if (stored) return stored
  throw fileError(
    `${path} is damaged: it is not in the format of wcrm login.`,
    `Repair it, or move it away and store the keys again: mv ${path} ${path}.broken && wcrm login`,
  )
}

export const writeCredentials = (env: Env, stored: Credentials): void =>
  writePrivateFile(credentialsPath(env), `${JSON.stringify(stored, undefined, 2)}\n`)
