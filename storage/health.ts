import { sql } from 'kysely'
import type { Db } from './database.ts'
import { QUICK } from './driver.ts'

/**
 * Returns the encoding of the database; only UTF8 can store every name. Not over the connections of transactions: a
 * server all of whose transactions wait for locks answers other calls.
 */
export const loadServerEncoding = async (db: Db): Promise<string> =>
  (
    await sql<{ encoding: string }>`${sql.raw(QUICK)}
      select current_setting('server_encoding') as encoding`.execute(db)
  ).rows[0]!.encoding
