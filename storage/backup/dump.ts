import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { findSetting } from '../settings.ts'
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
  version: 1
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
/** The last line. */
export type BackupTrailer = {
  rows: Record<string, number>
  sequences: Record<string, string | null>
  sha256: string
}

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

/** Dumps a snapshot of the whole database as lines of JSON. `onRows` gets the count of rows so far. */
export async function* dumpDatabase(
  db: Db,
  about: { product: string; now: string },
  onRows: (n: number) => void = () => {},
): AsyncGenerator<readonly string[]> {
  const tx = await db
    .startTransaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute()
  const hash = createHash('sha256')
  const hashed = (lines: readonly string[]): readonly string[] => {
    for (const line of lines) hash.update(line).update('\n')
    return lines
  }
  const rows: Record<string, number> = {}
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
      version: 1,
      product: about.product,
      made_at: about.now,
      migrations: await listAppliedMigrations(tx),
      highest_xid: marks.length,
      secret_fingerprint: (await findSetting(tx, 'secret_fingerprint')) ?? null,
    }
    yield hashed([JSON.stringify(header)])
    for (const table of tables) {
      yield hashed([JSON.stringify({ table: table.name, columns: table.columns } satisfies BackupTableLine)])
      rows[table.name] = 0
      for await (const batch of readInBatches<{ line: string }>(
        tx,
        'lines',
        rowsQuery(table, marks),
        (row) => row.line.length,
      )) {
        rows[table.name]! += batch.length
        total += batch.length
        onRows(total)
        yield hashed(batch.map((row) => row.line))
      }
    }
    const trailer: BackupTrailer = { rows, sequences: await loadSequences(tx), sha256: hash.digest('hex') }
    yield [JSON.stringify(trailer)]
  } finally {
    await tx.rollback().execute()
  }
}
