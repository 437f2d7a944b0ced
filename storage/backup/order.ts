import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { readInBatches } from './cursor.ts'
import { quoteIdentifier, type BackupTable } from './schema.ts'

/**
 * Transaction ids order the events, and mean nothing in another cluster. They are written as small numbers
 * that keep the order of (xid, id): a new number begins only where an id is smaller than one before it, so
 * that numbers are few, and at every other transaction id that is kept anywhere, so that positions in the
 * order hold. See docs/decisions/0005.
 */
export const XID = 'xid8'

type Span = { workspace_id: string; xid: string; first: string; last: string }

const SPANS =
  'select workspace_id::text, xid::text, min(id) as first, max(id) as last from events group by workspace_id, events.xid order by events.xid'

/**
 * Where new numbers begin, ascending: the number of a transaction id is how many of these are not above it.
 */
export const computeOrderMarks = async (tx: Db, tables: readonly BackupTable[]): Promise<string[]> => {
  const held = (await listOtherTransactionIds(tx, tables)).map(BigInt).sort(ascending)
  const marks = new Set(held)
  const latest = new Map<string, string>()
  let passed = 0
  const weigh = (spans: readonly Span[]): void => {
    if (spans.length === 0) return
    const xid = BigInt(spans[0]!.xid)
    const before = passed
    while (passed < held.length && held[passed]! <= xid) passed++
    const smaller = spans.some((span) => span.first < (latest.get(span.workspace_id) ?? ''))
    if (smaller || marks.size === 0 || (passed === 0 && latest.size === 0)) marks.add(xid)
    if (smaller || passed > before) latest.clear()
    for (const span of spans) latest.set(span.workspace_id, span.last)
  }
  let same: Span[] = []
  for await (const rows of readInBatches<Span>(tx, 'spans', SPANS, () => 100)) {
    for (const span of rows) {
      if (same.length > 0 && same[0]!.xid !== span.xid) {
        weigh(same)
        same = []
      }
      same.push(span)
    }
  }
  weigh(same)
  return [...marks].sort(ascending).map(String)
}

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

/** Transaction ids in other places than the order of events. */
const listOtherTransactionIds = async (tx: Db, tables: readonly BackupTable[]): Promise<string[]> => {
  const places = tables.flatMap((table) =>
    table.columns
      .filter((c) => c.type === XID && table.name !== 'events')
      .map((c) => ({ table: table.name, column: c.name })),
  )
  const ids: string[] = []
  for (const { table, column } of places) {
    const { rows } = await sql<{
      id: string
    }>`select distinct ${sql.ref(column)}::text as id from ${sql.table(table)} where ${sql.ref(column)} is not null`.execute(
      tx,
    )
    ids.push(...rows.map((row) => row.id))
  }
  return ids
}

/** The number of a transaction id, in SQL. */
export const renumberSql = (column: string, marks: readonly string[]): string =>
  `width_bucket(${quoteIdentifier(column)}::text::bigint, '{${marks.join(',')}}'::bigint[])`

/**
 * Sees to it that every transaction id yet to come is above `highest`. A young cluster has given out few:
 * the rest are used up by empty transactions (some microseconds each).
 */
export const advanceTransactionIds = async (db: Db, highest: number): Promise<void> => {
  const { rows } = await sql<{
    next: string
  }>`select pg_snapshot_xmax(pg_current_snapshot())::text as next`.execute(db)
  const missing = highest + 1 - Number(rows[0]!.next)
  if (missing <= 0) return
  await sql
    .raw(
      `do $$ begin for i in 1..${Math.ceil(missing)} loop perform pg_current_xact_id(); commit; end loop; end $$`,
    )
    .execute(db)
}
