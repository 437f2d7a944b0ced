import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { MAX_ROW_CHARACTERS, type ImportSource, readText, unreadableFileError } from './source.ts'

/** A record and the number of its first line. */
export type CsvRecord = { readonly line: number; readonly cells: string[] }

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
export async function* readCsvRecords(
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
