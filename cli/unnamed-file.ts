import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { type FileHandle, open, rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** `__O_TMPFILE` of Linux, which Node has no name for. */
const TMPFILE = 0o20_000_000

/**
 * Opens a file without a name in this folder, for its owner only. The kernel deletes it when the process
 * ends, even when that is killed, so that what it holds never outlives a command.
 */
export const openUnnamedFile = async (folder: string): Promise<FileHandle> => {
  if (process.platform === 'linux')
    try {
      return await open(folder, constants.O_DIRECTORY | TMPFILE | constants.O_RDWR, 0o600)
    } catch {
      /* Some file systems do not support it. */
    }
  const path = join(folder, `.wcrm-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

/** Gives an unnamed file a name, replacing what has it. Returns false where that is not possible. */
const link = async (file: FileHandle, path: string): Promise<boolean> => {
  // Node cannot: its `link` does not follow the links in /proc.
  const ln = spawn('ln', ['-fLT', '/proc/self/fd/3', path], {
    stdio: ['ignore', 'ignore', 'ignore', file.fd],
  })
  const ended: Promise<unknown[]> = once(ln, 'exit')
  return await ended.then(
    ([code]) => code === 0,
    () => false,
  )
}

/** Writes the content to a file whose name shows only once it is complete. */
const copy = async (file: FileHandle, path: string): Promise<void> => {
  const partial = `${path}.${process.pid}.partial`
  try {
    await pipeline(
      createReadStream('', { fd: file.fd, start: 0, autoClose: false }),
      createWriteStream(partial, { mode: 0o600, flags: 'wx', flush: true }),
    )
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

/** Gives an unnamed file, once it is complete, its name. What had the name before is replaced at once. */
export const nameFile = async (file: FileHandle, path: string): Promise<void> => {
  await file.sync()
  if (process.platform !== 'linux' || !(await link(file, path))) await copy(file, path)
}
