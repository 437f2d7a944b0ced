import type { ParsedCommand } from '../parsed-command.ts'
import { usageError } from '../error.ts'
import { type ColumnMapping, type ImportField, mapColumns } from './columns.ts'
import { detectDelimiter, readCsvRecords } from './csv.ts'
import { readNdjsonLines } from './ndjson.ts'
import { type ParsedRow, parseCsvRow, parseJsonRow } from './rows.ts'
import { createSha256, type ImportFormat, type ImportSource, readHead } from './source.ts'

type Flags = ParsedCommand['cliFlags']

/** Reads the rows of a file; may be read several times. */
export type ImportReader = {
  readonly rows: (onBytes?: (bytes: Buffer) => void) => AsyncIterable<ParsedRow>
  /** The columns or fields that cannot be imported. Those of NDJSON are known once the rows were read. */
  readonly ignored: () => readonly string[]
}

/** Throws a usage error when a flag does not fit the format, or when columns cannot be mapped to fields. */
export const createReader = async (
  source: ImportSource,
  format: ImportFormat,
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
