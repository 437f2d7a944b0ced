import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { findSetting } from '../workspace/settings.ts'
import { readInBatches } from './cursor.ts'
import { renumberSql, computeOrderMarks, XID } from './order.ts'
import {
  listAppliedMigrations,
  listBackupTables,
  quoteIdentifier,
  loadSequences,
  type BackupTable,
} from './schema.ts'

/** The first line of a backup. */
export type BackupHeader = {
  format: 'wcrm-backup'
  /** Version 1 had no sums of its parts, and no files. */
  version: 1 | 2
  /** Version of the product that wrote it. */
  product: string
  made_at: string
  migrations: string[]
  /** The highest of the numbers that replace transaction ids. */
  highest_xid: number
  /** Identifies the secret that sealed values in it; the secret itself is not included. */
  secret_fingerprint: string | null
}
/** Rows of this table follow, one per line: an array with each column as the database's text. */
export type BackupTableLine = { table: string; columns: { name: string; type: string }[] }
/** Follows the rows of a table. The sum is that of their lines and the table's own. */
export type BackupTableEnd = { end: string; rows: number; sha256: string }
/** A received file, by its key in the store. Its bytes follow, one JSON string of base64 on each line. */
export type BackupFileLine = { file: string; size: number }
/** Follows the bytes of a file, whose sum it has. */
export type BackupFileEnd = { end: string; sha256: string }
/** `missing`: files that the database names and the store did not have. */
export type BackupFiles = { files: number; bytes: number; missing: number }
/** The last line. Its sum is that of the header and of the lines that end a part. */
export type BackupTrailer = {
  rows: Record<string, number>
  sequences: Record<string, string | null>
  /** Null when the files were left out. */
  media: BackupFiles | null
  sha256: string
}

/** The lines of files, and what they were, once all are read. */
export type BackupFileSource = { lines: BackupLines; count: () => BackupFiles }

/** Batches of lines, without line ends. */
export type BackupLines = AsyncIterable<readonly string[]>

const orderByKey = (table: BackupTable): string =>
  table.key.length > 0 ? `order by ${table.key.map(quoteIdentifier).join(', ')}` : ''

/**
 * Values are the database's own text, which loses nothing of any type: digits of numerics, a JSON null that
 * is not an SQL null.
 */
const rowsQuery = (table: BackupTable, marks: readonly string[]): string => {
  const values = table.columns.map((c) =>
    c.type === XID ? `${renumberSql(c.name, marks)}::text` : `${quoteIdentifier(c.name)}::text`,
  )
  const from = `${quoteIdentifier(table.name)} ${orderByKey(table)}`
  return `select array_to_json(array[${values.join(', ')}]::text[])::text as line from ${from}`
}

export type DumpOptions = {
  /** Gets the count of rows so far. */
  onRows?: (n: number) => void
  /** Files that follow the rows, when the transaction is over. */
  files?: BackupFileSource
}

/** Dumps a snapshot of the whole database as lines of JSON, and then files. */
export async function* dumpDatabase(
  db: Db,
  about: { product: string; now: string },
  { onRows, files }: DumpOptions = {},
): AsyncGenerator<readonly string[]> {
  const sum = createHash('sha256')
  const summed = (line: string): string => {
    sum.update(line).update('\n')
    return line
  }
  const rows: Record<string, number> = {}
  const sequences = yield* dumpTables(db, about, { onRows, rows, summed })
  for await (const lines of files?.lines ?? []) {
    for (const line of lines) if (isPartEnd(line)) summed(line)
    yield lines
  }
  const media = files?.count() ?? null
  const trailer: BackupTrailer = { rows, sequences, media, sha256: sum.digest('hex') }
  yield [JSON.stringify(trailer)]
}

const PART_END = '{"end":'
export const isPartEnd = (line: string): boolean => line.startsWith(PART_END)

type DumpState = {
  onRows: ((n: number) => void) | undefined
  /** By table; it is filled. */
  rows: Record<string, number>
  summed: (line: string) => string
}

async function* dumpTables(
  db: Db,
  about: { product: string; now: string },
  { onRows, rows, summed }: DumpState,
): AsyncGenerator<readonly string[], BackupTrailer['sequences']> {
  const tx = await db
    .startTransaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute()
  let total = 0
  try {
    await sql`set local extra_float_digits = 1`.execute(tx)
    await sql`set local bytea_output = 'hex'`.execute(tx)
    await sql`set local datestyle = 'ISO, YMD'`.execute(tx)
    await sql`set local intervalstyle = 'iso_8601'`.execute(tx)
    const tables = await listBackupTables(tx)
    const marks = await computeOrderMarks(tx, tables)
    const header: BackupHeader = {
      format: 'wcrm-backup',
      version: 2,
      product: about.product,
      made_at: about.now,
      migrations: await listAppliedMigrations(tx),
      highest_xid: marks.length,
      secret_fingerprint: (await findSetting(tx, 'secret_fingerprint')) ?? null,
    }
    yield [summed(JSON.stringify(header))]
    for (const table of tables) {
      const hash = createHash('sha256')
      const line = JSON.stringify({ table: table.name, columns: table.columns } satisfies BackupTableLine)
      hash.update(line).update('\n')
      yield [line]
      rows[table.name] = 0
      for await (const batch of readInBatches<{ line: string }>(
        tx,
        'lines',
        rowsQuery(table, marks),
        (row) => row.line.length,
      )) {
        rows[table.name]! += batch.length
        total += batch.length
        onRows?.(total)
        for (const row of batch) hash.update(row.line).update('\n')
        yield batch.map((row) => row.line)
      }
      const end: BackupTableEnd = { end: table.name, rows: rows[table.name]!, sha256: hash.digest('hex') }
      yield [summed(JSON.stringify(end))]
    }
    return await loadSequences(tx)
  } finally {
    await tx.rollback().execute()
  }
}
