import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { errorCode } from '../client/error-codes.ts'
import { decodeUlidTime, encodeUlidTime } from '../events/ulid-time.ts'

/**
 * Tables of which old rows are dropped with their partition, which costs nothing, however many they are
 * (docs/decisions/0025-partitions.md). Each is divided by its id, which begins with the real time of the row, so
 * that ids stay primary keys and a look-up by id reads one partition. A row whose time no partition covers is
 * in the partition `<table>_default`: nothing is refused because a partition is missing.
 */
export type PartitionedTable = 'events' | 'audit_log' | 'webhook_attempts'

type Division = {
  column: string
  /** The smallest value of the column at this time, in milliseconds since 1970. */
  toBound: (ms: number) => string
  toMs: (bound: string) => number
  /** Storage parameters of each partition. */
  settings: string
}

/** Rows are only added, so that what matters is that pages are marked as visible to all before many are written. */
const INSERT_ONLY = 'autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02'

const divideByUlid = (column: string, prefix: string): Division => ({
  column,
  toBound: (ms) => prefix + encodeUlidTime(ms),
  toMs: (bound) => decodeUlidTime(bound.slice(prefix.length)),
  settings: INSERT_ONLY,
})

/** How many bits of an id of the audit trail are below its time, from the sequence `audit_ids`. */
export const AUDIT_SEQUENCE_BITS = 18n

const divisions: Readonly<Record<PartitionedTable, Division>> = {
  events: divideByUlid('id', 'evt_'),
  webhook_attempts: divideByUlid('delivery_id', 'dlv_'),
  audit_log: {
    column: 'id',
    toBound: (ms) => String(BigInt(ms) << AUDIT_SEQUENCE_BITS),
    toMs: (bound) => Number(BigInt(bound) >> AUDIT_SEQUENCE_BITS),
    settings: INSERT_ONLY,
  },
}

/** How a table is divided. */
export const divisionOf = (table: PartitionedTable): Division => divisions[table]

/** What a partition holds: rows with a time in [from, to). `from` is undefined in the first one. */
type Partition = { name: string; from: number | undefined; to: number; lower: string; upper: string }

const unquote = (bound: string): string => bound.replace(/^'(.*)'$/, '$1')

/** Lists the partitions of a table but for the default one, oldest first. */
export const listPartitions = async (db: Db, table: PartitionedTable): Promise<Partition[]> => {
  const { toMs } = divisions[table]
  const { rows } = await sql<{ name: string; bounds: string }>`
    select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = to_regclass(${table}::text)`.execute(db)
  return rows
    .flatMap(({ name, bounds }) => {
      const [, from, to] = /FROM \((.+)\) TO \((.+)\)/.exec(bounds) ?? []
      if (from === undefined || to === undefined) return []
      const [lower, upper] = [unquote(from), unquote(to)]
      return [{ name, from: lower === 'MINVALUE' ? undefined : toMs(lower), to: toMs(upper), lower, upper }]
    })
    .sort((a, b) => a.to - b.to)
}

/** A period in time that a partition holds. */
type PartitionUnit = 'day' | 'week' | 'month'

/** Few partitions, since whatever reads by another order than that of time looks into each. */
const unitFor = (retentionDays: number | null): PartitionUnit =>
  retentionDays === null || retentionDays > 100 ? 'month' : retentionDays > 10 ? 'week' : 'day'

const DAY_MS = 86_400_000

/** Returns the first boundary of units (in UTC; weeks begin on Monday) after a time. */
const endOfUnit = (ms: number, unit: PartitionUnit): number => {
  const at = new Date(ms)
  if (unit === 'month') return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
  const nextDay = Math.floor(ms / DAY_MS) * DAY_MS + DAY_MS
  return unit === 'day' ? nextDay : nextDay + ((8 - new Date(nextDay).getUTCDay()) % 7) * DAY_MS
}

const startOfUnit = (ms: number, unit: PartitionUnit): number => {
  const at = new Date(ms)
  return unit === 'month'
    ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth())
    : endOfUnit(ms, unit) - (unit === 'week' ? 7 : 1) * DAY_MS
}

/** How many partitions are made ahead of the present one. */
const AHEAD = 2

/** Returns the spans of the partitions to create after `last`, the end of the newest one. */
const planPartitions = (last: number, now: number, unit: PartitionUnit): { from: number; to: number }[] => {
  let until = endOfUnit(now, unit)
  for (let i = 0; i < AHEAD; i++) until = endOfUnit(until, unit)
  const spans: { from: number; to: number }[] = []
  for (let from = last; from < until; from = spans.at(-1)!.to)
    spans.push({ from, to: endOfUnit(Math.max(from, now), unit) })
  return spans
}

/**
 * How long a change of partitions waits for others who use the table, while those who come later wait for it: a
 * hundred milliseconds at most, and again half a minute later.
 */
const LOCK_TIMEOUT_MS = 100

/**
 * Runs `work` in a transaction that waits for locks only briefly, unless another server does the same. Returns
 * false when it did not run or could not get its locks.
 */
const withBriefLocks = async (
  db: Db,
  table: PartitionedTable,
  work: (tx: Db) => Promise<void>,
): Promise<boolean> => {
  try {
    return await db.transaction().execute(async (tx) => {
      const { rows } = await sql<{ locked: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended(${`partitions ${table}`}, 0)) as locked,
          set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}ms`}, true)`.execute(tx)
      if (rows[0]!.locked) await work(tx)
      return rows[0]!.locked
    })
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === errorCode.lockNotAvailable || code === errorCode.deadlockDetected) return false
    throw error
  }
}

const toName = (table: PartitionedTable, from: number): string =>
  `${table}_${new Date(from).toISOString().slice(0, 10).replaceAll('-', '')}`

const dropPartition = async (tx: Db, table: PartitionedTable, name: string): Promise<void> => {
  await sql.raw(`lock table ${table} in access exclusive mode`).execute(tx)
  await sql.raw(`drop table if exists ${name}`).execute(tx)
}

const dropIfEmpty = async (tx: Db, table: PartitionedTable, name: string): Promise<boolean> => {
  await sql.raw(`lock table ${table} in access exclusive mode`).execute(tx)
  const { rows } = await sql.raw(`select 1 from ${name} limit 1`).execute(tx)
  if (rows.length === 0) await dropPartition(tx, table, name)
  return rows.length === 0
}

/**
 * Creates a partition and moves the rows of its time from the default one. It is attached, which locks out nobody
 * who writes: `create table … partition of` would.
 */
const createPartition = async (
  tx: Db,
  table: PartitionedTable,
  { from, to }: { from: number; to: number },
): Promise<void> => {
  const { column, toBound, settings } = divisions[table]
  const name = toName(table, from)
  const [lower, upper] = [toBound(from), toBound(to)]
  const statements = [
    `lock table ${table}_default in access exclusive mode`,
    `create table ${name} (like ${table} including defaults including constraints including storage)
      with (${settings})`,
    `with moved as (
        delete from ${table}_default where ${column} >= '${lower}' and ${column} < '${upper}' returning *
      ) insert into ${name} select * from moved`,
    `alter table ${table} attach partition ${name} for values from ('${lower}') to ('${upper}')`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(tx)
}

/** Partitions of the future that hold more than the retention asks for now, newest first. */
const findTooLong = (partitions: readonly Partition[], now: number, unit: PartitionUnit): Partition[] =>
  partitions
    .filter(({ from, to }) => from !== undefined && from > now && endOfUnit(from, unit) < to)
    .toReversed()

/**
 * Creates the partitions that the next rows need, and some ahead, of a size that suits the retention. `now`: real
 * time. Returns how many were created; what could not get its locks is left to the next call.
 */
export const createPartitions = async (
  db: Db,
  table: PartitionedTable,
  now: string,
  retentionDays: number | null,
): Promise<number> => {
  const unit = unitFor(retentionDays)
  const nowMs = Date.parse(now)
  const find = async (tx: Db) => {
    const partitions = await listPartitions(tx, table)
    return {
      tooLong: findTooLong(partitions, nowMs, unit),
      // Where none is left, those of rows that are in the default one meanwhile.
      missing: planPartitions(partitions.at(-1)?.to ?? startOfUnit(nowMs, unit), nowMs, unit),
    }
  }
  let created = 0
  const create = async (tx: Db): Promise<void> => {
    // Looked up again: another server may have created them since.
    for (const { name } of (await find(tx)).tooLong) if (!(await dropIfEmpty(tx, table, name))) break
    const { missing } = await find(tx)
    for (const span of missing) await createPartition(tx, table, span)
    created = missing.length
  }
  if (db.isTransaction) await create(db)
  else {
    const { tooLong, missing } = await find(db)
    if (tooLong.length + missing.length > 0) await withBriefLocks(db, table, create)
  }
  return created
}

/**
 * Gives a new table the default partition, and the first one, which ends with this week: what a backup restores is in
 * it, however old.
 */
export const createFirstPartition = async (tx: Db, table: PartitionedTable, now: string): Promise<void> => {
  const { toBound, settings } = divisions[table]
  const bound = toBound(endOfUnit(Date.parse(now), 'week'))
  for (const part of [
    `first partition of ${table} for values from (minvalue) to ('${bound}')`,
    `default partition of ${table} default`,
  ])
    await sql.raw(`create table ${table}_${part} with (${settings})`).execute(tx)
}

/** Whether webhook deliveries need rows of this partition. The audit trail is needed by none. */
export const isNeeded = async (
  tx: Db,
  table: PartitionedTable,
  { lower, upper }: Partition,
): Promise<boolean> => {
  if (table === 'audit_log') return false
  const needed =
    table === 'events'
      ? sql`status in ('pending', 'failed') and event_id < ${upper}
          and (event_id >= ${lower} or ${lower} = 'MINVALUE')`
      : sql`id < ${upper} and (id >= ${lower} or ${lower} = 'MINVALUE')`
  const { rows } = await sql`
    select 1 from workspaces w where exists (
      select from webhook_deliveries d where d.workspace_id = w.id and ${needed}) limit 1`.execute(tx)
  return rows.length > 0
}

/**
 * Drops partitions all of whose rows are from before a time. Each takes a lock of the whole table for less than a
 * millisecond, and waits for it briefly; the files are deleted after that. Returns how many were dropped.
 */
export const dropPartitionsBefore = async (
  db: Db,
  table: PartitionedTable,
  time: string,
): Promise<number> => {
  const before = Date.parse(time)
  let dropped = 0
  for (const partition of await listPartitions(db, table)) {
    if (partition.to > before) break
    if (await isNeeded(db, table, partition)) continue
    if (!(await withBriefLocks(db, table, (tx) => dropPartition(tx, table, partition.name)))) break
    dropped++
  }
  return dropped
}
