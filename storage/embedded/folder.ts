import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/**
 * A data folder is owned by one process: `owner.json` in it names the process and the socket through which
 * others reach the database. Unix socket paths must be short, so the socket lives in the run-time or temp
 * folder.
 */
export type FolderOwner = { pid: number; socket: string }

const ownerFile = (folder: string): string => join(folder, 'owner.json')

export const readOwner = (folder: string): FolderOwner | undefined => {
  try {
    return JSON.parse(readFileSync(ownerFile(folder), 'utf8')) as FolderOwner
  } catch {
    return undefined
  }
}

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
    socket.setTimeout(2000, () => finish(processExists(owner.pid)))
  })

const processExists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** True also while an owner is starting: it has the folder, and its process runs, but no socket yet. */
const isOwned = async (owner: FolderOwner): Promise<boolean> =>
  (await isAlive(owner)) ||
  (owner.pid !== process.pid && !existsSync(owner.socket) && processExists(owner.pid))

/**
 * Makes this process the owner of the folder; throws with the current owner's process id. When two processes
 * both find a dead owner, `link`, which never overwrites, lets one win.
 */
export const acquireFolder = async (
  path: string,
): Promise<{ folder: string; socket: string; release: () => void }> => {
  const folder = resolve(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const runtime = mkdtempSync(join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), 'wcrm-'))
  chmodSync(runtime, 0o700)
  const socket = join(runtime, 'db.sock')
  const ownFile = join(folder, `owner.${process.pid}.${Date.now()}.json`)
  writeFileSync(ownFile, JSON.stringify({ pid: process.pid, socket } satisfies FolderOwner), { mode: 0o600 })
  const cleanUp = () => {
    rmSync(ownFile, { force: true })
    rmSync(runtime, { recursive: true, force: true })
  }
  try {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        linkSync(ownFile, ownerFile(folder))
        rmSync(ownFile, { force: true })
        return {
          folder,
          socket,
          release: () => {
            rmSync(ownerFile(folder), { force: true })
            rmSync(runtime, { recursive: true, force: true })
          },
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const owner = readOwner(folder)
      if (owner && (await isOwned(owner)))
        throw new Error(
          `the data folder ${folder} is in use by process ${owner.pid}; ` +
            'stop it first, or use another --data folder',
        )
      moveAside(folder, owner)
    }
    throw new Error(`the data folder ${folder} could not be acquired; try again`)
  } catch (error) {
    cleanUp()
    throw error
  }
}

/** Moves a dead owner's file away; when it was a new owner's file by then, restores it. */
const moveAside = (folder: string, dead: FolderOwner | undefined): void => {
  const aside = join(folder, `owner.dead.${process.pid}.json`)
  try {
    renameSync(ownerFile(folder), aside)
  } catch {
    return
  }
  const moved = JSON.parse(readFileSync(aside, 'utf8') || 'null') as FolderOwner | null
  if (dead && moved && moved.socket !== dead.socket) {
    try {
      linkSync(aside, ownerFile(folder))
    } catch {
      /* a third process owns the folder by now */
    }
  }
  rmSync(aside, { force: true })
}
