import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Fault, usage } from '../fault.ts'
import type { Io } from '../io.ts'

/** An open file that is read more than once: what is put in its place meanwhile changes nothing. */
export type Source = {
  readonly file: FileHandle
  readonly path: string
  readonly name: string
  readonly size: number
}

/**
 * No row and no line may be larger, in characters: a quote that is never closed would take the rest of the
 * file.
 */
export const LONGEST_ROW = 8 * 1024 * 1024

export const unreadable = (name: string, detail: string, fix: string): Fault =>
  usage(`${name} ${detail}.`, 'file', fix)

const opened = async (path: string, name: string): Promise<Source> => {
  try {
    const file = await open(path)
    return { file, path, name, size: (await file.stat()).size }
  } catch (error) {
    throw unreadable(
      name,
      `cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`,
      'Check its permissions.',
    )
  }
}

/**
 * Keeps what a pipe holds in a file that has lost its name as soon as it is open: nothing is left behind,
 * however this ends.
 */
const kept = async (pipe: NodeJS.ReadableStream, name: string): Promise<Source> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-import-'))
  try {
    await pipeline(pipe, createWriteStream(join(folder, 'rows'), { mode: 0o600 }))
    return await opened(join(folder, 'rows'), name)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Opens the file that was named; `-` is standard input. Whoever opens it closes `file`. */
export const openSource = async (io: Io, given: string): Promise<Source> => {
  if (given === '-') {
    if (io.stdin.isTTY)
      throw usage(
        '- reads standard input, but nothing is piped in.',
        'file',
        'Pipe the rows in, or name a file.',
      )
    return await kept(io.stdin, 'standard input')
  }
  const path = resolve(given)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw unreadable(given, 'is not there', 'Check the path.')
  if (found.isDirectory()) throw unreadable(given, 'is a folder', 'Name a file.')
  return await (found.isFile() ? opened(path, given) : kept(createReadStream(path), given))
}

/**
 * The file's text in pieces, without its byte order mark; `onBytes` sees them as they are read. Throws a
 * usage fault at what is not UTF-8.
 */
export async function* textOf(
  source: Source,
  onBytes: (bytes: Buffer) => void = () => {},
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Buffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw unreadable(
        source.name,
        'is not UTF-8 text',
        'Save it as "CSV UTF-8", or convert it: iconv -f WINDOWS-1252 -t UTF-8.',
      )
    }
  }
  const buffer = Buffer.allocUnsafe(256 * 1024)
  for (let at = 0, length = -1; length !== 0; at += length) {
    length = (await source.file.read(buffer, 0, buffer.length, at)).bytesRead
    onBytes(buffer.subarray(0, length))
    yield decode(buffer.subarray(0, length))
  }
  yield decode()
}

export const newDigest = () => createHash('sha256')

/** The first characters, for telling what the file holds. */
export const headOf = async (source: Source): Promise<string> => {
  const { buffer, bytesRead } = await source.file.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, 0)
  return new TextDecoder().decode(buffer.subarray(0, bytesRead))
}

export type Format = 'csv' | 'ndjson'

/** What the file holds: as was said, else by its name, else by its first character. */
export const formatOf = (source: Source, head: string, given: string | undefined): Format => {
  if (given !== undefined && given !== 'csv' && given !== 'ndjson')
    throw usage(`--format is csv or ndjson, not "${given}".`, '--format')
  if (head.trim() === '')
    throw unreadable(source.name, 'is empty', 'CSV begins with a line that names the columns.')
  if (head.startsWith('PK\u0003\u0004'))
    throw unreadable(source.name, 'is a spreadsheet or an archive', 'Save the sheet as "CSV UTF-8".')
  const format =
    given ??
    (/\.(csv|tsv)$/i.test(source.name)
      ? 'csv'
      : /\.(ndjson|jsonl)$/i.test(source.name) || /^\s*[{[]/.test(head)
        ? 'ndjson'
        : 'csv')
  if (format === 'ndjson' && /^\s*\[/.test(head))
    throw unreadable(source.name, 'is a JSON array', "One object a line is wanted: jq -c '.[]' file.json.")
  return format
}
