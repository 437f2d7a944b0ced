import { randomUUID } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { access, constants, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { makeFolderPrivate } from '../../../storage/embedded/private-files.ts'
import {
  DEFAULT_MAX_BYTES,
  type FileContent,
  type FileDigest,
  type MediaStore,
  receiveFile,
  requireMediaKey,
} from '../../media-store.ts'

type FolderStoreOptions = {
  maxBytes?: number
  /** Says that others could read the folder until now. */
  warn?: (message: string) => void
}

const READ_BYTES = 64 * 1024

/** Stores files in a folder that only the server's own user can read; an existing one is made so. */
export const createFolderStore = (
  folder: string,
  { maxBytes = DEFAULT_MAX_BYTES, warn = () => {} }: FolderStoreOptions = {},
): MediaStore => {
  if (existsSync(folder)) makeFolderPrivate(folder, warn)
  const pathOf = (key: string): string => join(folder, requireMediaKey(key))
  return {
    name: `the folder ${folder}`,
    maxBytes,
    write: async (key, content, accept) => {
      const path = pathOf(key)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const temporaryPath = `${path}.${randomUUID()}.part`
      try {
        const digest = await writeNewFile(temporaryPath, content, maxBytes)
        accept?.(digest)
        await rename(temporaryPath, path)
        return digest
      } catch (error) {
        await rm(temporaryPath, { force: true })
        throw error
      }
    },
    find: async (key) => {
      const stats = await stat(pathOf(key)).catch(undefinedIfMissing)
      return stats?.isFile() ? { size: stats.size } : undefined
    },
    read: async (key, range) => {
      const path = pathOf(key)
      const stats = await stat(path).catch(undefinedIfMissing)
      if (!stats?.isFile()) return undefined
      const { start, end } = range ?? { start: 0, end: stats.size - 1 }
      return { size: end - start + 1, content: ReadableStream.from(readFile(path, start, end)) }
    },
    remove: (key) => rm(pathOf(key), { force: true }),
    removeUnfinished: (ms) => removeUnfinished(folder, Date.now() - ms),
    check: async () => {
      let existing = resolve(folder)
      while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing)
      try {
        await access(existing, constants.W_OK | constants.X_OK)
        return { ok: true }
      } catch (error) {
        return {
          ok: false,
          isDefinite: false,
          detail: `Files cannot be written to ${existing} (${(error as NodeJS.ErrnoException).code}).`,
          fix: "Make the folder of WCRM_MEDIA the server's user's own.",
        }
      }
    },
  }
}

const UNFINISHED = /^\d+\.[0-9a-f-]{36}\.part$/

/** `before`: milliseconds since 1970. */
const removeUnfinished = async (folder: string, before: number): Promise<number> => {
  const entries = await opendir(folder).catch(undefinedIfMissing)
  if (!entries) return 0
  let removed = 0
  for await (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) removed += await removeUnfinished(path, before)
    else if (UNFINISHED.test(entry.name)) {
      const stats = await stat(path).catch(undefinedIfMissing)
      if (!stats || stats.mtimeMs >= before) continue
      await rm(path, { force: true })
      removed++
    }
  }
  return removed
}

/** Opens the file only when it is read: a stream that nobody reads leaves nothing open. */
async function* readFile(path: string, start: number, end: number): AsyncGenerator<Uint8Array> {
  if (end >= start) yield* createReadStream(path, { start, end, highWaterMark: READ_BYTES })
}

const undefinedIfMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

const writeNewFile = async (path: string, content: FileContent, maxBytes: number): Promise<FileDigest> => {
  const file = await open(path, 'wx', 0o600)
  try {
    const digest = await receiveFile(file, content, maxBytes)
    await file.sync()
    return digest
  } finally {
    await file.close()
  }
}
