import { createHash, type Hash } from 'node:crypto'
import { sql } from 'kysely'
import { hasNoWorkspace, lockWorkspaces } from '../admin.ts'
import type { Db } from '../database.ts'
import { withoutIndexes } from '../indexes.ts'
import type { BackupHeader, BackupLines, BackupTableLine, BackupTrailer } from './dump.ts'
import { advanceTransactionIds } from './order.ts'
import { listAppliedMigrations, listBackupTables, quoteIdentifier, type BackupTable } from './schema.ts'

/** The backup cannot be loaded; nothing was changed. */
export type BackupLoadError = Error & { loadFault: true }

const loadError = (message: string): BackupLoadError =>
  Object.assign(new Error(message), { loadFault: true as const })
export const isBackupLoadError = (error: unknown): error is BackupLoadError =>
  error instanceof Error && 'loadFault' in error

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
    const header = readHeader(line)
    const ours = await listAppliedMigrations(db)
    if (header.migrations.join() !== ours.join()) throw loadError(describeSchemaDifference(header, ours))
    await advanceTransactionIds(db, header.highest_xid)
    const rows = await db.transaction().execute((tx) => fillTables(tx, line, rest, reader, onRows))
    await sql`analyze`.execute(db)
    return { header, rows }
  } finally {
    await reader.return?.()
  }
}

const readHeader = (line: string): BackupHeader => {
  try {
    const header = JSON.parse(line) as BackupHeader
    if (header.format === 'wcrm-backup' && header.version === 1) return header
    if (header.format === 'wcrm-backup')
      throw loadError(
        `This backup has the format ${String(header.version)}, which this version does not read.`,
      )
  } catch (error) {
    if (isBackupLoadError(error)) throw error
  }
  throw loadError('This is not a backup made by wcrm admin backup.')
}

const describeSchemaDifference = (header: BackupHeader, ours: readonly string[]): string => {
  const unknown = header.migrations.filter((name) => !ours.includes(name))
  const lacking = ours.filter((name) => !header.migrations.includes(name))
  const how =
    unknown.length > 0 ? `${unknown.join(', ')} is not known here` : `it lacks ${lacking.join(', ')}`
  const fix =
    unknown.length > 0
      ? 'Restore it with the version that made it.'
      : 'Restore it with the version that made it, then start this one on it: it migrates the schema.'
  return `The backup was made by a version with another schema (version ${header.product}: ${how}). ${fix}`
}

type LoadState = {
  tables: Map<string, BackupTable>
  table: BackupTable | undefined
  insert: string
  waiting: string[]
  chars: number
  hash: Hash
  total: number
  trailer: BackupTrailer | undefined
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
  if (!(await hasNoWorkspace(tx)))
    throw loadError('The database is not empty: it has a workspace. Restore into an empty database.')
  const kept = await listBackupTables(tx)
  await sql.raw(`truncate ${kept.map((t) => quoteIdentifier(t.name)).join(', ')}`).execute(tx)
  const hash = createHash('sha256').update(first).update('\n')
  const state: LoadState = {
    tables: new Map(kept.map((t) => [t.name, t])),
    table: undefined,
    insert: '',
    waiting: [],
    chars: 0,
    hash,
    total: 0,
    trailer: undefined,
    onRows,
  }
  // The backup includes the counts; the triggers that maintain them would count twice.
  await sql`alter table broadcast_recipients disable trigger user`.execute(tx)
  await withoutIndexes(
    tx,
    kept.map((t) => t.name),
    async () => {
      for (const line of rest) await processLine(tx, state, line)
      for (let next = await reader.next(); !next.done; next = await reader.next())
        for (const line of next.value) await processLine(tx, state, line)
      if (!state.trailer) throw loadError('The backup is truncated: its end is missing.')
      if (state.trailer.sha256 !== hash.digest('hex'))
        throw loadError('The backup is damaged: its checksum does not match.')
    },
  )
  await sql`alter table broadcast_recipients enable trigger user`.execute(tx)
  const { sequences, rows } = state.trailer!
  await restoreSequences(tx, sequences)
  await verifyRowCounts(tx, rows)
  return rows
}

const processLine = async (tx: Db, state: LoadState, line: string): Promise<void> => {
  if (state.trailer) throw loadError('The backup is damaged: there is data after its end.')
  if (line.startsWith('[')) {
    state.hash.update(line).update('\n')
    state.waiting.push(line)
    state.chars += line.length
    if (state.chars >= BATCH_CHARS) await flush(tx, state)
    return
  }
  await flush(tx, state)
  const parsed = parseLine(line)
  if ('sha256' in parsed) {
    state.trailer = parsed
    return
  }
  state.hash.update(line).update('\n')
  startTable(state, parsed)
}

const parseLine = (line: string): BackupTableLine | BackupTrailer => {
  try {
    const parsed = JSON.parse(line) as BackupTableLine | BackupTrailer
    if ('sha256' in parsed || 'columns' in parsed) return parsed
  } catch {
    /* thrown below */
  }
  throw loadError('The backup is damaged: a line is not part of the backup format.')
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
  if (!state.table) throw loadError('The backup is damaged: rows precede the name of their table.')
  const rows = `[${batch.join(',')}]`
  const parts = state.insert.split('$1')
  try {
    await sql`${sql.raw(parts[0]!)}${rows}${sql.raw(parts[1]!)}`.execute(tx)
  } catch (error) {
    // Invalid JSON, or a value that does not fit its type: the file is damaged, and its checksum would not
    // match either.
    if ((error as { code?: string }).code?.startsWith('22'))
      throw loadError(`The backup is damaged: a row of ${state.table.name} cannot be read.`)
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
