import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { QUICK } from './driver.ts'

const askEncoding = async (db: Db, hint: string): Promise<string> =>
  (
    await sql<{ encoding: string }>`${sql.raw(hint)}
      select current_setting('server_encoding') as encoding`.execute(db)
  ).rows[0]!.encoding

/**
 * Returns the encoding of the database; only UTF8 can store every name. Over the connections of transactions and those
 * of short statements, whichever answers first: while one of them waits for locks, the other answers calls.
 */
export const loadServerEncoding = async (db: Db): Promise<string> => {
  try {
    return await Promise.any([askEncoding(db, QUICK), askEncoding(db, '')])
  } catch (error) {
    throw (error as AggregateError).errors[0]
  }
}
