import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { schemaOfTables } from '../migrations/has-table.ts'

// What `wcrm admin doctor` asks PostgreSQL about itself. Every query reads catalogs and statistics alone, or the
// beginning of an index, whatever the size of the tables.

/** Runs a query that is given up after `ms`. */
export const withStatementTimeout = <T>(db: Db, ms: number, run: (db: Db) => Promise<T>): Promise<T> =>
  db.transaction().execute(async (tx) => {
    await sql`select set_config('statement_timeout', ${String(ms)}, true)`.execute(tx)
    return await run(tx)
  })

/** Settings of PostgreSQL, as `current_setting` shows them; sizes in bytes. */
export type DatabaseSettings = {
  version: string
  fsync: string
  full_page_writes: string
  synchronous_commit: string
  autovacuum: string
  track_counts: string
  data_checksums: string
  shared_buffers: number
  database_bytes: number
  max_connections: number
  connections: number
  is_standby: boolean
}

export const readDatabaseSettings = async (db: Db): Promise<DatabaseSettings> => {
  const { rows } = await sql<DatabaseSettings>`
    select current_setting('server_version') as version,
      current_setting('fsync') as fsync,
      current_setting('full_page_writes') as full_page_writes,
      current_setting('synchronous_commit') as synchronous_commit,
      current_setting('autovacuum') as autovacuum,
      current_setting('track_counts') as track_counts,
      current_setting('data_checksums') as data_checksums,
      pg_size_bytes(current_setting('shared_buffers'))::float8 as shared_buffers,
      pg_database_size(current_database())::float8 as database_bytes,
      current_setting('max_connections')::int as max_connections,
      (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as connections,
      pg_is_in_recovery() as is_standby`.execute(db)
  return rows[0]!
}

/** How many transactions are left until PostgreSQL stops to take changes, as a share of those it can tell apart. */
export const readUsedTransactionIds = async (db: Db): Promise<number> => {
  const { rows } = await sql<{ used: number }>`
    select greatest(age(datfrozenxid), mxid_age(datminmxid)) / 2147483648::float8 as used
    from pg_database where datname = current_database()`.execute(db)
  return rows[0]!.used
}

/** Whether the collation of the database sorts otherwise than when its indexes were built. */
export const hasCollationChanged = async (db: Db): Promise<boolean> => {
  const { rows } = await sql<{ changed: boolean }>`
    select coalesce(datcollversion <> pg_database_collation_actual_version(oid), false) as changed
    from pg_database where datname = current_database()`.execute(db)
  return rows[0]!.changed
}

/** The names of indexes that PostgreSQL does not use: their creation was interrupted. */
export const listInvalidIndexes = async (db: Db): Promise<string[]> => {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_index i
    join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = ${schemaOfTables} and c.relkind = 'i' and not i.indisvalid
    order by c.relname limit 20`.execute(db)
  return rows.map(({ name }) => name)
}

/**
 * The schema of the tables and the one that a migration would put new ones into, where these differ: the search path
 * finds the tables of both, but a backup has only those of the first.
 */
export const findOtherSchema = async (db: Db): Promise<{ tables: string; created: string } | undefined> => {
  const { rows } = await sql<{ tables: string; created: string }>`
    select ${schemaOfTables}::regnamespace::text as tables, quote_ident(current_schema()) as created
    where ${schemaOfTables} <> to_regnamespace(quote_ident(current_schema()))`.execute(db)
  return rows[0]
}

/** Replication slots that nothing reads from, with the log that they keep, in bytes. */
export const listIdleSlots = async (db: Db): Promise<{ name: string; bytes: number }[]> => {
  const { rows } = await sql<{ name: string; bytes: number }>`
    select slot_name as name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 as bytes
    from pg_replication_slots
    where not active and not pg_is_in_recovery() and restart_lsn is not null
    order by slot_name limit 20`.execute(db)
  return rows
}

/** Transactions that have been open for longer than `seconds`: `prepared` ones have no session any more. */
export const listLongTransactions = async (
  db: Db,
  seconds: number,
): Promise<{ what: string; seconds: number; prepared: boolean }[]> => {
  const { rows } = await sql<{ what: string; seconds: number; prepared: boolean }>`
    select * from (
      select 'session ' || pid || coalesce(' of ' || nullif(application_name, ''), '') as what,
        extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, false as prepared
      from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      union all
      select 'prepared transaction ' || gid, extract(epoch from clock_timestamp() - prepared)::float8, true
      from pg_prepared_xacts where database = current_database()
    ) as open
    where seconds > ${seconds} order by seconds desc limit 20`.execute(db)
  return rows
}

/** Tables of which more than a fifth is dead rows, and at least `least` of them. */
export const listBloatedTables = async (
  db: Db,
  least: number,
): Promise<{ name: string; dead: number; live: number }[]> => {
  const { rows } = await sql<{ name: string; dead: number; live: number }>`
    select s.relname as name, n_dead_tup::float8 as dead, n_live_tup::float8 as live from pg_stat_user_tables s
    join pg_class c on c.oid = s.relid
    where c.relnamespace = ${schemaOfTables} and n_dead_tup >= ${least} and n_dead_tup > 0.25 * n_live_tup
    order by n_dead_tup desc limit 20`.execute(db)
  return rows
}

/** Whether the log is archived, and the last attempt failed; undefined where nothing archives. */
export const findArchiveFailure = async (db: Db): Promise<string | undefined> => {
  const { rows } = await sql<{ file: string; since: Date | string }>`
    select last_failed_wal as file, last_failed_time::text as since from pg_stat_archiver
    where current_setting('archive_mode') <> 'off' and last_failed_time is not null
      and last_failed_time > coalesce(last_archived_time, '-infinity')`.execute(db)
  return rows[0] && `${rows[0].file} at ${String(rows[0].since)}`
}

/** How far the clock of the database is ahead of `now` (ISO 8601), in milliseconds. */
export const readDatabaseClock = async (db: Db, now: string): Promise<number> => {
  const { rows } = await sql<{ ahead: number }>`
    select extract(epoch from clock_timestamp() - ${now}::timestamptz)::float8 * 1000 as ahead`.execute(db)
  return rows[0]!.ahead
}

/** Keys of people and programs, of all workspaces, that still work. Ages are in days. */
export type KeyAges = { unused: number; old: number }

/** Counts keys that nobody used for `unusedDays`, and those that were made more than `oldDays` ago. */
export const countOldKeys = async (
  db: Db,
  { unusedDays, oldDays }: { unusedDays: number; oldDays: number },
): Promise<KeyAges> => {
  const { rows } = await sql<Record<keyof KeyAges, string>>`
    select count(*) filter (
        where coalesce(last_used_at, created_at) < now() - ${unusedDays}::float8 * interval '1 day') as unused,
      count(*) filter (where created_at < now() - ${oldDays}::float8 * interval '1 day') as old
    from api_keys
    where revoked_at is null and (expires_at is null or expires_at > now())`.execute(db)
  const { unused, old } = rows[0]!
  return { unused: Number(unused), old: Number(old) }
}

/** Counts accounts at the provider whose credentials were not changed for `days`. */
export const countOldAccounts = async (db: Db, days: number): Promise<number> => {
  const { rows } = await sql<{ count: string }>`
    select count(*) as count from provider_accounts
    where updated_at < now() - ${days}::float8 * interval '1 day'`.execute(db)
  return Number(rows[0]!.count)
}
