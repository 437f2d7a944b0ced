import { randomUUID } from 'node:crypto'
import { existsSync, openAsBlob } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolderPrivate } from '../../storage/embedded/private-files.ts'

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

type MediaStoreOptions = {
  maxBytes?: number
  /** Says that others could read the folder until now. */
  warn?: (message: string) => void
}

/** Stores files in a folder that only the server's own user can read; an existing one is made so. */
export const createMediaStore = (
  folder: string,
  { maxBytes = 100 * 1024 * 1024, warn = () => {} }: MediaStoreOptions = {},
): MediaStore => {
  if (existsSync(folder)) makeFolderPrivate(folder, warn)
  const pathOf = (key: string): string => {
    if (!KEY.test(key)) throw new Error('invalid media key')
    return join(folder, key)
  }
  return {
    maxBytes,
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
