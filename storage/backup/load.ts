import { sql } from 'kysely'
import { hasNoWorkspace, lockWorkspaces } from '../workspace/admin.ts'
import type { Db } from '../database.ts'
import { withoutIndexes } from '../migrations/indexes.ts'
import type { BackupHeader, BackupLines, BackupTableLine, BackupTrailer } from './dump.ts'
import { createLineReader, type LineReader, loadError, parseHeader, requireBackupSchema } from './lines.ts'
import { advanceTransactionIds } from './order.ts'
import { listAppliedMigrations, listBackupTables, quoteIdentifier, type BackupTable } from './schema.ts'

const BATCH_CHARS = 1024 * 1024

export type LoadedBackup = { header: BackupHeader; rows: Record<string, number> }

/**
 * Fills an empty, migrated database from the lines of a backup in one transaction. What an empty database
 * holds, such as settings, is replaced. `onRows` gets the count of rows so far.
 */
export const loadBackup = async (
  db: Db,
  lines: BackupLines,
  onRows: (n: number) => void = () => {},
): Promise<LoadedBackup> => {
  const reader = lines[Symbol.asyncIterator]()
  try {
    const first = await reader.next()
    const [line = '', ...rest] = first.done ? [] : first.value
    const header = parseHeader(line)
    requireBackupSchema(header, await listAppliedMigrations(db))
    await advanceTransactionIds(db, header.highest_xid)
    const rows = await db.transaction().execute((tx) => fillTables(tx, line, rest, reader, onRows))
    await sql`analyze`.execute(db)
    return { header, rows }
  } finally {
    await reader.return?.()
  }
}

/** Throws when the database has a workspace. */
export const requireEmptyDatabase = async (db: Db): Promise<void> => {
  if (!(await hasNoWorkspace(db)))
    throw loadError('The database is not empty: it has a workspace. Restore into an empty database.')
}

type LoadState = {
  tables: Map<string, BackupTable>
  table: BackupTable | undefined
  insert: string
  waiting: string[]
  chars: number
  lines: LineReader
  total: number
  onRows: (n: number) => void
}

const fillTables = async (
  tx: Db,
  first: string,
  rest: readonly string[],
  reader: AsyncIterator<readonly string[]>,
  onRows: (n: number) => void,
): Promise<Record<string, number>> => {
  // So that no workspace is created during the restore.
  await lockWorkspaces(tx)
  await requireEmptyDatabase(tx)
  const kept = await listBackupTables(tx)
  await sql.raw(`truncate ${kept.map((t) => quoteIdentifier(t.name)).join(', ')}`).execute(tx)
  const state: LoadState = {
    tables: new Map(kept.map((t) => [t.name, t])),
    table: undefined,
    insert: '',
    waiting: [],
    chars: 0,
    lines: createLineReader(first),
    total: 0,
    onRows,
  }
  // The backup includes what the triggers maintain, such as counts, which they would count twice.
  const triggered = [sql.table('broadcast_recipients'), sql.table('messages')]
  for (const table of triggered) await sql`alter table ${table} disable trigger user`.execute(tx)
  let trailer: BackupTrailer | undefined
  await withoutIndexes(
    tx,
    kept.map((t) => t.name),
    async () => {
      for (const line of rest) await processLine(tx, state, line)
      for (let next = await reader.next(); !next.done; next = await reader.next())
        for (const line of next.value) await processLine(tx, state, line)
      trailer = state.lines.finish()
    },
  )
  for (const table of triggered) await sql`alter table ${table} enable trigger user`.execute(tx)
  const { sequences, rows } = trailer!
  await restoreSequences(tx, sequences)
  await verifyRowCounts(tx, rows)
  return rows
}

const processLine = async (tx: Db, state: LoadState, line: string): Promise<void> => {
  const read = state.lines.next(line)
  if (read.kind === 'row') {
    state.waiting.push(line)
    state.chars += line.length
    if (state.chars >= BATCH_CHARS) await flush(tx, state)
    return
  }
  if (read.kind === 'bytes') return
  await flush(tx, state)
  if (read.kind === 'table') startTable(state, read.table)
}

const flush = async (tx: Db, state: LoadState): Promise<void> => {
  if (state.waiting.length === 0) return
  const batch = state.waiting
  state.waiting = []
  state.chars = 0
  await insertRows(tx, state, batch)
  state.total += batch.length
  state.onRows(state.total)
}

const startTable = (state: LoadState, line: BackupTableLine): void => {
  const table = state.tables.get(line.table)
  const shapeOf = (columns: readonly { name: string; type: string }[]) =>
    columns
      .map((c) => `${c.name} ${c.type}`)
      .sort()
      .join()
  if (!table || shapeOf(table.columns) !== shapeOf(line.columns))
    throw loadError(`The backup has another form of the table ${line.table} than this version.`)
  state.table = table
  // In the backup's order of columns.
  const columns = line.columns.map((c) => quoteIdentifier(c.name)).join(', ')
  state.insert =
    `insert into ${quoteIdentifier(line.table)} (${columns}) overriding system value ` +
    `select ${line.columns.map((c, i) => `(v->>${i})::${c.type}`).join(', ')} ` +
    `from jsonb_array_elements($1::jsonb) as e (v)`
}

const insertRows = async (tx: Db, state: LoadState, batch: readonly string[]): Promise<void> => {
  const rows = `[${batch.join(',')}]`
  const parts = state.insert.split('$1')
  try {
    await sql`${sql.raw(parts[0]!)}${rows}${sql.raw(parts[1]!)}`.execute(tx)
  } catch (error) {
    // Invalid JSON, or a value that does not fit its type: the file is damaged, and its checksum would not
    // match either.
    if ((error as { code?: string }).code?.startsWith('22'))
      throw loadError(`The backup is damaged: a row of ${state.table!.name} cannot be read.`)
    throw error
  }
}

const restoreSequences = async (tx: Db, sequences: BackupTrailer['sequences']): Promise<void> => {
  for (const [name, last] of Object.entries(sequences)) {
    const [table, column] = name.split('.') as [string, string]
    await sql`
      select setval(pg_get_serial_sequence(${quoteIdentifier(table)}, ${column}),
        ${last ?? '1'}::bigint, ${last !== null})`.execute(tx)
  }
}

/** Compares the row counts of the tables with those of the backup. */
const verifyRowCounts = async (tx: Db, wanted: BackupTrailer['rows']): Promise<void> => {
  for (const [table, n] of Object.entries(wanted)) {
    const { rows } = await sql<{ n: string }>`select count(*) as n from ${sql.table(table)}`.execute(tx)
    if (Number(rows[0]!.n) !== n)
      throw loadError(`The table ${table} has ${rows[0]!.n} rows where the backup says ${n}.`)
  }
}
