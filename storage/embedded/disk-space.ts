import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, statfsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

const MIB = 1024 * 1024
/** PostgreSQL writes its log in files of 16 MiB, and stops (PANIC) when it cannot create the next one. */
const MIN_FREE_BYTES = 20 * MIB
/** What a recovery needs on a disk that others have filled: the next file of the log, and some pages. */
const RESERVE_MIB = 20

/** The space on the disk of a data folder. */
export type DiskSpace = {
  /** True when changes must be refused, so that what is left suffices for a restart. */
  isFull: () => boolean
  /** Gives the reserve up when there is little space: a database that opens may have to recover. */
  release: () => void
  /** Sets the reserve aside where there is space for it. */
  reserve: () => Promise<void>
}

export const createDiskSpace = (folder: string): DiskSpace => {
  const file = join(folder, 'reserve')
  const freeBytes = (): number => {
    try {
      const { bavail, bsize } = statfsSync(folder)
      return bavail * bsize
    } catch {
      // Unknown: the database itself finds out.
      return Infinity
    }
  }
  const isFull = (): boolean => freeBytes() < MIN_FREE_BYTES + (existsSync(file) ? 0 : RESERVE_MIB * MIB)
  return {
    isFull,
    release: () => {
      if (freeBytes() < MIN_FREE_BYTES) rmSync(file, { force: true })
    },
    reserve: async () => {
      if (existsSync(file) || isFull()) return
      const partial = `${file}.partial`
      try {
        const handle = await open(partial, 'w', 0o600)
        try {
          // Neither a hole nor zeros, which take no space on some file systems.
          const block = randomBytes(MIB)
          for (let i = 0; i < RESERVE_MIB; i++) await handle.writeFile(block)
        } finally {
          await handle.close()
        }
        await rename(partial, file)
      } catch {
        await rm(partial, { force: true })
      }
    },
  }
}
