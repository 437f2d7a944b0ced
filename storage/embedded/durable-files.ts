import { fsyncSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import type { DurableLog } from './durable-log.ts'

/** An open file of Emscripten's, as far as it matters here. */
type Stream = { nfd: number; node: object }
type StreamOps = {
  write: (stream: Stream, bytes: Uint8Array, offset: number, length: number, position: number) => number
  fsync?: (stream: Stream) => number
}
type EmscriptenModule = {
  NODEFS: { stream_ops: StreamOps; realPath: (node: object) => string }
  FS: { ErrnoError: new (code: number) => Error }
}

const EIO = 29
/** What some systems answer for folders. */
const CANNOT_SYNC = new Set(['EBADF', 'EINVAL', 'EISDIR', 'EPERM'])

const PAGE_BYTES = 8192
/** The name of a file of the log: its timeline, and where it begins in units of 4 GiB and of 16 MiB. */
const LOG_FILE = /\/pg_wal\/[0-9A-F]{8}([0-9A-F]{8})([0-9A-F]{8})$/
/** Files of tables and indexes: each page begins with the end of its last record in the log. */
const RELATION_FILE = /\/(?:base\/\d+|global)\/\d+(?:_\w+)?(?:\.\d+)?$/
const TEMPORARY_FILE = /\/pgsql_tmp\//

type FileKind = { kind: 'log'; path: string; start: number } | { kind: 'relation' | 'temporary' | 'other' }

const findKind = (path: string): FileKind => {
  const [, high, low] = LOG_FILE.exec(path) ?? []
  if (high !== undefined)
    return { kind: 'log', path, start: parseInt(high, 16) * 2 ** 32 + parseInt(low!, 16) * 2 ** 24 }
  if (RELATION_FILE.test(path)) return { kind: 'relation' }
  return { kind: TEMPORARY_FILE.test(path) ? 'temporary' : 'other' }
}

/** Returns the end of the last record in the log that pages are of. */
const findLastRecord = (bytes: Uint8Array, offset: number, length: number): number => {
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, length)
  let last = 0
  for (let at = 0; at + 8 <= length; at += PAGE_BYTES)
    last = Math.max(last, view.getUint32(at, true) * 2 ** 32 + view.getUint32(at + 4, true))
  return last
}

const syncFile = (file: number): void => {
  try {
    fsyncSync(file)
  } catch (error) {
    if (!CANNOT_SYNC.has((error as NodeJS.ErrnoException).code!)) throw error
  }
}

/** Has files synced when PGlite asks for it; those of the log by `log`, before anything that follows from them. */
const makeDurable = ({ NODEFS, FS }: EmscriptenModule, log: DurableLog): void => {
  const { stream_ops: ops, realPath } = NODEFS
  const { write } = ops
  const kinds = new WeakMap<Stream, FileKind>()
  const kindOf = (stream: Stream): FileKind => {
    const known = kinds.get(stream)
    if (known) return known
    const found = findKind(realPath(stream.node))
    kinds.set(stream, found)
    return found
  }
  /** PostgreSQL stops at this error: nobody knows what of the file is on the disk. */
  const orEio = (work: () => void): void => {
    try {
      work()
    } catch {
      throw new FS.ErrnoError(EIO)
    }
  }
  ops.write = (stream, bytes, offset, length, position) => {
    const file = kindOf(stream)
    if (file.kind === 'relation') orEio(() => log.syncBefore(findLastRecord(bytes, offset, length)))
    else if (file.kind === 'other') orEio(() => log.syncBefore())
    const count = write(stream, bytes, offset, length, position)
    if (file.kind === 'log') log.noteWrite(file.start + position + count)
    return count
  }
  ops.fsync = (stream) => {
    const file = kindOf(stream)
    orEio(() => {
      if (file.kind === 'log') return log.noteSync(file.path)
      log.syncBefore()
      syncFile(stream.nfd)
    })
    return 0
  }
}

/** The files of PGlite in this folder. On its own it syncs none (docs/decisions/0071-power-cuts.md). */
export const createDurableFiles = (dataDir: string, log: DurableLog): NodeFS => {
  const files = new NodeFS(dataDir)
  const init = files.init.bind(files)
  files.init = async (pg, options) => {
    const { emscriptenOpts } = await init(pg, options)
    const patch = (module: unknown): void => makeDurable(module as EmscriptenModule, log)
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...(emscriptenOpts.preRun ?? []), patch] } }
  }
  return files
}

const SYNCS_AT_ONCE = 8

const syncPath = async (path: string): Promise<void> => {
  try {
    await using file = await open(path, 'r')
    await file.sync()
  } catch {
    // PGlite removes files meanwhile, and syncs what it writes.
  }
}

/** Syncs a folder with all that is in it, and its name: files that PGlite was given and did not write. */
export const syncFolder = async (folder: string): Promise<void> => {
  const paths = (await readdir(folder, { recursive: true })).map((name) => join(folder, name))
  const queue = [...paths, folder, dirname(folder)]
  const work = async (): Promise<void> => {
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) await syncPath(path)
  }
  await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, work))
}
