import { randomUUID } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Where received files are kept. Servers of one database share it. */
export type MediaStore = {
  /** The largest file that is kept, in bytes, whatever its type. */
  readonly mostBytes: number
  /** All of the file, or nothing: whoever reads never finds half of it. */
  write: (key: string, bytes: Uint8Array) => Promise<void>
  /** Undefined when there is no such file. It is read as it is sent. */
  read: (key: string) => Promise<Blob | undefined>
  remove: (key: string) => Promise<void>
}

/** Numbers and slashes: no key leads out of the folder. */
const KEY = /^\d+\/\d+$/

export const mediaKey = (workspaceId: string, messageId: string): string => `${workspaceId}/${messageId}`

/** Keeps files in a folder, readable by the server's own user alone. */
export const createMediaStore = (folder: string, mostBytes = 100 * 1024 * 1024): MediaStore => {
  const pathOf = (key: string): string => {
    if (!KEY.test(key)) throw new Error('not the key of a file')
    return join(folder, key)
  }
  return {
    mostBytes,
    write: async (key, bytes) => {
      const path = pathOf(key)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const draft = `${path}.${randomUUID()}.part`
      try {
        const file = await open(draft, 'wx', 0o600)
        try {
          await file.writeFile(bytes)
          await file.sync()
        } finally {
          await file.close()
        }
        await rename(draft, path)
      } catch (error) {
        await rm(draft, { force: true })
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
