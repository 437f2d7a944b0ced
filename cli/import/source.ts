import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, mkdtempSync, openSync, readSync, closeSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Fault, usage } from '../fault.ts'
import type { Io } from '../io.ts'

/** A file that can be read more than once: pipes are kept in a file of their own first. */
export type Source = { readonly path: string; readonly name: string; readonly size: number; readonly remove: () => void }

/** No row and no line may be larger, in characters: a quote that is never closed would take the rest of the file. */
export const LONGEST_ROW = 8 * 1024 * 1024

export const unreadable = (name: string, detail: string, fix: string): Fault => usage(`${name} ${detail}.`, 'file', fix)

/** Opens the file that was named; `-` is standard input. `remove` takes away what was kept of a pipe. */
export const openSource = async (io: Io, given: string): Promise<Source> => {
  if (given === '-' && io.stdin.isTTY) throw usage('- reads standard input, but nothing is piped in.', 'file', 'Pipe the rows in, or name a file.')
  const path = resolve(given)
  if (given !== '-') {
    if (!existsSync(path)) throw unreadable(given, 'is not there', 'Check the path.')
    const found = statSync(path)
    if (found.isDirectory()) throw unreadable(given, 'is a folder', 'Name a file.')
    if (found.isFile()) return { path, name: given, size: found.size, remove: () => {} }
  }
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-import-'))
  const kept = join(folder, 'rows')
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    await pipeline(given === '-' ? io.stdin : createReadStream(path), createWriteStream(kept, { mode: 0o600 }))
  } catch (error) {
    remove()
    throw error
  }
  return { path: kept, name: given === '-' ? 'standard input' : given, size: statSync(kept).size, remove }
}

/** The file's text in pieces, without its byte order mark; `onBytes` sees them as they are read. Throws a usage fault at what is not UTF-8. */
export async function* textOf(source: Source, onBytes: (bytes: Buffer) => void = () => {}): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Buffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw unreadable(source.name, 'is not UTF-8 text', 'Save it as "CSV UTF-8", or convert it: iconv -f WINDOWS-1252 -t UTF-8.')
    }
  }
  for await (const bytes of createReadStream(source.path, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
    onBytes(bytes)
    yield decode(bytes)
  }
  yield decode()
}

export const newDigest = () => createHash('sha256')

/** The first characters, for telling what the file holds. */
export const headOf = (source: Source): string => {
  const bytes = Buffer.alloc(64 * 1024)
  const file = openSync(source.path, 'r')
  const length = readSync(file, bytes)
  closeSync(file)
  return new TextDecoder().decode(bytes.subarray(0, length))
}

export type Format = 'csv' | 'ndjson'

/** What the file holds: as was said, else by its name, else by its first character. */
export const formatOf = (source: Source, head: string, given: string | undefined): Format => {
  if (given !== undefined && given !== 'csv' && given !== 'ndjson') throw usage(`--format is csv or ndjson, not "${given}".`, '--format')
  if (head.trim() === '') throw unreadable(source.name, 'is empty', 'CSV begins with a line that names the columns.')
  if (head.startsWith('PK\u0003\u0004')) throw unreadable(source.name, 'is a spreadsheet or an archive', 'Save the sheet as "CSV UTF-8".')
  const format = given ?? (/\.(csv|tsv)$/i.test(source.name) ? 'csv' : /\.(ndjson|jsonl)$/i.test(source.name) || /^\s*[{[]/.test(head) ? 'ndjson' : 'csv')
  if (format === 'ndjson' && /^\s*\[/.test(head)) throw unreadable(source.name, 'is a JSON array', 'One object a line is wanted: jq -c \'.[]\' file.json.')
  return format
}
