import { chmodSync, mkdtempSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createDiskSpace, type DiskSpace } from './disk-space.ts'
import { lockFile } from './folder-lock.ts'
import { makeDataFolderPrivate, type Warn } from './private-files.ts'

/**
 * One process owns a data folder: the one that holds the lock on the file `lock` in it
 * (docs/decisions/0016). `owner.json` only tells others about it: which process on which host, and the socket
 * through which they reach the database. Unix socket paths must be short, so the socket lives in the run-time
 * or temp folder.
 */
type FolderOwner = { pid: number; host?: string; socket: string }

const ownerFile = (folder: string): string => join(folder, 'owner.json')

export const readOwner = (folder: string): FolderOwner | undefined => {
  try {
    return JSON.parse(readFileSync(ownerFile(folder), 'utf8')) as FolderOwner
  } catch {
    return undefined
  }
}

const CONNECT_TIMEOUT_MS = 2_000

/** True when the owner accepts connections on its socket; false for a file left behind by a crash. */
export const isAlive = (owner: FolderOwner): Promise<boolean> =>
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

const inUseError = (folder: string): Error => {
  const owner = readOwner(folder)
  const where = owner?.host === undefined || owner.host === hostname() ? '' : ` on ${owner.host}`
  const who = owner ? `process ${owner.pid}${where}` : 'another process'
  return new Error(
    `the data folder ${folder} is in use by ${who}; stop it first, or use another --data folder`,
  )
}

/** Removes the socket of an owner that was killed. */
const removeSocket = ({ socket }: FolderOwner): void => {
  try {
    rmSync(socket, { force: true })
    rmdirSync(dirname(socket))
  } catch {
    /* Another container's temp folder, or one that was emptied. */
  }
}

type OwnedFolder = { folder: string; socket: string; space: DiskSpace; release: () => void }

/** Makes this process the owner of the folder, which becomes private. Throws when it has an owner. */
export const acquireFolder = async (path: string, warn: Warn): Promise<OwnedFolder> => {
  const folder = resolve(path)
  makeDataFolderPrivate(folder, warn)
  const unlock = lockFile(join(folder, 'lock'))
  if (!unlock) throw inUseError(folder)
  try {
    const previous = readOwner(folder)
    // Versions before the lock told each other by their socket alone.
    if (previous && (await isAlive(previous))) throw inUseError(folder)
    if (previous) removeSocket(previous)
    const space = createDiskSpace(folder)
    space.release()
    const owner = createOwner()
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

const createOwner = (): FolderOwner => {
  const runtime = mkdtempSync(join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), 'wcrm-'))
  chmodSync(runtime, 0o700)
  return { pid: process.pid, host: hostname(), socket: join(runtime, 'db.sock') }
}

const writeOwner = (folder: string, owner: FolderOwner): void => {
  const partial = join(folder, 'owner.partial.json')
  writeFileSync(partial, JSON.stringify(owner), { mode: 0o600 })
  renameSync(partial, ownerFile(folder))
}
