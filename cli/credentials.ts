import { redactApiKeys } from '../catalog/redact.ts'
import {
  credentialName,
  type Credentials,
  credentialsPath,
  type Env,
  type Profile,
  profileNameOf,
  readCredentials,
  type Warn,
  writeCredentials,
} from './credentials-file.ts'
import { cliError, isCliError, usageError } from './error.ts'
import { openKeychainEntry } from './keychain.ts'

/** Where a key was stored; `none` with the reason when it could not be stored. */
export type StoreResult = {
  store: 'keychain' | 'file' | 'none'
  profile?: string
  isDefault?: boolean
  path?: string
  reason?: string
}

/** The default address of servers. */
const DEFAULT_URL = 'http://127.0.0.1:8787'

/** Where the interfaces are below the base URL: their addresses are at hand, and are pasted for it. */
const INTERFACE_PATH = /\/(?:v1(?:\/ops)?|mcp)$/

/**
 * Parses a base URL; drops trailing slashes and the path of an interface. Throws a usage error when it is not
 * http(s), or holds a user, a password or a query, which it does not quote: they may be secret.
 */
const parseBaseUrl = (text: string): string => {
  const url = URL.parse(text)
  if (url && (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== ''))
    throw usageError(
      'The URL of the server holds a user, a password, a query or a fragment.',
      '--url',
      `Give the address alone, such as ${DEFAULT_URL}; the key goes to wcrm login or WCRM_API_KEY.`,
    )
  if (!url || !/^https?:$/.test(url.protocol))
    throw usageError(
      `${/[@?#]/.test(text) ? 'The address of the server' : `"${redactApiKeys(text)}"`} is not an http(s) URL.`,
      '--url',
      `For example ${DEFAULT_URL}.`,
    )
  return url.href.replace(/\/+$/, '').replace(INTERFACE_PATH, '').replace(/\/+$/, '')
}

const PROFILE_NAME = /^[A-Za-z0-9][\w.:-]{0,63}$/

/** Checks the name of a profile. It is not quoted: somebody may have pasted the key. */
export const requireProfileName = (name: string): string => {
  if (PROFILE_NAME.test(name) && redactApiKeys(name) === name) return name
  throw usageError(
    'The name of a profile has up to 64 letters, digits and . _ : -, and is no API key.',
    '--profile',
    'For example --profile prod. The key itself goes to wcrm login, on standard input.',
  )
}

const unknownProfile = (name: string, { profiles }: Credentials): Error =>
  Object.assign(
    cliError(3, {
      type: 'about:blank',
      title: 'No such profile',
      status: 404,
      code: 'not_found',
      detail: `There is no profile ${name}.`,
    }),
    {
      hint:
        Object.keys(profiles).length > 0
          ? `There are: ${Object.keys(profiles).join(', ')}.   Store another: wcrm login --profile ${name}`
          : `Store it: wcrm login --profile ${name} --url URL`,
    },
  )

/** Stores a key under a name. It becomes the default if asked, or where there is none. Never throws. */
export const storeCredentials = async ({
  url,
  key,
  env,
  profile: given,
  by,
}: {
  url: string
  key: string
  env: Env
  /** Absent: the profile of this server, named after it. */
  profile?: string | undefined
  /** `serve`: it neither changes the default nor replaces a key that somebody stored. */
  by?: 'serve'
}): Promise<StoreResult> => {
  try {
    const base = parseBaseUrl(url)
    const stored = readCredentials(env)
    const own = given ?? profileNameOf(base)
    const isFree = (name: string): boolean =>
      !Object.hasOwn(stored.profiles, name) || stored.profiles[name]!.by === by
    const others = ['demo', ...Array.from({ length: 9 }, (_, i) => `demo-${i + 2}`)]
    const name = by === 'serve' ? ([own, ...others].find(isFree) ?? own) : own
    if (!isFree(name) && by === 'serve') return { store: 'none', reason: 'every name for it is taken' }
    const hasDefault = stored.default !== undefined && stored.profiles[stored.default] !== undefined
    const account = name === profileNameOf(base) ? credentialName(base) : `${credentialName(base)} ${name}`
    let reason: string | undefined
    try {
      await (await openKeychainEntry(account, env)).write(key)
    } catch (error) {
      reason = (error as Error).message
    }
    const store = reason === undefined ? 'keychain' : 'file'
    const profile: Profile = {
      url: base,
      store,
      account,
      ...(store === 'file' ? { key } : {}),
      ...(by ? { by } : {}),
    }
    const isDefault = by !== 'serve' || !hasDefault || stored.default === name
    writeCredentials(env, {
      ...(isDefault ? { default: name } : stored.default === undefined ? {} : { default: stored.default }),
      profiles: { ...stored.profiles, [name]: profile },
    })
    return {
      store,
      profile: name,
      isDefault,
      path: credentialsPath(env),
      ...(reason === undefined ? {} : { reason }),
    }
  } catch (error) {
    return { store: 'none', reason: (error as Error).message }
  }
}

/**
 * Deletes the profile. Returns its URL, undefined when there was none; `left`: why its key could not be deleted
 * from the keychain.
 */
export const removeCredentials = async (
  env: Env,
  givenUrl?: string,
): Promise<{ name: string; url: string; left?: string } | undefined> => {
  const stored = readCredentials(env)
  const { name } = chooseProfile(env, stored, givenUrl)
  const profile = name === undefined ? undefined : stored.profiles[name]
  if (name === undefined || !profile) return undefined
  let left: string | undefined
  if (profile.store === 'keychain')
    try {
      await (await openKeychainEntry(profile.account, env)).remove()
    } catch (error) {
      left = (error as Error).message
    }
  const { [name]: _removed, ...profiles } = stored.profiles
  const kept = stored.default !== undefined && stored.default !== name ? { default: stored.default } : {}
  writeCredentials(env, { ...kept, profiles })
  return { name, url: profile.url, ...(left === undefined ? {} : { left }) }
}

/** Makes a profile the default. Throws an error with the names for an unknown one. */
export const switchProfile = (env: Env, name: string, warn?: Warn): Profile => {
  const stored = readCredentials(env, warn)
  const profile = Object.hasOwn(stored.profiles, name) ? stored.profiles[name] : undefined
  if (!profile) throw unknownProfile(requireProfileName(name), stored)
  writeCredentials(env, { ...stored, default: name })
  return profile
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

type Choice = {
  readonly url: string
  readonly name: string | undefined
  /** What chose the profile. */
  readonly by: 'WCRM_PROFILE' | 'default' | 'url' | undefined
}

/** Says which server is meant, and which profile: the named one, the default one, or the only one of the server. */
const chooseProfile = (env: Env, stored: Credentials, givenUrl: string | undefined): Choice => {
  const asked = givenUrl ?? (env['WCRM_URL'] || undefined)
  const url = asked === undefined ? undefined : parseBaseUrl(asked)
  const isOf = (name: string): boolean =>
    url === undefined || credentialName(stored.profiles[name]!.url) === credentialName(url)
  const named = env['WCRM_PROFILE'] || undefined
  if (named !== undefined) {
    requireProfileName(named)
    if (!Object.hasOwn(stored.profiles, named)) throw unknownProfile(named, stored)
    if (!isOf(named))
      throw usageError(
        `The profile ${named} is of ${stored.profiles[named]!.url}: its key is not sent to ${url}.`,
        '--profile',
        'Leave out the URL or the profile.',
      )
    return { url: url ?? stored.profiles[named]!.url, name: named, by: 'WCRM_PROFILE' }
  }
  const usual = stored.default
  if (usual !== undefined && Object.hasOwn(stored.profiles, usual) && isOf(usual))
    return { url: url ?? stored.profiles[usual]!.url, name: usual, by: 'default' }
  if (url === undefined) return chooseProfile(env, stored, DEFAULT_URL)
  const candidates = Object.keys(stored.profiles).filter(isOf)
  const name = candidates.length === 1 ? candidates[0] : candidates.find((n) => n === profileNameOf(url))
  if (name === undefined && candidates.length > 1)
    throw usageError(
      `There are several keys of ${url}: ${candidates.join(', ')}.`,
      '--profile',
      `Name one: --profile ${candidates[0]}, or wcrm switch ${candidates[0]}.`,
    )
  return { url, name, by: name === undefined ? undefined : 'url' }
}

const readKeychainKey = async (name: string, { account }: Profile, env: Env): Promise<string> => {
  const unavailable = (detail: string, hint: string): Error =>
    Object.assign(
      cliError(4, { type: 'about:blank', title: 'Keychain', status: 401, code: 'keychain', detail }),
      { hint },
    )
  let key: string | undefined | null
  try {
    key = await (await openKeychainEntry(account, env)).read()
  } catch (error) {
    throw unavailable(
      `The key of profile ${name} is in the keychain, which cannot be read: ` +
        `${redactApiKeys((error as Error).message)}.`,
      'Unlock the keychain, or set WCRM_API_KEY, or store the key in a file: ' +
        `WCRM_KEYCHAIN=off wcrm login --profile ${name}`,
    )
  }
  if (key) return key
  throw unavailable(
    `The key of profile ${name} is no longer in the keychain.`,
    `Store it again: wcrm login --profile ${name}`,
  )
}

const isLoopback = (url: string): boolean =>
  /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)

/** Warns of a key that everybody on the way could read. */
const warnOfPlainHttp = (url: string, warn: Warn | undefined): void => {
  if (url.startsWith('http:') && !isLoopback(url))
    warn?.(
      `Warning: ${url} is not encrypted: others on the network can read the key and the data. Use https.\n`,
    )
}

export type LoadedCredentials = {
  readonly url: string
  readonly key: string | undefined
  readonly profile: string | undefined
  readonly chosenBy: Choice['by']
  readonly source: 'WCRM_API_KEY' | 'keychain' | 'file' | undefined
}

/** The file when the key comes from the environment: a broken one does not matter where the URL is known too. */
const readWhatIsNeeded = (env: Env, givenUrl: string | undefined, warn: Warn | undefined): Credentials => {
  try {
    return readCredentials(env, warn)
  } catch (error) {
    if (env['WCRM_API_KEY'] && (givenUrl ?? env['WCRM_URL'])) return { profiles: {} }
    throw error
  }
}

/**
 * Returns the server and the key to use: of `WCRM_API_KEY`, else of a profile. A stored key is sent only to the
 * server that it was stored for. Throws when the file is broken, when the profile is unknown or of another server,
 * and when the keychain that has its key cannot be read.
 */
export const loadCredentials = async (
  env: Env,
  givenUrl?: string,
  warn?: Warn,
): Promise<LoadedCredentials> => {
  const stored = readWhatIsNeeded(env, givenUrl, warn)
  const given = env['WCRM_API_KEY']
  if (given) {
    // A named profile still says where the server is.
    const named = env['WCRM_PROFILE'] && !givenUrl && !env['WCRM_URL'] ? env : { ...env, WCRM_PROFILE: '' }
    const url =
      (givenUrl ?? (env['WCRM_URL'] || undefined)) === undefined
        ? chooseProfile(named, stored, undefined).url
        : parseBaseUrl((givenUrl ?? env['WCRM_URL'])!)
    const key = requireHeaderText(given.trim(), 'WCRM_API_KEY')
    warnOfPlainHttp(url, warn)
    return { url, key, profile: undefined, chosenBy: undefined, source: 'WCRM_API_KEY' }
  }
  const { url, name, by } = chooseProfile(env, stored, givenUrl)
  const profile = name === undefined ? undefined : stored.profiles[name]
  if (name === undefined || !profile)
    return { url, key: undefined, profile: undefined, chosenBy: undefined, source: undefined }
  const key = profile.store === 'keychain' ? await readKeychainKey(name, profile, env) : profile.key
  if (key !== undefined) warnOfPlainHttp(url, warn)
  return { url, key, profile: name, chosenBy: by, source: profile.store }
}

/** Returns the URL at which to log in: as given, or that of a profile of this name, or the default one. */
export const resolveLoginUrl = (env: Env, givenUrl: string | undefined, warn?: Warn): string => {
  const name = env['WCRM_PROFILE'] ? requireProfileName(env['WCRM_PROFILE']) : undefined
  const { profiles, default: usual } = readCredentials(env, warn)
  const asked = givenUrl ?? (env['WCRM_URL'] || undefined)
  const known = name === undefined ? usual : name
  const url = parseBaseUrl(
    asked ??
      (known !== undefined && Object.hasOwn(profiles, known) ? profiles[known]!.url : undefined) ??
      DEFAULT_URL,
  )
  warnOfPlainHttp(url, warn)
  return url
}

/** Says where a key came from, in words. */
export const describeSource = ({ source, profile }: LoadedCredentials, env: Env): string => {
  if (source === 'WCRM_API_KEY') return 'WCRM_API_KEY'
  const place = source === 'keychain' ? 'the keychain' : `the file ${credentialsPath(env)}`
  return `${place}, profile ${profile}`
}

/** True for an error that says why a stored key cannot be used. */
export const isCredentialsError = (error: unknown): boolean =>
  isCliError(error) && ['keychain', 'credentials_file'].includes(error.problem.code)
