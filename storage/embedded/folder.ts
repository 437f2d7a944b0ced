import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createConnection } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { codedError } from '../client/error-codes.ts'
import { createDiskSpace, type DiskSpace } from './disk-space.ts'
import { lockFile } from './folder-lock.ts'
import { makeDataFolderPrivate, type Warn } from './private-files.ts'

/**
 * One process owns a data folder: the one that holds the lock on the file `lock` in it
 * (docs/decisions/0016). `owner.json` only tells others about it: which process on which host, and the socket
 * through which they reach the database, unless it is `exclusive`. Where nobody holds the lock it says nothing: it
 * was left behind by a crash, or the folder is a copy. Unix socket paths must be short, so the socket lives in the
 * run-time or temp folder.
 */
type FolderOwner = { pid: number; host?: string; socket: string; exclusive: boolean }

const ownerFile = (folder: string): string => join(folder, 'owner.json')

const readOwner = (folder: string): FolderOwner | undefined => {
  try {
    return JSON.parse(readFileSync(ownerFile(folder), 'utf8')) as FolderOwner
  } catch {
    return undefined
  }
}

const CONNECT_TIMEOUT_MS = 2_000

/** True when the owner accepts connections on its socket; false for a file left behind by a crash. */
const isAlive = (owner: FolderOwner): Promise<boolean> =>
  new Promise((resolveAlive) => {
    const socket = createConnection(owner.socket)
    const finish = (alive: boolean) => {
      socket.destroy()
      resolveAlive(alive)
    }
    socket.once('connect', () => finish(true))
    socket.once('error', () => finish(false))
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => finish(false))
  })

/** The code of the error when a folder has another owner. */
export const FOLDER_IN_USE = 'FOLDER_IN_USE'

const inUseError = (folder: string): Error => {
  const owner = readOwner(folder)
  const where = owner?.host === undefined || owner.host === hostname() ? '' : ` on ${owner.host}`
  const who = owner ? `process ${owner.pid}${where}` : 'another process'
  return codedError(
    FOLDER_IN_USE,
    `the data folder ${folder} is in use by ${who}; stop it first, or use another --data folder`,
  )
}

/** Returns the socket of the folder's owner. Throws when it shares its database with nobody, or not from here. */
export const findOwnerSocket = async (folder: string): Promise<string> => {
  const owner = readOwner(folder)
  if (!owner || owner.exclusive || !(await isAlive(owner))) throw inUseError(folder)
  return owner.socket
}

const removeSocket = ({ socket }: FolderOwner): void => {
  try {
    rmSync(socket, { force: true })
    rmdirSync(dirname(socket))
  } catch {
    /* Another container's temp folder, or one that was emptied. */
  }
}

type OwnedFolder = { folder: string; socket: string; space: DiskSpace; release: () => void }

export type OwnerOptions = {
  /** Others use the database through its owner, if there is one; otherwise that is an error. */
  attach?: boolean | undefined
  /** As the owner, this process shares the database with nobody. */
  exclusive?: boolean | undefined
  warn: Warn
}

/** Makes this process the owner of the folder, which becomes private. Returns undefined to use it through its owner. */
export const acquireFolder = async (
  path: string,
  { attach = false, exclusive = false, warn }: OwnerOptions,
): Promise<OwnedFolder | undefined> => {
  const folder = resolve(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const unlock = lockFile(join(folder, 'lock'))
  if (!unlock && attach) return undefined
  if (!unlock) throw inUseError(folder)
  try {
    const previous = readOwner(folder)
    rmSync(ownerFile(folder), { force: true })
    // That of a copy may be in use, by the owner of the original.
    if (previous && !(await isAlive(previous))) removeSocket(previous)
    makeDataFolderPrivate(folder, warn)
    const space = createDiskSpace(folder)
    space.release()
    const owner = createOwner(exclusive)
    writeOwner(folder, owner)
    return {
      folder,
      socket: owner.socket,
      space,
      release: () => {
        rmSync(ownerFile(folder), { force: true })
        removeSocket(owner)
        unlock()
      },
    }
  } catch (error) {
    unlock()
    throw error
  }
}

const createOwner = (exclusive: boolean): FolderOwner => {
  const runtime = mkdtempSync(join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), 'wcrm-'))
  chmodSync(runtime, 0o700)
  return { pid: process.pid, host: hostname(), socket: join(runtime, 'db.sock'), exclusive }
}

const writeOwner = (folder: string, owner: FolderOwner): void => {
  const partial = join(folder, 'owner.partial.json')
  writeFileSync(partial, JSON.stringify(owner), { mode: 0o600 })
  renameSync(partial, ownerFile(folder))
}
