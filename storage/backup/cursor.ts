import { sql } from 'kysely'
import type { Db } from '../database.ts'

const TARGET_BATCH_BYTES = 512 * 1024
const BATCH_SIZES = [1, 8, 64, 512, 2048]

/**
 * The rows of a query in the transaction `tx`, a batch at a time, so that a table of any size is never held
 * whole. Batches grow while rows are small. Sizes are few, and each form of row has a cursor of its own
 * name: `fetch` is a prepared statement that keeps the columns it first had.
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
