import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** Says what other users of the machine could read. */
export type Warn = (message: string) => void

const OTHERS = 0o077
const STICKY = 0o1000

/** The entries of a data folder that are ours. */
const OWN_ENTRY = /^(pgdata|media|secret|owner|lock|reserve)/

const isOpenToOthers = (path: string): boolean => {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  // What a link points to is not ours to change.
  return stats !== undefined && !stats.isSymbolicLink() && (stats.mode & OTHERS) !== 0
}

/** Leaves a file or a folder to its owner alone. Returns false when it belongs to another user. */
const restrict = (path: string): boolean => {
  try {
    chmodSync(path, lstatSync(path).isDirectory() ? 0o700 : 0o600)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'EROFS' && code !== 'ENOENT') throw error
    return false
  }
}

/** Makes everything in a folder private. */
export const makeContentPrivate = (folder: string): void => {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name)
    if (isOpenToOthers(path)) restrict(path)
  }
}

const describeExposed = (path: string): string =>
  `${path} was open to other users of this machine; now it is its owner's alone`

const describeOpen = (path: string): string =>
  `${path} is open to other users of this machine, and is not ours to close; use a folder of its own`

/** Makes a file private that may exist. */
const makeFilePrivate = (path: string, warn: Warn): void => {
  if (isOpenToOthers(path)) warn(restrict(path) ? describeExposed(path) : describeOpen(path))
}

/**
 * Creates a private folder, or makes an existing one private with all that is in it. One that others could
 * not enter is not searched: it may hold millions of files.
 */
export const makeFolderPrivate = (path: string, warn: Warn): void => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const folder = realpathSync(path)
  if (!isOpenToOthers(folder)) return
  warn(restrict(folder) ? describeExposed(folder) : describeOpen(folder))
  makeContentPrivate(folder)
}

/**
 * The same for a data folder. What is in it and not ours stays as it is, and then the folder does too: it may
 * be the root of a volume, or somebody's home.
 */
export const makeDataFolderPrivate = (path: string, warn: Warn): void => {
  const folder = realpathSync(path)
  const names = readdirSync(folder)
  if (isOpenToOthers(folder)) {
    const isOurs = (lstatSync(folder).mode & STICKY) === 0 && names.every((name) => OWN_ENTRY.test(name))
    warn(isOurs && restrict(folder) ? describeExposed(folder) : describeOpen(folder))
  }
  for (const name of names.filter((entry) => OWN_ENTRY.test(entry))) {
    const entry = join(folder, name)
    if (lstatSync(entry).isDirectory()) makeFolderPrivate(entry, warn)
    else makeFilePrivate(entry, warn)
  }
}
