import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Env } from '../credentials-file.ts'
import { writePrivateFile } from '../files.ts'

/** A row of a list: its id, its names, and what tells it apart. */
export type NamedRow = readonly [id: string, names: readonly string[], about: string]

/** Rows that the server answered at a time. `whole`: there are no others with this text. */
export type CachedRows = { readonly at: number; readonly whole: boolean; readonly rows: readonly NamedRow[] }

/** By operation and text, what the server answered to one key. */
export type NameCache = Readonly<Record<string, CachedRows>>

const MAX_LISTS = 40
const MAX_AGE_MS = 24 * 3_600_000

const cacheFolder = (env: Env): string =>
  join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'wcrm', 'completion')

/** The file of one key of one server under one profile: no other key's answers are in it. */
export const cachePath = (env: Env, parts: readonly (string | undefined)[]): string => {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  return join(cacheFolder(env), `${hash.slice(0, 32)}.json`)
}

/** Reads what was answered within a day; nothing where there is no file, or a broken one. */
export const readNameCache = (path: string): NameCache => {
  try {
    const entries = Object.entries(JSON.parse(readFileSync(path, 'utf8')) as NameCache)
    const now = Date.now()
    return Object.fromEntries(
      entries.filter(([, { at, rows }]) => at <= now && at > now - MAX_AGE_MS && Array.isArray(rows)),
    )
  } catch {
    return {}
  }
}

/** Keeps the latest lists, in a file that only its owner can read, and removes the files of unused keys. */
export const writeNameCache = (path: string, cache: NameCache): void => {
  const entries = Object.entries(cache).toSorted(([, a], [, b]) => b.at - a.at)
  writePrivateFile(path, JSON.stringify(Object.fromEntries(entries.slice(0, MAX_LISTS))))
  const folder = join(path, '..')
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    if (statSync(file).mtimeMs < Date.now() - MAX_AGE_MS) rmSync(file, { force: true })
  }
}

/** Deletes all names that were kept for completion. Never throws. */
export const clearNameCaches = (env: Env): void => {
  try {
    rmSync(cacheFolder(env), { recursive: true, force: true })
  } catch {
    /* They are removed after a day. */
  }
}

const isRecent = (path: string, ms: number): boolean => {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats !== undefined && stats.mtimeMs > Date.now() - ms
}

const LOCKED_MS = 60_000
const lockedPath = (env: Env): string => join(cacheFolder(env), 'keychain-locked')

/** True when a keychain could not be read a moment ago: reading it may ask its owner each time. */
export const isKeychainLocked = (env: Env): boolean => isRecent(lockedPath(env), LOCKED_MS)

export const noteLockedKeychain = (env: Env): void => writePrivateFile(lockedPath(env), '')

/** Returns true once in so many milliseconds. */
export const isFirstIn = (env: Env, ms: number): boolean => {
  const path = join(cacheFolder(env), 'asked-later')
  if (isRecent(path, ms)) return false
  writePrivateFile(path, '')
  return true
}
