import { sql } from 'kysely'
import type { Db } from './database.ts'

/** Returns the encoding of the database; only UTF8 can store every name. */
export const loadServerEncoding = async (db: Db): Promise<string> =>
  (await sql<{ encoding: string }>`select current_setting('server_encoding') as encoding`.execute(db))
    .rows[0]!.encoding
