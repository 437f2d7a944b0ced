import type { ParsedCommand } from '../parsed-command.ts'
import { usageError } from '../error.ts'
import { type ColumnMapping, type ImportField, mapColumns } from './columns.ts'
import { type ParsedRow, parseCsvRow, parseJsonRow } from './rows.ts'
import {
  createSha256,
  type ImportFormat,
  type ImportSource,
  readHead,
  MAX_ROW_CHARACTERS,
  readText,
  unreadableFileError,
} from './source.ts'
import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'

type Flags = ParsedCommand['cliFlags']

/** Reads the rows of a file; may be read several times. */
export type ImportReader = {
  readonly rows: (onBytes?: (bytes: Buffer) => void) => AsyncIterable<ParsedRow>
  /** The columns or fields that cannot be imported. Those of NDJSON are known once the rows were read. */
  readonly ignored: () => readonly string[]
}

/** Throws a usage error when a flag does not fit the format, or when columns cannot be mapped to fields. */
export const createReader = async (
  { source, format }: { source: ImportSource; format: ImportFormat },
  fields: readonly ImportField[],
  flags: Flags,
): Promise<ImportReader> =>
  format === 'csv' ? await createCsvReader(source, fields, flags) : createNdjsonReader(source, fields, flags)

const createCsvReader = async (
  source: ImportSource,
  fields: readonly ImportField[],
  flags: Flags,
): Promise<ImportReader> => {
  const delimiter = detectDelimiter(await readHead(source))
  let header: string[] = []
  for await (const { cells } of readCsvRecords(source, delimiter)) {
    header = cells
    break
  }
  const columns: ColumnMapping = mapColumns(header, fields, {
    map: flags.get('map') ?? [],
    ignore: flags.get('ignore') ?? [],
  })
  return {
    rows: async function* (onBytes) {
      let isHeader = true
      for await (const { line, cells } of readCsvRecords(source, delimiter, onBytes)) {
        if (!isHeader) yield parseCsvRow(line, cells, columns, flags.has('clear-empty'))
        isHeader = false
      }
    },
    ignored: () => columns.ignored,
  }
}

const createNdjsonReader = (
  source: ImportSource,
  fields: readonly ImportField[],
  flags: Flags,
): ImportReader => {
  for (const flag of ['map', 'ignore', 'clear-empty'])
    if (flags.has(flag)) throw usageError(`--${flag} requires CSV.`, `--${flag}`, 'Rename fields with jq.')
  const ignored = new Set<string>()
  return {
    rows: async function* (onBytes) {
      for await (const { line, text } of readNdjsonLines(source, onBytes))
        yield parseJsonRow(line, text, fields, ignored)
    },
    ignored: () => [...ignored],
  }
}

/** Facts about a file that are needed before its rows are sent. */
export type ImportScan = {
  readonly rows: number
  readonly sha256: string
  /** Groups that the rows name, by name or id. */
  readonly groups: readonly string[]
}

/** Reads the whole file once. */
export const scanFile = async (
  reader: ImportReader,
  onProgress: (bytesRead: number) => void,
): Promise<ImportScan> => {
  const digest = createSha256()
  const groups = new Set<string>()
  let rows = 0
  let bytesRead = 0
  const onBytes = (bytes: Buffer) => {
    digest.update(bytes)
    onProgress((bytesRead += bytes.length))
  }
  for await (const { draft } of reader.rows(onBytes)) {
    rows++
    for (const name of draft.groups ?? []) groups.add(name)
  }
  return { rows, sha256: digest.digest('hex'), groups: [...groups] }
}

/**
 * Yields the non-blank lines of the file with their numbers. Throws a usage error when a line is too long.
 */
async function* readNdjsonLines(
  source: ImportSource,
  onBytes?: (bytes: Buffer) => void,
): AsyncGenerator<{ line: number; text: string }> {
  let incomplete = ''
  let line = 0
  const toLine = (text: string) => ({ line: ++line, text })
  for await (const chunk of readText(source, onBytes)) {
    const lines = (incomplete + chunk).split('\n')
    incomplete = lines.pop()!
    if (incomplete.length > MAX_ROW_CHARACTERS)
      throw unreadableFileError(
        source.name,
        `is too long in line ${line + lines.length + 1}`,
        'Write one JSON object per line.',
      )
    yield* lines.map(toLine).filter(({ text }) => text.trim() !== '')
  }
  if (incomplete.trim() !== '') yield toLine(incomplete)
}

/** A record and the number of its first line. */
type CsvRecord = { readonly line: number; readonly cells: string[] }

const DELIMITERS = [',', ';', '\t'] as const

/** The line before the header by which a file tells Excel its delimiter, as exports of some programs do. */
const DECLARED_DELIMITER = /^sep=([,;\t])$/i

/**
 * Detects the delimiter from the line that declares it, else from the header, ignoring quoted text. A comma when there
 * is only one column.
 */
export const detectDelimiter = (head: string): string => {
  const declared = DECLARED_DELIMITER.exec(head.split(/[\r\n]/, 1)[0]!)
  if (declared) return declared[1]!
  const unquoted = head.replaceAll(/"(?:[^"]|"")*"/g, '').trimStart()
  const [header = ''] = unquoted.split(/[\r\n]/, 1)
  const counts = DELIMITERS.map((d) => header.split(d).length)
  return DELIMITERS[counts.indexOf(Math.max(...counts))]!
}

const CSV_ERRORS: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'an unquoted cell contains a quote',
  CSV_INVALID_CLOSING_QUOTE: 'text follows a closing quote',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_MAX_RECORD_SIZE: 'a row is too long; a quote may not be closed',
}

/**
 * Yields the records of a CSV file (RFC 4180), the header first; skips blank lines and a declared delimiter. Throws a
 * usage error at the first line that is not valid CSV.
 */
async function* readCsvRecords(
  source: ImportSource,
  delimiter: string,
  onBytes?: (bytes: Buffer) => void,
): AsyncGenerator<CsvRecord> {
  // The parser runs ahead of the reader, so line numbers are queued with the records.
  const lines: number[] = []
  let line = 1
  const parser = parse({
    delimiter,
    relax_column_count: true,
    max_record_size: MAX_ROW_CHARACTERS,
    record_delimiter: ['\r\n', '\n', '\r'],
    on_record: (cells, info) => {
      const isSkipped =
        (cells.length === 1 && cells[0]!.trim() === '') ||
        (info.records === 1 && DECLARED_DELIMITER.test(cells.join(delimiter)))
      if (!isSkipped) lines.push(line)
      line = info.lines + 1
      return isSkipped ? undefined : cells
    },
  })
  const text = Readable.from(readText(source, onBytes))
  text.once('error', (error) => parser.destroy(error))
  text.pipe(parser)
  try {
    for await (const cells of parser as AsyncIterable<string[]>) yield { line: lines.shift()!, cells }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw unreadableFileError(
      source.name,
      `is not valid CSV from line ${line} on: ${CSV_ERRORS[error.code] ?? error.message}`,
      'Quote cells that contain a quote, a line break or the delimiter, and double their quotes.',
    )
  } finally {
    text.destroy()
    parser.destroy()
  }
}
