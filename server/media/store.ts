import { randomUUID } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Where received files are kept. Servers of one database share it. */
export type MediaStore = {
  /** The largest file that is kept, of any type, in bytes. */
  readonly maxBytes: number
  /** Writes the file atomically: no reader finds half of it. */
  write: (key: string, bytes: Uint8Array) => Promise<void>
  /** Undefined when the file does not exist. The content is a stream. */
  read: (key: string) => Promise<Blob | undefined>
  remove: (key: string) => Promise<void>
}

/** Digits and one slash: no key leads out of the folder. */
const KEY = /^\d+\/\d+$/

export const mediaKey = (workspaceId: string, messageId: string): string => `${workspaceId}/${messageId}`

/** Stores files in a folder that only the server's own user can read. */
export const createMediaStore = (folder: string, mostBytes = 100 * 1024 * 1024): MediaStore => {
  const pathOf = (key: string): string => {
    if (!KEY.test(key)) throw new Error('invalid media key')
    return join(folder, key)
  }
  return {
    maxBytes: mostBytes,
    write: async (key, bytes) => {
      const path = pathOf(key)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const temporaryPath = `${path}.${randomUUID()}.part`
      try {
        const file = await open(temporaryPath, 'wx', 0o600)
        try {
          await file.writeFile(bytes)
          await file.sync()
        } finally {
          await file.close()
        }
        await rename(temporaryPath, path)
      } catch (error) {
        await rm(temporaryPath, { force: true })
        throw error
      }
    },
    read: async (key) => {
      try {
        return await openAsBlob(pathOf(key))
      } catch (error) {
        if (
          (error as NodeJS.ErrnoException).code === 'ENOENT' ||
          (error as NodeJS.ErrnoException).code === 'ERR_INVALID_ARG_VALUE'
        )
          return undefined
        throw error
      }
    },
    remove: (key) => rm(pathOf(key), { force: true }),
  }
}
