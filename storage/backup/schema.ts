import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { schemaOfTables } from '../migrations/has-table.ts'

/** A column with its SQL type. */
type Column = { name: string; type: string }
export type BackupTable = { name: string; columns: Column[]; key: string[] }

/** The record of applied migrations, which is compared, not restored. */
const MIGRATION_TABLE = 'migrations'

/**
 * Lists the tables of a backup, from the database itself so that none is forgotten. Unlogged tables may be
 * lost in a crash, so they are left out. Generated columns are computed again.
 */
export const listBackupTables = async (db: Db): Promise<BackupTable[]> => {
  const { rows } = await sql<{ name: string; columns: Column[]; key: string[] | null }>`
    select c.relname as name,
      (select json_agg(json_build_object('name', a.attname,
          'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          and a.attgenerated = '') as columns,
      (select json_agg(a.attname order by k.n)
        from pg_index i, unnest(i.indkey) with ordinality as k (attnum, n)
        join pg_attribute a on a.attnum = k.attnum
        where i.indrelid = c.oid and i.indisprimary and a.attrelid = c.oid) as key
    from pg_class c
    where c.relnamespace = ${schemaOfTables} and c.relkind in ('r', 'p') and not c.relispartition
      and c.relpersistence = 'p'
    order by c.relname collate "C"`.execute(db)
  return rows
    .filter((table) => table.name !== MIGRATION_TABLE)
    .map((table) => ({ ...table, key: table.key ?? [] }))
}

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Returns the last value of the sequence of each identity column, by `table.column`; null when unused. */
export const loadSequences = async (db: Db): Promise<Record<string, string | null>> => {
  const { rows } = await sql<{ name: string; last: string | null }>`
    select c.relname || '.' || a.attname as name, pg_sequence_last_value(
      pg_get_serial_sequence(quote_ident(c.relname), a.attname)::regclass) as last
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = ${schemaOfTables} and c.relkind = 'r'
      and pg_get_serial_sequence(quote_ident(c.relname), a.attname) is not null
    order by 1`.execute(db)
  return Object.fromEntries(rows.map((row) => [row.name, row.last]))
}

/** Lists the names of the applied migrations, oldest first. */
export const listAppliedMigrations = async (db: Db): Promise<string[]> =>
  (await sql<{ name: string }>`select name from migrations order by name`.execute(db)).rows.map(
    (row) => row.name,
  )

/** Counts sessions of other processes of the product on this PostgreSQL database, which is opened exclusively. */
export const countOtherSessions = async (db: Db): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
    select count(*) as n from pg_stat_activity
    where datname = current_database() and application_name like 'wcrm%'
      and application_name <> current_setting('application_name')`.execute(db)
    ).rows[0]!.n,
  )

/** Runs `work` while nobody writes to the tables of a PostgreSQL database: no server can start there meanwhile. */
export const withoutWriters = <T>(db: Db, work: () => Promise<T>): Promise<T> =>
  db.transaction().execute(async (tx) => {
    const tables = await listBackupTables(tx)
    // Nothing is sent in this transaction until the work is done.
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
    await sql
      .raw(`lock table ${tables.map((t) => quoteIdentifier(t.name)).join(', ')} in share mode`)
      .execute(tx)
    return await work()
  })
