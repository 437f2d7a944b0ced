import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5
/** The low byte of an SQLite error is its kind; the rest details it. */
const KIND_MASK = 0xff

const createFile = (path: string): void => {
  if (existsSync(path)) return
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/**
 * Locks a file for this process. Returns the function that unlocks it; undefined when another has it, and has it
 * still after `waitMs`, for which this thread stops.
 *
 * Node has no call for it, so an exclusive transaction of SQLite holds the lock (`fcntl`). The kernel keeps
 * it: it ends with the process, however that ends, and counts for everyone on this machine, in whichever
 * container. Closing any other handle of the file in this process would give it up: nothing else may open it.
 */
export const lockFile = (path: string, waitMs = 0): (() => void) | undefined => {
  let database: DatabaseSync | undefined
  try {
    createFile(path)
    database = new DatabaseSync(path, { timeout: waitMs })
    // No journal: it would need space on the disk, and a killed process would leave it behind.
    database.exec('pragma journal_mode = memory; begin exclusive')
    chmodSync(path, 0o600)
  } catch (error) {
    database?.close()
    const { errcode, message } = error as { errcode?: number; message: string }
    if (errcode !== undefined && (errcode & KIND_MASK) === SQLITE_BUSY) return undefined
    throw new Error(
      `cannot lock ${path} (${message}); keep the data folder on a local disk: ` +
        'some network file systems have no locks',
      { cause: error },
    )
  }
  const locked = database
  return () => locked.close()
}
