import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** Whether the schema has this table yet. */
export const hasTable = async (db: Db, name: string): Promise<boolean> => {
  const { rows } = await sql<{
    exists: boolean
  }>`select to_regclass(${name}::text) is not null as exists`.execute(db)
  return rows[0]!.exists
}

/**
 * The schema that holds the tables, for reads of the catalog; null before the first migration. The role or the
 * database may have another search path than PostgreSQL's own.
 */
export const schemaOfTables = sql`(select relnamespace from pg_class where oid = to_regclass('settings'))`
