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
 * The data folder belongs to one process: `owner.json` in it names the process and the socket through which
 * others reach the database. Unix socket paths are short, so the socket lives in the run-time or temp
 * folder.
 */
export type Owner = { pid: number; socket: string }

const ownerFile = (folder: string): string => join(folder, 'owner.json')

export const readOwner = (folder: string): Owner | undefined => {
  try {
    return JSON.parse(readFileSync(ownerFile(folder), 'utf8')) as Owner
  } catch {
    return undefined
  }
}

/** A live owner answers on its socket; a file left behind by a crash does not. */
export const isAlive = (owner: Owner): Promise<boolean> =>
  new Promise((answer) => {
    const socket = createConnection(owner.socket)
    const end = (alive: boolean) => {
      socket.destroy()
      answer(alive)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.setTimeout(2000, () => end(processExists(owner.pid)))
  })

const processExists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Between taking the folder and opening the socket an owner is starting; its process id speaks for it
 * meanwhile.
 */
const isTaken = async (owner: Owner): Promise<boolean> =>
  (await isAlive(owner)) ||
  (owner.pid !== process.pid && !existsSync(owner.socket) && processExists(owner.pid))

/**
 * Takes the folder for this process, or throws with the owner's process id. Two processes that both find a
 * dead owner are told apart by `link`, which never overwrites.
 */
export const takeFolder = async (
  path: string,
): Promise<{ folder: string; socket: string; release: () => void }> => {
  const folder = resolve(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const runtime = mkdtempSync(join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), 'wcrm-'))
  chmodSync(runtime, 0o700)
  const socket = join(runtime, 'db.sock')
  const mine = join(folder, `owner.${process.pid}.${Date.now()}.json`)
  writeFileSync(mine, JSON.stringify({ pid: process.pid, socket } satisfies Owner), { mode: 0o600 })
  const give = () => {
    rmSync(mine, { force: true })
    rmSync(runtime, { recursive: true, force: true })
  }
  try {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        linkSync(mine, ownerFile(folder))
        rmSync(mine, { force: true })
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
      if (owner && (await isTaken(owner)))
        throw new Error(
          `the data folder ${folder} is in use by process ${owner.pid}; stop it first, or use another --data folder`,
        )
      moveAside(folder, owner)
    }
    throw new Error(`the data folder ${folder} could not be taken; try again`)
  } catch (error) {
    give()
    throw error
  }
}

/** Moves a dead owner's file away; if a new owner was quicker, gives it its file back. */
const moveAside = (folder: string, dead: Owner | undefined): void => {
  const aside = join(folder, `owner.dead.${process.pid}.json`)
  try {
    renameSync(ownerFile(folder), aside)
  } catch {
    return
  }
  const moved = JSON.parse(readFileSync(aside, 'utf8') || 'null') as Owner | null
  if (dead && moved && moved.socket !== dead.socket) {
    try {
      linkSync(aside, ownerFile(folder))
    } catch {
      /* a third process holds it now */
    }
  }
  rmSync(aside, { force: true })
}
