import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { readInBatches } from './cursor.ts'
import { quoteIdentifier, type BackupTable } from './schema.ts'

/**
 * Transaction ids order the events, and mean nothing in another cluster. They are replaced by small numbers
 * that keep the order of (xid, id). A new number begins only where an id is smaller than a previous one, so
 * that numbers are few, and at every transaction id that another column stores, so that stored positions stay
 * valid. See docs/decisions/0005.
 */
export const XID = 'xid8'

type Span = { workspace_id: string; xid: string; first: string; last: string }

const SPANS_QUERY = `
  select workspace_id::text, xid::text, min(id) as first, max(id) as last from events
  group by workspace_id, events.xid order by events.xid`

/**
 * Returns the transaction ids at which new numbers begin, ascending: the number of a transaction id is the
 * count of marks that are not above it.
 */
export const computeOrderMarks = async (tx: Db, tables: readonly BackupTable[]): Promise<string[]> => {
  const stored = (await listOtherTransactionIds(tx, tables)).map(BigInt).sort(ascending)
  const marks = new Set(stored)
  const latest = new Map<string, string>()
  let passed = 0
  const addSpans = (spans: readonly Span[]): void => {
    if (spans.length === 0) return
    const xid = BigInt(spans[0]!.xid)
    const passedBefore = passed
    while (passed < stored.length && stored[passed]! <= xid) passed++
    const smaller = spans.some((span) => span.first < (latest.get(span.workspace_id) ?? ''))
    if (smaller || marks.size === 0 || (passed === 0 && latest.size === 0)) marks.add(xid)
    if (smaller || passed > passedBefore) latest.clear()
    for (const span of spans) latest.set(span.workspace_id, span.last)
  }
  let sameXid: Span[] = []
  for await (const rows of readInBatches<Span>(tx, 'spans', SPANS_QUERY, () => 100)) {
    for (const span of rows) {
      if (sameXid.length > 0 && sameXid[0]!.xid !== span.xid) {
        addSpans(sameXid)
        sameXid = []
      }
      sameXid.push(span)
    }
  }
  addSpans(sameXid)
  return [...marks].sort(ascending).map(String)
}

const ascending = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

/** Lists transaction ids that columns other than `events.xid` store. */
const listOtherTransactionIds = async (tx: Db, tables: readonly BackupTable[]): Promise<string[]> => {
  const columns = tables.flatMap((table) =>
    table.columns
      .filter((c) => c.type === XID && table.name !== 'events')
      .map((c) => ({ table: table.name, column: c.name })),
  )
  const ids: string[] = []
  for (const { table, column } of columns) {
    const ref = sql.ref(column)
    const { rows } = await sql<{ id: string }>`
      select distinct ${ref}::text as id from ${sql.table(table)} where ${ref} is not null`.execute(tx)
    ids.push(...rows.map((row) => row.id))
  }
  return ids
}

/** Returns the SQL that computes the number of a transaction id. */
export const renumberSql = (column: string, marks: readonly string[]): string =>
  `width_bucket(${quoteIdentifier(column)}::text::bigint, '{${marks.join(',')}}'::bigint[])`

/**
 * Advances the cluster's transaction ids beyond `highest`. In a young cluster, empty transactions use up the
 * missing ones (some microseconds each).
 */
export const advanceTransactionIds = async (db: Db, highest: number): Promise<void> => {
  const { rows } = await sql<{ next: string }>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as next`.execute(db)
  const missing = highest + 1 - Number(rows[0]!.next)
  if (missing <= 0) return
  await sql
    .raw(
      `do $$ begin
        for i in 1..${Math.ceil(missing)} loop perform pg_current_xact_id(); commit; end loop;
      end $$`,
    )
    .execute(db)
}
