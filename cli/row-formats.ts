import { csvLine } from '../catalog/csv-line.ts'
import type { Io } from './io.ts'
import type { ApiResponse } from './remote.ts'
import { formatCsvCell, formatTsv, readPath } from './text.ts'

/** How the rows of a list are written for programs; `lines` are tab-separated, `tsv` too, with a header. */
export type RowFormat = 'ndjson' | 'csv' | 'tsv' | 'lines'

type Row = Readonly<Record<string, unknown>>

/** Writes the rows of a page; `header` comes before the first. */
export type RowWriter = {
  readonly header: string
  readonly rows: (rows: readonly Row[]) => string | Promise<string>
}

/** Creates the writer of a format. `columns`: those of tab-separated lines and of CSV. */
export const createRowWriter = (format: RowFormat, columns: readonly string[]): RowWriter => {
  const csv = (row: Row): string => csvLine(columns.map((path) => formatCsvCell(readPath(row, path))))
  const writers: Readonly<Record<RowFormat, RowWriter>> = {
    ndjson: { header: '', rows: (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join('') },
    csv: { header: csvLine(columns), rows: (rows) => rows.map(csv).join('') },
    tsv: { header: `${columns.join('\t')}\n`, rows: (rows) => formatTsv(rows, columns) },
    lines: { header: '', rows: (rows) => formatTsv(rows, columns) },
  }
  return writers[format]
}

/** Writes text to stdout and waits until the reader has room, so that a slow one does not fill the memory. */
export const writeText = (io: Io, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    io.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })

/**
 * Writes the rows of each page as soon as it is there. A page that fails ends it after the rows before. Returns the
 * last page.
 */
export const writeRows = async (
  io: Io,
  pages: AsyncIterable<Pick<ApiResponse, 'value'>> | Iterable<Pick<ApiResponse, 'value'>>,
  writer: RowWriter,
): Promise<Row> => {
  let last: Row | undefined
  for await (const { value } of pages) {
    const text = await writer.rows(value['data'] as Row[])
    await writeText(io, (last ? '' : writer.header) + text)
    last = value
  }
  return last!
}
