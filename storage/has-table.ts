import { sql } from 'kysely'
import type { Db } from './database.ts'

/** Whether the schema has this table yet: administration also works before a migration. */
export const hasTable = async (db: Db, name: string): Promise<boolean> => {
  const { rows } = await sql<{
    exists: boolean
  }>`select to_regclass(${name}::text) is not null as exists`.execute(db)
  return rows[0]!.exists
}
