import { sql } from 'kysely'
import type { Db } from '../database.ts'

const TARGET_BATCH_BYTES = 512 * 1024
const BATCH_SIZES = [1, 8, 64, 512, 2048]

/**
 * Reads the rows of a query in the transaction `tx` in batches, so that a table is never in memory as a
 * whole. Batches grow while rows are small. There are few sizes, and each row shape has a cursor name of its
 * own: `fetch` is a prepared statement, which keeps the columns it had first.
 */
export async function* readInBatches<R>(
  tx: Db,
  cursor: 'spans' | 'lines',
  query: string,
  bytesOf: (row: R) => number,
): AsyncGenerator<R[]> {
  await sql.raw(`declare ${cursor} no scroll cursor for ${query}`).execute(tx)
  let step = 2
  for (;;) {
    const { rows } = await sql.raw<R>(`fetch ${BATCH_SIZES[step]!} from ${cursor}`).execute(tx)
    if (rows.length > 0) yield rows
    if (rows.length < BATCH_SIZES[step]!) break
    const bytes = rows.reduce((sum, row) => sum + bytesOf(row), 0)
    if (bytes > TARGET_BATCH_BYTES) step = Math.max(0, step - 1)
    else if (bytes * 4 < TARGET_BATCH_BYTES) step = Math.min(BATCH_SIZES.length - 1, step + 1)
  }
  await sql.raw(`close ${cursor}`).execute(tx)
}
