import { sql } from 'kysely'
import type { Db } from './database.ts'

/** The database's encoding; only UTF8 holds every name. */
export const serverEncoding = async (db: Db): Promise<string> =>
  (await sql<{ encoding: string }>`select current_setting('server_encoding') as encoding`.execute(db))
    .rows[0]!.encoding
