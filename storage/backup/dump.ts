import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { readSetting } from '../settings.ts'
import { readInBatches } from './cursor.ts'
import { numbered, orderMarks, XID } from './order.ts'
import { appliedMigrations, keptTables, quoted, readSequences, type Table } from './schema.ts'

/** The first line of a backup. */
export type Header = {
  format: 'wcrm-backup'
  version: 1
  /** Version of the product that wrote it. */
  product: string
  made_at: string
  migrations: string[]
  /** Transaction ids in it are numbers up to this. */
  highest_xid: number
  /** Which secret sealed what is in it; the secret itself is not in it. */
  secret_fingerprint: string | null
}
/**
 * Rows of this table follow, one a line: an array with the text of each column, as the database writes it.
 */
export type TableLine = { table: string; columns: { name: string; type: string }[] }
/** The last line. */
export type Trailer = {
  rows: Record<string, number>
  sequences: Record<string, string | null>
  sha256: string
}

/** Lines without their ends, several at a time. */
export type Lines = AsyncIterable<readonly string[]>

const orderOf = (table: Table): string =>
  table.key.length > 0 ? `order by ${table.key.map(quoted).join(', ')}` : ''

/**
 * Values travel as the database's own text, which loses nothing of any type: digits of numerics, a JSON
 * null that is not an SQL null.
 */
const rowsQuery = (table: Table, marks: readonly string[]): string => {
  const values = table.columns.map((c) =>
    c.type === XID ? `${numbered(c.name, marks)}::text` : `${quoted(c.name)}::text`,
  )
  return `select array_to_json(array[${values.join(', ')}]::text[])::text as line from ${quoted(table.name)} ${orderOf(table)}`
}

/** The whole database at one moment, as lines of JSON. `onRows` hears how many rows are read. */
export async function* dump(
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
  const sealed = (lines: readonly string[]): readonly string[] => {
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
    const tables = await keptTables(tx)
    const marks = await orderMarks(tx, tables)
    const header: Header = {
      format: 'wcrm-backup',
      version: 1,
      product: about.product,
      made_at: about.now,
      migrations: await appliedMigrations(tx),
      highest_xid: marks.length,
      secret_fingerprint: (await readSetting(tx, 'secret_fingerprint')) ?? null,
    }
    yield sealed([JSON.stringify(header)])
    for (const table of tables) {
      yield sealed([JSON.stringify({ table: table.name, columns: table.columns } satisfies TableLine)])
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
        yield sealed(batch.map((row) => row.line))
      }
    }
    const trailer: Trailer = { rows, sequences: await readSequences(tx), sha256: hash.digest('hex') }
    yield [JSON.stringify(trailer)]
  } finally {
    await tx.rollback().execute()
  }
}
