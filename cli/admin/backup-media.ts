import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import type { MediaStore, StoredFile } from '../../server/media-store.ts'
import type {
  BackupFileEnd,
  BackupFileLine,
  BackupFiles,
  BackupFileSource,
  BackupLines,
  BackupTableLine,
} from '../../storage/backup/dump.ts'
import { openUnnamedFile } from '../unnamed-file.ts'
import { naming } from '../write-error.ts'
import { MAX_RETRIES, withRetries } from './retries.ts'

/** Files of a backup are those that its rows name, which are read while the rows pass. */
export type BackupMedia = {
  source: BackupFileSource
  /** Passes the lines of a backup on, and notes the files that they name. */
  watch: (lines: BackupLines) => AsyncGenerator<readonly string[]>
  close: () => Promise<void>
}

const FLUSH_CHARS = 64 * 1024

/** Returns the keys of files that rows of the table `media` name. */
const createKeyReader = (): ((line: string) => string | undefined) => {
  let columns: { state: number; key: number } | undefined
  return (line) => {
    if (!line.startsWith('[')) {
      const isMedia = line.startsWith('{"table":"media",')
      const names = isMedia ? (JSON.parse(line) as BackupTableLine).columns.map(({ name }) => name) : []
      columns = isMedia ? { state: names.indexOf('state'), key: names.indexOf('key') } : undefined
      return undefined
    }
    if (!columns) return undefined
    const values = JSON.parse(line) as (string | null)[]
    return values[columns.state] === 'kept' ? (values[columns.key] ?? undefined) : undefined
  }
}

/** The keys are kept in a file without a name: there may be millions. */
export const createBackupMedia = async (
  store: MediaStore,
  onFiles: (n: number) => void,
): Promise<BackupMedia> => {
  const keys = await openUnnamedFile(tmpdir())
  const counts: BackupFiles = { files: 0, bytes: 0, missing: 0 }
  let waiting = ''
  const flush = async (): Promise<void> => {
    // Unlike `write`, which writes a part without an error when the disk is almost full.
    await naming(`the list of files in ${tmpdir()} (TMPDIR)`, keys.writeFile(waiting))
    waiting = ''
  }
  const lines = async function* () {
    await flush()
    for await (const key of readLines(keys)) {
      const file = await withRetries(() => store.read(key))
      if (!file) {
        counts.missing++
        continue
      }
      yield* renderFile(store, key, file)
      counts.files++
      counts.bytes += file.size
      onFiles(counts.files)
    }
  }
  return {
    source: { lines: lines(), count: () => counts },
    watch: async function* (given) {
      const readKey = createKeyReader()
      for await (const batch of given) {
        for (const line of batch) {
          const key = readKey(line)
          if (key !== undefined) waiting += `${key}\n`
        }
        if (waiting.length > FLUSH_CHARS) await flush()
        yield batch
      }
    },
    close: () => keys.close(),
  }
}

async function* readLines(file: FileHandle): AsyncGenerator<string> {
  const stream = createReadStream('', { fd: file.fd, start: 0, autoClose: false })
  yield* createInterface({ input: stream, crlfDelay: Infinity })
}

/** Yields the bytes of an opened file; continues after those that were read when the store breaks off. */
async function* readWithRetries(
  store: MediaStore,
  key: string,
  first: StoredFile,
): AsyncGenerator<Uint8Array> {
  let read = 0
  let file: StoredFile | undefined = first
  for (let attempt = 0; ; attempt++) {
    try {
      for await (const chunk of file!.content) {
        read += chunk.byteLength
        yield chunk
      }
      if (read === first.size) return
      throw new Error(`The file ${key} in ${store.name} changed while it was read.`)
    } catch (error) {
      if (attempt >= MAX_RETRIES || read >= first.size) throw error
    }
    file = await withRetries(() => store.read(key, { start: read, end: first.size - 1 }))
    if (file?.size !== first.size - read)
      throw new Error(`The file ${key} cannot be read from ${store.name}.`)
  }
}

async function* renderFile(store: MediaStore, key: string, file: StoredFile): AsyncGenerator<string[]> {
  const hash = createHash('sha256')
  yield [JSON.stringify({ file: key, size: file.size } satisfies BackupFileLine)]
  for await (const chunk of readWithRetries(store, key, file)) {
    hash.update(chunk)
    yield [`"${Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('base64')}"`]
  }
  yield [JSON.stringify({ end: key, sha256: hash.digest('hex') } satisfies BackupFileEnd)]
}

/** Writes the files of a backup into a store. Files that are there already are replaced. */
export const restoreFiles = async (
  lines: BackupLines,
  store: MediaStore,
  onFiles: (n: number) => void,
): Promise<{ files: number; bytes: number }> => {
  const restored = { files: 0, bytes: 0 }
  const all = flatten(lines)
  for (let next = await all.next(); !next.done; next = await all.next()) {
    if (!next.value.startsWith('{"file":')) continue
    const { file: key } = JSON.parse(next.value) as BackupFileLine
    let expected: string | undefined
    const content = async function* () {
      for (let line = await all.next(); !line.done; line = await all.next()) {
        if (!line.value.startsWith('"')) {
          expected = (JSON.parse(line.value) as BackupFileEnd).sha256
          return
        }
        yield Buffer.from(line.value.slice(1, -1), 'base64')
      }
    }
    const written = store.write(key, content(), ({ sha256 }) => {
      if (sha256.toString('hex') !== expected) throw new Error(`The file ${key} of the backup is damaged.`)
    })
    const { size } = await naming(`the file ${key} to ${store.name}`, written)
    restored.files++
    restored.bytes += size
    onFiles(restored.files)
  }
  return restored
}

async function* flatten(lines: BackupLines): AsyncGenerator<string> {
  for await (const batch of lines) yield* batch
}
