import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { LONGEST_ROW, type Source, textOf, unreadable } from './source.ts'

/** A record and the line on which it begins. */
export type CsvRecord = { readonly line: number; readonly cells: string[] }

const delimiters = [',', ';', '\t'] as const

/** What parts the header's cells, outside quotes; a comma where there is one column alone. */
export const delimiterOf = (head: string): string => {
  const plain = head.replaceAll(/"(?:[^"]|"")*"/g, '').trimStart()
  const [header = ''] = plain.split(/[\r\n]/, 1)
  const counts = delimiters.map((d) => header.split(d).length)
  return delimiters[counts.indexOf(Math.max(...counts))]!
}

const rules: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'a quote stands inside a cell that is not quoted',
  CSV_INVALID_CLOSING_QUOTE: 'text follows a closing quote',
  CSV_QUOTE_NOT_CLOSED: 'a quote is never closed',
  CSV_MAX_RECORD_SIZE: 'a row is too long: is a quote never closed?',
}

/**
 * The records of a CSV file (RFC 4180), the header first; blank lines are passed over. Throws a usage fault
 * at the first line that is no CSV.
 */
export async function* csvRecords(
  source: Source,
  delimiter: string,
  onBytes?: (bytes: Buffer) => void,
): AsyncGenerator<CsvRecord> {
  // The parser runs ahead of the reader, so the lines wait with the records.
  const lines: number[] = []
  let line = 1
  const parser = parse({
    delimiter,
    relax_column_count: true,
    max_record_size: LONGEST_ROW,
    record_delimiter: ['\r\n', '\n', '\r'],
    on_record: (cells, info) => {
      const isBlank = cells.length === 1 && cells[0]!.trim() === ''
      if (!isBlank) lines.push(line)
      line = info.lines + 1
      return isBlank ? undefined : cells
    },
  })
  const text = Readable.from(textOf(source, onBytes))
  text.once('error', (error) => parser.destroy(error))
  text.pipe(parser)
  try {
    for await (const cells of parser as AsyncIterable<string[]>) yield { line: lines.shift()!, cells }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw unreadable(
      source.name,
      `is not CSV from line ${line} on: ${rules[error.code] ?? error.message}`,
      'A cell with a quote, a line break or the delimiter in it is quoted, and its quotes are doubled.',
    )
  } finally {
    text.destroy()
    parser.destroy()
  }
}
