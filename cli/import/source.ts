import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type CliError, usageError } from '../error.ts'
import type { Io } from '../io.ts'
import { describeSpool, naming } from '../write-error.ts'

/** An open file that is read more than once; replacing the file on disk meanwhile has no effect. */
export type ImportSource = {
  readonly file: FileHandle
  readonly path: string
  readonly name: string
  readonly size: number
}

/**
 * The maximum length of a row or line in characters: an unclosed quote would otherwise consume the whole
 * file.
 */
export const MAX_ROW_CHARACTERS = 8 * 1024 * 1024

export const unreadableFileError = (name: string, detail: string, fix: string): CliError =>
  usageError(`${name} ${detail}.`, 'file', fix)

const openFile = async (path: string, name: string): Promise<ImportSource> => {
  try {
    const file = await open(path)
    return { file, path, name, size: (await file.stat()).size }
  } catch (error) {
    throw unreadableFileError(
      name,
      `cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`,
      'Check its permissions.',
    )
  }
}

/**
 * Copies a pipe to a temporary file that is unlinked once it is open, so that nothing remains however the
 * process ends.
 */
const spoolToFile = async (pipe: NodeJS.ReadableStream, name: string): Promise<ImportSource> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-import-'))
  try {
    const copied = pipeline(pipe, createWriteStream(join(folder, 'rows'), { mode: 0o600 }))
    await naming(describeSpool(undefined), copied)
    return await openFile(join(folder, 'rows'), name)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Opens a file, or standard input for `-`. The caller closes `file`. */
export const openSource = async (io: Io, name: string): Promise<ImportSource> => {
  if (name === '-') {
    if (io.stdin.isTTY)
      throw usageError(
        '- reads standard input, but nothing is piped in.',
        'file',
        'Pipe the rows in, or name a file.',
      )
    return await spoolToFile(io.stdin, 'standard input')
  }
  const path = resolve(name)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) throw unreadableFileError(name, 'does not exist', 'Check the path.')
  if (stats.isDirectory()) throw unreadableFileError(name, 'is a directory', 'Name a file.')
  return await (stats.isFile() ? openFile(path, name) : spoolToFile(createReadStream(path), name))
}

/** Whether a file is what spreadsheets on Windows call Unicode text. Its bytes may be valid UTF-8 with NULs. */
const isUtf16 = async ({ file }: ImportSource): Promise<boolean> => {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0)
  const head = buffer.subarray(0, bytesRead)
  const mark = head.subarray(0, 2).toString('hex')
  return mark === 'fffe' || mark === 'feff' || head.subarray(0, 2).includes(0)
}

/**
 * Yields the text of the file in chunks, without its byte order mark; `onBytes` gets the bytes as they are
 * read. Throws a usage error when the file is not UTF-8.
 */
export async function* readText(
  source: ImportSource,
  onBytes: (bytes: Buffer) => void = () => {},
): AsyncGenerator<string> {
  if (await isUtf16(source))
    throw unreadableFileError(
      source.name,
      'is UTF-16 text, not UTF-8',
      'Save it as "CSV UTF-8", or convert it: iconv -f UTF-16 -t UTF-8.',
    )
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Buffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw unreadableFileError(
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

export const createSha256 = () => createHash('sha256')

/** Reads the first 64 KiB, to detect the format and the delimiter. */
export const readHead = async (source: ImportSource): Promise<string> => {
  const { buffer, bytesRead } = await source.file.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, 0)
  return new TextDecoder().decode(buffer.subarray(0, bytesRead))
}

export type ImportFormat = 'csv' | 'ndjson'

/** Detects the format: as requested, else by the file name, else by the first character. */
export const detectFormat = (
  source: ImportSource,
  head: string,
  requested: string | undefined,
): ImportFormat => {
  if (requested !== undefined && requested !== 'csv' && requested !== 'ndjson')
    throw usageError(`--format must be csv or ndjson, not "${requested}".`, '--format')
  if (head.trim() === '')
    throw unreadableFileError(source.name, 'is empty', 'The first line of a CSV file names the columns.')
  if (head.startsWith('PK\u0003\u0004'))
    throw unreadableFileError(source.name, 'is a spreadsheet or an archive', 'Save the sheet as "CSV UTF-8".')
  const format =
    requested ??
    (/\.(csv|tsv)$/i.test(source.name)
      ? 'csv'
      : /\.(ndjson|jsonl)$/i.test(source.name) || /^\s*[{[]/.test(head)
        ? 'ndjson'
        : 'csv')
  if (format === 'ndjson' && /^\s*\[/.test(head))
    throw unreadableFileError(
      source.name,
      'is a JSON array',
      "Convert it to one object per line: jq -c '.[]' file.json.",
    )
  return format
}
