import { csvLine } from './csv-line.ts'
import type { Io } from './io.ts'
import type { CommandSpec } from './manifest.ts'
import type { ApiResponse } from './remote.ts'
import { formatCell, formatTsv, readPath } from './text.ts'

/** How the rows of a list are written for programs; `tsv` is tab-separated with a header. */
export type RowFormat = 'ndjson' | 'csv' | 'tsv'

type Row = Readonly<Record<string, unknown>>

const writers: Readonly<Record<RowFormat, (rows: readonly Row[], columns: readonly string[]) => string>> = {
  ndjson: (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
  csv: (rows, columns) =>
    rows.map((row) => csvLine(columns.map((path) => formatCell(readPath(row, path))))).join(''),
  tsv: formatTsv,
}

/** Waits until the reader has room, so that a slow one does not fill the memory. */
const write = (io: Io, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    io.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })

/**
 * Writes the rows of each page as soon as it is there. `columns`: those of tab-separated lines and of CSV. A page
 * that fails ends it after the rows before. Returns the last page.
 */
export const writeRows = async (
  io: Io,
  spec: CommandSpec,
  pages: AsyncIterable<Pick<ApiResponse, 'value'>> | Iterable<Pick<ApiResponse, 'value'>>,
  format: RowFormat,
  columns: readonly string[] = spec.output.columns,
): Promise<Row> => {
  let last: Row | undefined
  for await (const { value } of pages) {
    const header = format === 'csv' ? csvLine(columns) : format === 'tsv' ? `${columns.join('\t')}\n` : ''
    await write(io, (last ? '' : header) + writers[format](value['data'] as Row[], columns))
    last = value
  }
  return last!
}
